"""Make all films of a folder small, as many at a time as the machine allows:

    hostler run examples/batch.py -i folder=films -i out=small

Start it for another folder in another terminal meanwhile: the two share the machine's ffmpegs, and `hostler top` shows
who waits for whom. `hostler machine set ffmpeg=1` while they run lets one at a time. Killed and resumed, it makes only
those again that were not done. A file of yours that has the name of a result stays as it is, and that film fails;
`-i overwrite=true` replaces it.
"""

from collections import Counter
from pathlib import Path

from hostler import Build, Code, HostlerError, NodeHandle, workflow
from hostler.operations.files import publish
from hostler.operations.media import transcode

SUFFIXES = (".mp4", ".mkv", ".mov", ".webm")


@workflow("batch", version=1)
def batch(
    build: Build, folder: str, out: str, width: int = 640, *, overwrite: bool = False
) -> dict[str, list[NodeHandle]]:
    # The folder is looked into when the run is planned: what comes into it later is for another run.
    films = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in SUFFIXES)
    if not films:
        raise HostlerError(Code.INVALID_DATA, f"there is no film in {folder}", f"give one with {', '.join(SUFFIXES)}")
    of_that_name = Counter(film.stem for film in films)
    made = []
    for number, film in enumerate(films, start=1):
        small = build.call(
            transcode,
            key=f"film-{number}/small",
            label=film.name,
            input={"path": str(film), "width": width, "preset": "veryfast"},
        )
        name = film.stem if of_that_name[film.stem] == 1 else film.name
        named = build.call(
            publish,
            key=f"film-{number}/publish",
            label=film.name,
            input={"source": small["path"], "target": f"{out}/{name}.mp4", "overwrite": overwrite},
        )
        made.append(named["path"])
    return {"films": made}
