"""Media operations: look into a file, transcode it, take its sound, give it subtitles.

Each writes into its own workspace and returns where the result lies; `files.publish` gives it a name outside.
"""

from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from actors.context import Context, OperationFailed
from hostler.authoring import operation
from hostler.operations.ffmpeg import encode, require_file
from hostler.operations.probing import Media, probe_file
from hostler.operations.subrip import has_cue
from store.policy import Effect, FailureCode, Policy, Resume

CLAIMS: Final = {"ffmpeg": 1, "cpu": 1}
SHORTER_S: Final = 2.0
SHORTER_FRACTION: Final = 0.05
"""A result that lacks more than both of these of its source was cut."""

CodecName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
Even = Annotated[int, Field(ge=2, le=16_384, multiple_of=2)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(_Model):
    """A media file.

    Attributes:
        path: Relative to the run's folder, or absolute.

    """

    path: str = Field(min_length=1)


class TranscodeInput(Source):
    """What to make of a video.

    Attributes:
        width: Pixels; with no height, the picture keeps its shape. None keeps the size.
        height: Pixels, likewise.
        codec: Video encoder, by ffmpeg's name.
        preset: The encoder's preset, `veryfast`; None is its own default.
        crf: Constant quality, lower is better; None is the encoder's default.
        audio_codec: Audio encoder; `copy` keeps the sound as it is.
        filters: A chain of ffmpeg's video filters, applied after scaling.
        container: Suffix of the result's file name, which decides its format.
        allow_shorter: Do not fail when the result is shorter than its source.

    """

    width: Even | None = None
    height: Even | None = None
    codec: CodecName = "libx264"
    preset: CodecName | None = None
    crf: int | None = Field(default=None, ge=0, le=63)
    audio_codec: CodecName = "aac"
    filters: str = ""
    container: str = Field(default="mp4", pattern=r"^[a-z0-9]{1,8}$")
    allow_shorter: bool = False


class ExtractAudioInput(Source):
    """Which sound to take.

    Attributes:
        sample_rate: Hz; 16,000 is what speech recognition takes.
        channels: 1 mixes down to mono.
        allow_shorter: Do not fail when the result is shorter than its source.

    """

    sample_rate: int = Field(default=16_000, ge=8_000, le=192_000)
    channels: int = Field(default=1, ge=1, le=8)
    allow_shorter: bool = False


class AddSubtitlesInput(Source):
    """A video and the subtitles it gets.

    Attributes:
        subtitles: A SubRip file.
        language: Three-letter code of their language (ISO 639-2), `eng`; `und` where it is unknown.

    """

    subtitles: str = Field(min_length=1)
    language: str = Field(default="und", pattern=r"^[a-z]{3}$")


class MediaFile(_Model):
    """A file an operation made.

    Attributes:
        path: Absolute.
        seconds: Length.
        bytes: Size.

    """

    path: str
    seconds: float
    bytes: int


@operation("media.probe", version=1, policy=Policy(effect=Effect.LOCAL_READ, claims=CLAIMS, max_seconds=300))
def probe(ctx: Context, input: Source) -> Media:
    """Say what is inside a media file."""
    return probe_file(ctx, require_file(ctx, input.path))


_WRITES: Final = Policy(
    effect=Effect.LOCAL_DERIVED_WRITE, resume=Resume.DETERMINISTIC, claims=CLAIMS, max_seconds=12 * 3600
)


@operation("media.transcode", version=1, policy=_WRITES)
def transcode(ctx: Context, input: TranscodeInput) -> MediaFile:
    """Encode a video anew: other size, codec, quality or container."""
    source = require_file(ctx, input.path)
    inside = probe_file(ctx, source)
    if inside.video is None:
        raise _lacks(source, "picture")
    filters = [part for part in (_scale(input.width, input.height), input.filters.strip()) if part]
    options = [
        "-map",
        "0:V:0",
        "-map",
        "0:a:0?",
        "-sn",
        "-dn",
        "-c:v",
        input.codec,
        "-c:a",
        input.audio_codec,
    ]
    options += ["-vf", ",".join(filters)] if filters else []
    options += ["-preset", input.preset] if input.preset is not None else []
    options += ["-crf", str(input.crf)] if input.crf is not None else []
    options += ["-pix_fmt", "yuv420p"] if input.codec in {"libx264", "libx265"} else []
    options += _index_first(input.container)
    made = encode(
        ctx,
        inputs=[([], source)],
        options=options,
        name=f"video.{input.container}",
        duration_s=inside.seconds,
        doing="transcoding",
    )
    return _finished(ctx, made, expected_s=None if input.allow_shorter else inside.seconds)


@operation("media.extract-audio", version=1, policy=_WRITES)
def extract_audio(ctx: Context, input: ExtractAudioInput) -> MediaFile:
    """Take the first sound of a file, as a WAV that speech recognition can read."""
    source = require_file(ctx, input.path)
    inside = probe_file(ctx, source)
    if inside.audio is None:
        raise _lacks(source, "sound")
    options = ["-map", "0:a:0", "-vn", "-sn", "-dn", "-c:a", "pcm_s16le"]
    options += ["-ac", str(input.channels), "-ar", str(input.sample_rate)]
    made = encode(
        ctx,
        inputs=[([], source)],
        options=options,
        name="audio.wav",
        duration_s=inside.audio.seconds or inside.seconds,
        doing="extracting audio",
    )
    return _finished(ctx, made, expected_s=None if input.allow_shorter else inside.audio.seconds)


@operation("media.add-subtitles", version=1, policy=_WRITES)
def add_subtitles(ctx: Context, input: AddSubtitlesInput) -> MediaFile:
    """Put subtitles into an MP4 as a stream of its own; picture and sound are copied as they are."""
    source = require_file(ctx, input.path)
    subtitles = require_file(ctx, input.subtitles)
    if subtitles.stat().st_size and not has_cue(subtitles.read_text(errors="replace")):
        raise OperationFailed(
            FailureCode.INVALID_DATA, f"{subtitles} holds no SubRip subtitle", "give a file of that format (.srt)"
        )
    options = ["-map", "0:v", "-map", "0:a?", "-map", "1:s:0", "-c", "copy", "-c:s", "mov_text"]
    options += ["-metadata:s:s:0", f"language={input.language}", *_index_first("mp4")]
    # the format is named since ffmpeg cannot tell that of a file without a single subtitle
    made = encode(
        ctx,
        inputs=[([], source), (["-f", "srt"], subtitles)],
        options=options,
        name="video.mp4",
        duration_s=None,
        doing="adding subtitles",
    )
    return _finished(ctx, made, expected_s=None)


def _lacks(source: Path, what: str) -> OperationFailed:
    return OperationFailed(FailureCode.INVALID_DATA, f"{source} has no {what}", "choose another file")


def _scale(width: int | None, height: int | None) -> str:
    if width is None and height is None:
        return ""
    # -2: whatever keeps the shape, made even, as most encoders want it
    return f"scale={width or -2}:{height or -2}"


def _index_first(container: str) -> list[str]:
    """Let a player start before it has the whole file."""
    return ["-movflags", "+faststart"] if container in {"mp4", "mov", "m4v", "m4a"} else []


def _finished(ctx: Context, made: Path, *, expected_s: float | None) -> MediaFile:
    """Describe the result, having made sure that it is whole.

    ffmpeg ends with 0 when its source was cut in the middle, so its word is not enough.
    """
    inside = probe_file(ctx, made)
    if not inside.seconds:
        raise OperationFailed(
            FailureCode.MALFORMED_OUTPUT,
            f"{made.name} has no length",
            "read its log with: hostler logs RUN NODE",
        )
    if expected_s is not None:
        lacking_s = expected_s - inside.seconds
        if lacking_s > max(SHORTER_S, SHORTER_FRACTION * expected_s):
            raise OperationFailed(
                FailureCode.MALFORMED_OUTPUT,
                f"the result is {inside.seconds:.1f} s long, its source says {expected_s:.1f} s; "
                "the source seems cut or damaged",
                "check the source; if it is right, set allow_shorter",
            )
    return MediaFile(path=str(made), seconds=inside.seconds, bytes=inside.bytes)
