"""Make a talk ready to publish: 640 pixels wide, with subtitles made from what is said.

    hostler run examples/podcast.py -i source=talk.mp4 -i out=published

`-i whisper=false` leaves the subtitles out. Files of an earlier run in the same folder are replaced.
"""

from hostler import Build, NodeHandle, workflow
from hostler.operations.files import publish
from hostler.operations.media import add_subtitles, extract_audio, probe, transcode
from hostler.operations.speech import transcribe


@workflow("podcast", version=1)
def podcast(build: Build, source: str, out: str, *, whisper: bool = True) -> dict[str, NodeHandle]:
    talk = build.call(probe, key="probe", input={"path": source})
    video = build.call(
        transcode,
        key="video",
        input={"path": talk["path"], "width": 640, "preset": "veryfast", "crf": 23},
    )
    if not whisper:
        return {"video": _publish(build, video["path"], f"{out}/talk.mp4")}

    audio = build.call(extract_audio, key="audio", input={"path": talk["path"]})
    text = build.call(transcribe, key="text", input={"audio": audio["path"], "language": "en"})
    subtitled = build.call(
        add_subtitles,
        key="subtitled",
        input={"path": video["path"], "subtitles": text["path"], "language": "eng"},
    )
    return {
        "video": _publish(build, subtitled["path"], f"{out}/talk.mp4"),
        "subtitles": _publish(build, text["path"], f"{out}/talk.srt"),
        "words": text["words"],
    }


def _publish(build: Build, made: NodeHandle, target: str) -> NodeHandle:
    name = target.rpartition("/")[2]
    return build.call(
        publish,
        key=f"publish/{name}",
        input={"source": made, "target": target, "overwrite": True},
    )["path"]
