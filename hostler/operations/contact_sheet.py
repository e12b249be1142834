"""`media.thumbnail`: one picture of a whole clip, with frames from beginning to end in rows and columns."""

import shutil
import struct
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from actors.context import Context, OperationFailed
from hostler.authoring import operation
from hostler.operations.ffmpeg import encode, require_file, write
from hostler.operations.ffmpeg_faults import READ_THE_LOG
from hostler.operations.media_files import WRITES, Model, Source, lacks
from hostler.operations.probing import probe_file
from store.policy import FailureCode

DOING: Final = "making a contact sheet"
GAP: Final = 4
"""Pixels around and between frames."""
WIDEST: Final = 8192
"""Pixels that all frames of a row may have, and as many rows of them: what a machine can hold at once."""
_PNG_SIZE: Final = struct.Struct(">16x2I")


class ThumbnailInput(Source):
    """Which frames go into the picture.

    Attributes:
        rows: How many rows of frames.
        columns: How many frames a row has.
        width: Of one frame, pixels; its height keeps the shape.
        format: `jpg`, or `png`, which loses nothing.

    """

    rows: int = Field(default=3, ge=1, le=10)
    columns: int = Field(default=4, ge=1, le=10)
    width: int = Field(default=320, ge=16, le=4096, multiple_of=2)
    format: Literal["jpg", "png"] = "jpg"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if max(self.rows, self.columns) * self.width > WIDEST:
            raise ValueError(f"the picture is too large: rows and columns times width may be {WIDEST} at most")
        return self


class Picture(Model):
    """A picture an operation made.

    Attributes:
        path: Absolute.
        width: Pixels.
        height: Pixels.
        bytes: Size.

    """

    path: str
    width: int
    height: int
    bytes: int


@operation("media.thumbnail", version=1, policy=WRITES)
def thumbnail(ctx: Context, input: ThumbnailInput) -> Picture:
    """Put frames from a whole video into one picture, a contact sheet."""
    source = require_file(ctx, input.path)
    inside = probe_file(ctx, source)
    if inside.video is None:
        raise lacks(source, "picture")
    length_s = inside.video.seconds or inside.seconds
    if length_s is None:
        raise OperationFailed(
            FailureCode.INVALID_DATA,
            f"{source} does not tell its length, so no frames can be chosen from it",
            "give a video in a container that tells it; media.transcode makes one",
        )
    frames = input.rows * input.columns
    size: tuple[int, int] | None = None
    for number in range(frames):
        # from the middle of each part, so that the first is not the black before and the last not past the end
        frame = _frame(ctx, source, number, at_s=length_s * (number + 0.5) / frames, width=input.width, size=size)
        size = size or _size(frame)
        ctx.progress((number + 1) / (frames + 1), DOING)
    assert size is not None
    made = _sheet(ctx, input)
    ctx.progress(1.0, DOING)
    return Picture(
        path=str(made),
        width=input.columns * (size[0] + GAP) + GAP,
        height=input.rows * (size[1] + GAP) + GAP,
        bytes=made.stat().st_size,
    )


def _frame(ctx: Context, source: Path, number: int, *, at_s: float, width: int, size: tuple[int, int] | None) -> Path:
    """Take one frame; ffmpeg goes to it by itself, so that a long film costs no more than a short one."""
    # with square pixels; all like the first one, since a stream may change its shape on the way
    scale = f"scale={width}:max(2\\,trunc(ow/dar/2)*2)" if size is None else f"scale={size[0]}:{size[1]}"
    options = ["-map", "0:V:0", "-frames:v", "1", "-update", "1", "-c:v", "png", "-pix_fmt", "rgb24"]
    name = f"frame-{number:03}.png"
    made = write(
        ctx,
        inputs=[(["-ss", f"{at_s:.3f}"], source)],
        options=[*options, "-vf", f"{scale},setsar=1"],
        name=name,
    )
    if made is not None:
        return made
    before = ctx.workspace / f"frame-{number - 1:03}.png"
    if not before.exists():
        raise OperationFailed(
            FailureCode.MALFORMED_OUTPUT, f"{source} has no frame at {at_s:.1f} s", "check the file with a player"
        )
    # nothing begins after the one before, which is therefore what is seen
    return Path(shutil.copyfile(before, ctx.workspace / name))


def _sheet(ctx: Context, input: ThumbnailInput) -> Path:
    """Join the frames."""
    # the folder's own name must not be taken for a pattern
    frames = Path(str(ctx.workspace).replace("%", "%%")) / "frame-%03d.png"
    joined = f"tile={input.columns}x{input.rows}:padding={GAP}:margin={GAP}:color=black"
    options = ["-frames:v", "1", "-update", "1", "-vf", joined]
    options += ["-c:v", "png"] if input.format == "png" else ["-c:v", "mjpeg", "-q:v", "3", "-pix_fmt", "yuvj420p"]
    return encode(
        ctx,
        inputs=[(["-f", "image2", "-framerate", "1"], frames)],
        options=options,
        name=f"sheet.{input.format}",
        duration_s=None,
        doing=DOING,
    )


def _size(png: Path) -> tuple[int, int]:
    """Return width and height of a PNG."""
    with png.open("rb") as file:
        head = file.read(_PNG_SIZE.size)
    if len(head) < _PNG_SIZE.size:
        raise OperationFailed(FailureCode.MALFORMED_OUTPUT, f"{png.name} is no picture", READ_THE_LOG)
    width, height = _PNG_SIZE.unpack(head)
    return width, height
