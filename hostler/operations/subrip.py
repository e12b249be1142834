"""SubRip subtitles: segments of speech as text, pure."""

import re
from collections.abc import Iterable
from typing import Final

from store.lazy_dataclass import dataclass

_CUE: Final = re.compile(r"^\s*\d+:\d\d:\d\d[,.]\d+\s*-->\s*\d+:\d\d:\d\d[,.]\d+", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of speech.

    Attributes:
        start_s: Seconds from the beginning.
        end_s: Likewise; not before the start.
        text: What is said.

    """

    start_s: float
    end_s: float
    text: str


def clean(text: str) -> str:
    """Return *text* as one line that cannot be taken for a part of the format."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(printable.replace("-->", "->").split())


def subrip(segments: Iterable[Segment]) -> str:
    """Return the segments as a SubRip file; those without text are left out."""
    blocks: list[str] = []
    for segment in segments:
        text = clean(segment.text)
        if text:
            start, end = timestamp(segment.start_s), timestamp(max(segment.start_s, segment.end_s))
            blocks.append(f"{len(blocks) + 1}\n{start} --> {end}\n{text}\n")
    return "\n".join(blocks)


def has_cue(text: str) -> bool:
    """Say whether *text* holds at least one subtitle of that format."""
    return _CUE.search(text) is not None


def timestamp(seconds: float) -> str:
    """Return *seconds* as `HH:MM:SS,mmm`."""
    milliseconds = max(0, round(seconds * 1000))
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, milliseconds = divmod(milliseconds, 1000)
    return f"{hours:02}:{minutes:02}:{whole:02},{milliseconds:03}"
