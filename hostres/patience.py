"""How long the oldest waiter lets younger ones pass, before what it needs is kept for it."""

import math
from typing import Final, NamedTuple, Self

from hostres.errors import Code, HostlerError

_SECOND_NS: Final = 1_000_000_000
_MOST_S: Final = 86_400.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


class _Numbers(NamedTuple):
    factor: float
    least_s: float
    most_s: float


class Patience(_Numbers):
    """A multiple of the average turn, within bounds.

    Short, it serves big claims sooner; long, it lets more small ones pass. A multiple, as what is long on one
    machine is nothing on another.

    Attributes:
        factor: How many average turns, from asking to release.
        least_s: But at least so many seconds.
        most_s: And at most so many.

    Raises:
        HostlerError: `invalid-profile`: not such numbers.

    """

    __slots__ = ()

    def __new__(cls, *, factor: float = 6.0, least_s: float = 2.0, most_s: float = 600.0) -> Self:
        """Refuse what is no patience."""
        numbers = (factor, least_s, most_s)
        if not all(_is_number(number) for number in numbers) or not least_s <= most_s <= _MOST_S:
            raise HostlerError(
                Code.INVALID_PROFILE,
                f"a patience of factor {factor!r} from {least_s!r} s to {most_s!r} s",
                "use numbers of at least 0, the least no more than the most, and that no more than 24 h",
            )
        return super().__new__(cls, *numbers)

    def after(self, turnaround_ns: int) -> int:
        """Return it in nanoseconds.

        Args:
            turnaround_ns: Moving average of a turn; 0 before the first.

        """
        return int(min(max(self.factor * turnaround_ns, self.least_s * _SECOND_NS), self.most_s * _SECOND_NS))

    def to_json(self) -> dict[str, float]:
        """Return it as it stands in `state.json`."""
        return self._asdict()


DEFAULT: Final = Patience()
"""In force as long as no program has set another."""
