"""SubRip subtitles: segments of speech as text, pure."""

import codecs
import re
from collections.abc import Iterable
from typing import Final

from store.lazy_dataclass import dataclass

_CUE: Final = re.compile(r"^\s*\d+:\d\d:\d\d[,.]\d+\s*-->\s*\d+:\d\d:\d\d[,.]\d+", re.MULTILINE)

_MARKS: Final = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_SYNTAX: Final = frozenset("{}<>\\&")
"""What begins or ends a tag, an override or an entity."""
_WORD: Final = 20
"""Letters between two places where a line may be broken."""


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


def decoded(raw: bytes, encoding: str | None) -> str:
    """Return the text of a SubRip file, with plain line ends.

    Args:
        raw: Its bytes.
        encoding: How they are encoded; None is UTF-8, or what the byte order mark says.

    Raises:
        UnicodeDecodeError: They are not.
        LookupError: There is no such encoding.

    """
    marked = next((name for mark, name in _MARKS.items() if raw.startswith(mark)), None)
    return raw.decode(encoding or marked or "utf-8").removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def letters(text: str) -> str:
    """Return each letter once that a font must have to show *text*, in one line; nothing that formats text."""
    seen = sorted({letter for letter in text if letter.isprintable() and not letter.isspace()} - _SYNTAX)
    words = ("".join(seen[start : start + _WORD]) for start in range(0, len(seen), _WORD))
    return " ".join(words)


def timestamp(seconds: float) -> str:
    """Return *seconds* as `HH:MM:SS,mmm`."""
    milliseconds = max(0, round(seconds * 1000))
    minutes, milliseconds = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, milliseconds = divmod(milliseconds, 1000)
    return f"{hours:02}:{minutes:02}:{whole:02},{milliseconds:03}"
