"""Make all films of a folder small, as many at a time as the machine allows:

    hostler run examples/batch.py -i folder=films -i out=small

Start it for another folder in another terminal meanwhile: the two share the machine's ffmpegs, and `hostler top` shows
who waits for whom. `hostler machine set ffmpeg=1` while they run lets one at a time. Killed and resumed, it makes only
those again that were not done.
"""

from pathlib import Path

from hostler import Build, NodeHandle, workflow
from hostler.operations.files import publish
from hostler.operations.media import transcode

SUFFIXES = {".mp4", ".mkv", ".mov", ".webm"}


@workflow("batch", version=1)
def batch(build: Build, folder: str, out: str, width: int = 640) -> dict[str, list[NodeHandle]]:
    # The folder is looked into when the run is planned: what comes into it later is for another run.
    films = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in SUFFIXES)
    made = []
    for number, film in enumerate(films, start=1):
        small = build.call(
            transcode,
            key=f"film-{number}/small",
            label=film.name,
            input={"path": str(film), "width": width, "preset": "veryfast"},
        )
        named = build.call(
            publish,
            key=f"film-{number}/publish",
            label=film.name,
            input={"source": small["path"], "target": f"{out}/{film.stem}.mp4", "overwrite": True},
        )
        made.append(named["path"])
    return {"films": made}
