"""What colour means what in pictures. They differ in lightness too, or are hatched; text on paper is dark. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from hostler.pictures.timeline import Phase
from store.lifecycle import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    """How a stretch is filled.

    Attributes:
        colour: `#rrggbb`; of the lines, where it is hatched.
        ground: Between the lines; None is not hatched.
        part: How much of the height of a bar it takes: work is thicker than waiting.

    """

    colour: str
    ground: str | None = None
    part: float = 1.0


PHASES: Final[Mapping[Phase, Paint]] = MappingProxyType(
    {
        Phase.DEPENDENCIES: Paint(colour="#e9ecef", part=0.4),
        Phase.ROOM: Paint(colour="#ced4da", part=0.4),
        Phase.PREPARING: Paint(colour="#0ca678", part=0.7),
        Phase.PERSON: Paint(colour="#f2b705", part=0.4),
        Phase.MACHINE: Paint(colour="#74b3e8", part=0.4),
        Phase.RAN: Paint(colour="#1f5fa8"),
        Phase.CHECKED: Paint(colour="#0b7285", ground="#c5f0f7"),
        Phase.FAILED: Paint(colour="#96150f"),
        Phase.CANCELLED: Paint(colour="#6b7480"),
        Phase.INTERRUPTED: Paint(colour="#d9630b", ground="#ffe2cc"),
        Phase.LOST: Paint(colour="#868e96", ground="#ffffff", part=0.7),
        Phase.RETRY: Paint(colour="#d77a72", part=0.4),
    }
)

HELD: Final = Paint(colour="#5c7fb8")
PERHAPS: Final = Paint(colour="#5c7fb8", ground="#ffffff")
CAPACITY: Final = "#1b1f24"
NOBODY: Final = "#fbdcd3"
NOBODY_THERE: Final = Paint(colour="#fdeee9")
FOLD: Final = "#fffbe8"

STATUSES: Final[Mapping[Status, str]] = MappingProxyType(
    {
        **dict.fromkeys((Status.PENDING, Status.READY, Status.SKIPPED), "#f1f3f5"),
        **dict.fromkeys((Status.PREPARING, Status.QUEUED, Status.CORRECTIVE), "#d0ebff"),
        **dict.fromkeys((Status.RUNNING, Status.VERIFYING), "#8cc4f5"),
        **dict.fromkeys((Status.APPROVAL_REQUIRED, Status.BLOCKED, Status.AMBIGUOUS, Status.AMBIGUOUS_CODE), "#ffe58a"),
        Status.COMPLETED: "#c3e9cd",
        Status.CANCELLED: "#ced4da",
        **dict.fromkeys((Status.FAILED, Status.INCOMPATIBLE), "#f5b5b0"),
    }
)
"""What a node of that status is filled with in a graph; light enough for dark text."""


def lightness(colour: str) -> float:
    """Return how light a colour looks, 0 (black) to 100 (white): L* of CIE 1976.

    Args:
        colour: `#rrggbb`.

    """
    linear = [_linear(int(colour[place : place + 2], 16) / 255) for place in (1, 3, 5)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 116 * luminance ** (1 / 3) - 16 if luminance > 0.008856 else 903.3 * luminance


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)
