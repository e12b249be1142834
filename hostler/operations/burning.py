"""`media.burn-subtitles`: subtitles drawn into the picture, for players and sites that show none of their own.

The text is copied under a plain name first: ffmpeg's filters read quotes, colons, commas and brackets of a path as
syntax. What draws it is libass, and where that finds no font it draws nothing and ffmpeg ends with 0. So one frame with
every letter is drawn before the rest, and what libass says of it is read.
"""

import re
from pathlib import Path
from typing import Final

from pydantic import Field

from actors.context import Context, OperationFailed
from hostler.authoring import operation
from hostler.operations.ffmpeg import cpu_threads, find_ffmpeg, require_file, url
from hostler.operations.ffmpeg_faults import failure
from hostler.operations.media_files import WRITES, Encoding, MediaFile, encoded, lacks
from hostler.operations.probing import probe_file
from hostler.operations.subrip import Segment, decoded, has_cue, letters, subrip
from store.policy import FailureCode

NAME: Final = "subtitles.srt"
LETTERS: Final = "letters.srt"
LONG_S: Final = 359_999.0
"""From the beginning to here every letter is shown, whatever the time of the first frame is."""
MOST_BYTES: Final = 16 << 20
SHOWN: Final = 12
_UNDRAWN: Final = re.compile(rb"failed to find any fallback with glyph 0x([0-9A-Fa-f]+)")
_NO_FILTER: Final = b"No such filter: 'subtitles'"
STREAM: Final = "media.add-subtitles needs neither, and keeps them apart from the picture"


class BurnSubtitlesInput(Encoding):
    """A video, the subtitles drawn into it, and how it is encoded.

    Attributes:
        subtitles: A SubRip file.
        encoding: Of its text, by Python's name, `cp1252`; None is UTF-8, or what its byte order mark says.
        font_size: In lines of a picture of 288 lines, whatever size the real one has; None is libass's own.
        allow_missing_letters: Do not fail when no font has some of its letters.

    """

    subtitles: str = Field(min_length=1)
    encoding: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=40)
    font_size: int | None = Field(default=None, ge=4, le=144)
    allow_missing_letters: bool = False


@operation("media.burn-subtitles", version=1, policy=WRITES)
def burn_subtitles(ctx: Context, input: BurnSubtitlesInput) -> MediaFile:
    """Draw subtitles into the picture of a video, which is encoded anew."""
    source = require_file(ctx, input.path)
    text = _text(require_file(ctx, input.subtitles), input.encoding)
    inside = probe_file(ctx, source)
    if inside.video is None:
        raise lacks(source, "picture")
    filters = []
    if text:
        style = "" if input.font_size is None else f":force_style=FontSize={input.font_size}"
        (ctx.workspace / NAME).write_text(text, encoding="utf-8")
        _draw_letters(ctx, source, text, allow_missing=input.allow_missing_letters)
        filters.append(f"subtitles={NAME}{style}")
    return encoded(ctx, input, source, filters, seconds=inside.seconds, doing="burning subtitles")


def _text(subtitles: Path, encoding: str | None) -> str:
    """Return what a SubRip file says; nothing where nobody speaks."""
    if subtitles.stat().st_size > MOST_BYTES:
        what = f"{subtitles} has {subtitles.stat().st_size:,} bytes, more than subtitles have"
        raise OperationFailed(FailureCode.INVALID_DATA, what, "give a SubRip file (.srt)")
    try:
        text = decoded(subtitles.read_bytes(), encoding)
    except UnicodeDecodeError as error:
        raise OperationFailed(
            FailureCode.INVALID_DATA,
            f"{subtitles} is not {encoding or 'UTF-8'}: {error.reason} at byte {error.start}",
            "say how its text is encoded, as in encoding = cp1252, or save it as UTF-8",
        ) from None
    except LookupError:
        raise OperationFailed(
            FailureCode.INVALID_DATA, f"there is no text encoding {encoding}", "name one that Python knows, as cp1252"
        ) from None
    if text.strip() and not has_cue(text):
        raise OperationFailed(
            FailureCode.INVALID_DATA, f"{subtitles} holds no SubRip subtitle", "give a file of that format (.srt)"
        )
    return text if text.strip() else ""


def _draw_letters(ctx: Context, source: Path, text: str, *, allow_missing: bool) -> None:
    """Draw every letter once, into the first frame, and throw that away.

    Raises:
        OperationFailed: This ffmpeg cannot, there is no font, or none has some of the letters.

    """
    every = Segment(start_s=0.0, end_s=LONG_S, text=letters(text))
    (ctx.workspace / LETTERS).write_text(subrip([every]), encoding="utf-8")
    ffmpeg, threads = find_ffmpeg(ctx.environment()), str(cpu_threads(ctx))
    argv: list[str] = [str(ffmpeg), "-nostdin", "-hide_banner", "-loglevel", "level+info", "-filter_threads", threads]
    argv += ["-threads", threads, "-i", url(source), "-map", "0:V:0", "-frames:v", "1"]
    completed = ctx.run([*argv, "-vf", f"subtitles={LETTERS}", "-f", "null", "-"], check=False)
    if _NO_FILTER in completed.stderr:
        raise OperationFailed(
            FailureCode.UNSUPPORTED_PLAN,
            f"{ffmpeg} was built without libass, which draws subtitles",
            f"install a full build, or take it off PATH for the one of pip install 'hostler[media]'; {STREAM}",
        )
    if completed.code != 0:
        raise failure("ffmpeg", completed.code, completed.stderr)
    undrawn = list(dict.fromkeys(int(each, 16) for each in _UNDRAWN.findall(completed.stderr)))
    if 0 in undrawn:
        raise OperationFailed(
            FailureCode.UNSUPPORTED_PLAN,
            "there is no font with which subtitles could be drawn",
            f"install one, as the package fonts-dejavu-core, for fontconfig to find; {STREAM}",
        )
    if undrawn and not allow_missing:
        shown = " ".join(f"{chr(each)} (U+{each:04X})" for each in undrawn[:SHOWN])
        more = f" and {len(undrawn) - SHOWN} more" if len(undrawn) > SHOWN else ""
        raise OperationFailed(
            FailureCode.UNSUPPORTED_PLAN,
            f"no font here has the letters {shown}{more}",
            "install one that has, as the package fonts-noto-cjk, or set allow_missing_letters",
        )
