"""What is inside a media file, by ffprobe where the system has it, else by PyAV.

Both run in a process of their own: a damaged file may crash a decoder, and a process can be ended.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from actors.context import Completed, Context, OperationFailed
from hostler.operations.ffmpeg import INSTALL, find_ffprobe, url
from hostler.operations.ffmpeg_faults import complaint, failure
from store.policy import FailureCode

ENTRIES: Final = (
    "format=format_name,duration"
    ":stream=codec_type,codec_name,width,height,avg_frame_rate,sample_rate,channels,duration"
    ":stream_disposition=attached_pic:stream_tags=language"
)
AV_PROBE: Final = Path(__file__).with_name("av_probe.py")
NOT_INSTALLED: Final = 3
"""Exit code of `av_probe.py` where PyAV is missing."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Video(_Model):
    """The first moving picture of a file.

    Attributes:
        fps: Frames per second on average, None if unknown.
        seconds: Its own length, None if the container does not tell.

    """

    codec: str
    width: int
    height: int
    fps: float | None = None
    seconds: float | None = None


class Audio(_Model):
    """The first sound of a file.

    Attributes:
        sample_rate: Hz.
        seconds: Its own length, None if the container does not tell.

    """

    codec: str
    sample_rate: int
    channels: int
    seconds: float | None = None


class Subtitles(_Model):
    """One subtitle stream."""

    codec: str
    language: str | None = None


class Media(_Model):
    """What is inside a media file.

    Attributes:
        path: Absolute.
        format: Names of the container as the ffmpeg family calls it.
        seconds: Length, None if unknown.
        bytes: Size of the file.

    """

    path: str
    format: str
    bytes: int
    seconds: float | None = None
    video: Video | None = None
    audio: Audio | None = None
    subtitles: tuple[Subtitles, ...] = Field(default=())


def probe_file(ctx: Context, path: Path) -> Media:
    """Return what is inside *path*.

    Raises:
        OperationFailed: It is not media, or there is nothing to probe it with.

    """
    ffprobe = find_ffprobe(ctx.environment())
    if ffprobe is not None:
        described = _ask(
            ctx, [str(ffprobe), "-v", "level+error", "-of", "json", "-show_entries", ENTRIES, url(path)], path
        )
    else:
        described = _ask(ctx, [sys.executable, "-P", str(AV_PROBE), url(path)], path)
    return describe(described, path)


def _ask(ctx: Context, argv: list[str], path: Path) -> Any:
    said = bytearray()
    completed = ctx.run(argv, on_stdout=said.extend, check=False)
    if completed.code != 0:
        raise _unreadable(Path(argv[0]).name, path, completed)
    try:
        return json.loads(said.decode("utf-8", "replace"))
    except ValueError:
        raise OperationFailed(
            FailureCode.MALFORMED_OUTPUT,
            f"{Path(argv[0]).name} answered with something other than JSON",
            INSTALL,
        ) from None


def _unreadable(program: str, path: Path, completed: Completed) -> OperationFailed:
    if completed.code == NOT_INSTALLED:
        return OperationFailed(
            FailureCode.UNAVAILABLE,
            "neither ffprobe (searched PATH) nor the package av is there to look into media files",
            INSTALL,
        )
    if completed.code != 1:
        return failure(program, completed.code, completed.stderr)
    return OperationFailed(
        FailureCode.INVALID_DATA,
        f"{path} cannot be read as media: {complaint(completed.stderr)}",
        "check the file with a player; it may be cut, empty or of another kind",
    )


def describe(probed: Any, path: Path) -> Media:
    """Return ffprobe's JSON (or that of `av_probe.py`, which has the same shape) as a `Media`.

    Args:
        probed: The parsed JSON; anything it lacks is unknown.
        path: The file.

    """
    container = _object(probed, "format")
    streams = probed.get("streams") if isinstance(probed, dict) else None
    video: Video | None = None
    audio: Audio | None = None
    subtitles: list[Subtitles] = []
    for stream in streams if isinstance(streams, list) else []:
        codec = str(stream.get("codec_name") or "unknown")
        match stream.get("codec_type"):
            case "video" if video is None and not _object(stream, "disposition").get("attached_pic"):
                video = Video(
                    codec=codec,
                    width=_whole(stream.get("width")),
                    height=_whole(stream.get("height")),
                    fps=_ratio(stream.get("avg_frame_rate")),
                    seconds=_seconds(stream.get("duration")),
                )
            case "audio" if audio is None:
                audio = Audio(
                    codec=codec,
                    sample_rate=_whole(stream.get("sample_rate")),
                    channels=_whole(stream.get("channels")),
                    seconds=_seconds(stream.get("duration")),
                )
            case "subtitle":
                language = _object(stream, "tags").get("language")
                subtitles.append(Subtitles(codec=codec, language=str(language) if language else None))
    return Media(
        path=str(path),
        format=str(container.get("format_name") or "unknown"),
        bytes=path.stat().st_size,
        seconds=_seconds(container.get("duration")),
        video=video,
        audio=audio,
        subtitles=tuple(subtitles),
    )


def _object(value: Any, name: str) -> dict[str, Any]:
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def _seconds(value: Any) -> float | None:
    number = _number(value)
    return round(number, 3) if number is not None else None


def _whole(value: Any) -> int:
    return int(_number(value) or 0)


def _ratio(value: Any) -> float | None:
    above, _, below = str(value).partition("/")
    numerator, denominator = _number(above), _number(below or 1)
    return round(numerator / denominator, 3) if numerator and denominator else None
