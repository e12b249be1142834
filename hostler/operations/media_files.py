"""What the media operations share: what they claim, what they are given, what they give back."""

from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from actors.context import Context, OperationFailed
from hostler.operations.ffmpeg import encode
from hostler.operations.probing import probe_file
from store.policy import Effect, FailureCode, Policy, Resume

CLAIMS: Final = {"ffmpeg": 1, "cpu": 1}
WRITES: Final = Policy(
    effect=Effect.LOCAL_DERIVED_WRITE, resume=Resume.DETERMINISTIC, claims=CLAIMS, max_seconds=12 * 3600
)
SHORTER_S: Final = 2.0
SHORTER_FRACTION: Final = 0.05
"""A result that lacks more than both of these of its source was cut."""

CodecName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
Even = Annotated[int, Field(ge=2, le=16_384, multiple_of=2)]


class Model(BaseModel):
    """A value that nobody changes, with no fields but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Model):
    """A media file.

    Attributes:
        path: Relative to the run's folder, or absolute.

    """

    path: str = Field(min_length=1)


class Encoding(Source):
    """A video, and how its picture and sound are encoded.

    Attributes:
        codec: Video encoder, by ffmpeg's name.
        preset: The encoder's preset, `veryfast`; None is its own default.
        crf: Constant quality, lower is better; None is the encoder's default.
        audio_codec: Audio encoder; `copy` keeps the sound as it is.
        container: Suffix of the result's file name, which decides its format.
        allow_shorter: Do not fail when the result is shorter than its source.

    """

    codec: CodecName = "libx264"
    preset: CodecName | None = None
    crf: int | None = Field(default=None, ge=0, le=63)
    audio_codec: CodecName = "aac"
    container: str = Field(default="mp4", pattern=r"^[a-z0-9]{1,8}$")
    allow_shorter: bool = False

    def options(self, filters: list[str]) -> list[str]:
        """Return ffmpeg's options for the first picture and the first sound.

        Args:
            filters: Through which the picture goes, in order.

        """
        options = ["-map", "0:V:0", "-map", "0:a:0?", "-sn", "-dn", "-c:v", self.codec, "-c:a", self.audio_codec]
        options += ["-vf", ",".join(filters)] if filters else []
        options += ["-preset", self.preset] if self.preset is not None else []
        options += ["-crf", str(self.crf)] if self.crf is not None else []
        options += ["-pix_fmt", "yuv420p"] if self.codec in {"libx264", "libx265"} else []
        return options + index_first(self.container)


class MediaFile(Model):
    """A file an operation made.

    Attributes:
        path: Absolute.
        seconds: Length.
        bytes: Size.

    """

    path: str
    seconds: float
    bytes: int


def lacks(source: Path, what: str) -> OperationFailed:
    """Return the failure of a source without a picture, or without sound."""
    return OperationFailed(FailureCode.INVALID_DATA, f"{source} has no {what}", "choose another file")


def index_first(container: str) -> list[str]:
    """Return the options that let a player start before it has the whole file."""
    return ["-movflags", "+faststart"] if container in {"mp4", "mov", "m4v", "m4a"} else []


def finished(ctx: Context, made: Path, *, expected_s: float | None) -> MediaFile:
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


def encoded(
    ctx: Context, input: Encoding, source: Path, filters: list[str], *, seconds: float | None, doing: str
) -> MediaFile:
    """Encode a video anew and say what was made.

    Args:
        ctx: The node's context.
        input: How it is encoded.
        source: The video.
        filters: ffmpeg's, of its picture.
        seconds: Its length, if that is known.
        doing: What progress says that it does.

    Raises:
        OperationFailed: It could not be encoded, or came out too short.

    """
    made = encode(
        ctx,
        inputs=[([], source)],
        options=input.options(filters),
        name=f"video.{input.container}",
        duration_s=seconds,
        doing=doing,
    )
    return finished(ctx, made, expected_s=None if input.allow_shorter else seconds)
