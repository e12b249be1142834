"""Make a talk ready to publish: 640 pixels wide, with subtitles made from what is said.

    hostler run examples/podcast.py -i source=talk.mp4 -i out=published

`-i whisper=false` leaves the subtitles out. Files that are in that folder already stay as they are, and the run fails
where it would replace one; `-i overwrite=true` replaces them.
"""

from hostler import Build, NodeHandle, workflow
from hostler.operations.files import publish
from hostler.operations.media import add_subtitles, extract_audio, probe, transcode
from hostler.operations.speech import transcribe


@workflow("podcast", version=1)
def podcast(
    build: Build, source: str, out: str, *, whisper: bool = True, overwrite: bool = False
) -> dict[str, NodeHandle]:
    def published(made: NodeHandle, name: str) -> NodeHandle:
        wanted = {"source": made, "target": f"{out}/{name}", "overwrite": overwrite}
        return build.call(publish, key=f"publish/{name}", input=wanted)["path"]

    talk = build.call(probe, key="probe", input={"path": source})
    video = build.call(
        transcode,
        key="video",
        input={"path": talk["path"], "width": 640, "preset": "veryfast", "crf": 23},
    )
    if not whisper:
        return {"video": published(video["path"], "talk.mp4")}

    audio = build.call(extract_audio, key="audio", input={"path": talk["path"]})
    text = build.call(transcribe, key="text", input={"audio": audio["path"], "language": "en"})
    subtitled = build.call(
        add_subtitles,
        key="subtitled",
        input={"path": video["path"], "subtitles": text["path"], "language": "eng"},
    )
    return {
        "video": published(subtitled["path"], "talk.mp4"),
        "subtitles": published(text["path"], "talk.srt"),
        "words": text["words"],
    }
