"""From seconds to places on paper: long stretches in which nothing is done are folded, and say so. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from hostler.pictures.timeline import WORK, Timeline

FOLD_PX: Final = 64.0
MIN_FOLDED_S: Final = 10.0
MAX_FOLDS: Final = 6

_STEPS_S: Final = (
    *(base * 10.0**power for power in range(-3, 1) for base in (1, 2, 5)),
    *(10, 20, 30, 60, 120, 300, 600, 1200, 1800),
    *(hours * 3600 for hours in (1, 2, 3, 6, 12, 24, 48, 120, 240, 720, 2400, 8760)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A stretch of time that is drawn at one scale.

    Attributes:
        folded: Whether it is drawn shorter than the others, with its length written into it.

    """

    start_s: float
    end_s: float
    start_px: float
    end_px: float
    folded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The time axis.

    Attributes:
        pieces: Without gaps, in order.

    """

    pieces: tuple[Piece, ...]

    def x(self, s: float) -> float:
        """Return the place of a moment, pixels; what lies outside is moved to the nearer end."""
        index = bisect_right(self.pieces, s, key=lambda piece: piece.start_s) - 1
        piece = self.pieces[max(index, 0)]
        part = (s - piece.start_s) / (piece.end_s - piece.start_s)
        return piece.start_px + min(max(part, 0.0), 1.0) * (piece.end_px - piece.start_px)

    def ticks(self, apart_px: float) -> tuple[float, list[float]]:
        """Return the step of the axis, seconds, and the moments to name.

        Args:
            apart_px: How far apart two names must be at least.

        """
        drawn = [piece for piece in self.pieces if not piece.folded]
        px_a_second = max((p.end_px - p.start_px) / (p.end_s - p.start_s) for p in drawn)
        step = next((step for step in _STEPS_S if step * px_a_second >= apart_px), _STEPS_S[-1])
        found: list[float] = []
        last_px = -apart_px
        for piece in drawn:
            number = -int(-piece.start_s // step)
            while number * step <= piece.end_s:
                px = self.x(number * step)
                if px - last_px >= apart_px * 0.99:
                    found.append(number * step)
                    last_px = px
                number += 1
        return step, found


def scale_of(timeline: Timeline, *, left_px: float, right_px: float) -> Scale:
    """Lay the time of a run between two places on paper.

    A stretch in which nothing is done for any node, longer than all the work together, is folded; else a night of
    waiting for a person would leave nothing to see of the minutes of work before and after it.

    Args:
        timeline: The run.
        left_px: Where it begins.
        right_px: Where it ends.

    """
    length_s = timeline.length_s or 1.0
    busy = merged((span.start_s, span.end_s) for bar in timeline.bars for span in bar.spans if span.phase in WORK)
    work_s = sum(end_s - start_s for start_s, end_s in busy)
    edges = [0.0, *(edge for stretch in busy for edge in stretch), length_s]
    idle = [(edges[i], edges[i + 1]) for i in range(0, len(edges), 2)]
    longest = sorted(((end - start, start, end) for start, end in idle), reverse=True)[:MAX_FOLDS]
    folds = sorted((start, end) for long_s, start, end in longest if work_s and long_s > max(work_s, MIN_FOLDED_S))
    width_px = right_px - left_px
    fold_px = min(FOLD_PX, width_px / 3 / max(len(folds), 1))
    open_s = length_s - sum(end - start for start, end in folds)
    px_a_second = (width_px - fold_px * len(folds)) / open_s
    return Scale(pieces=tuple(_pieces(folds, length_s, left_px, px_a_second, fold_px)))


def _pieces(
    folds: Sequence[tuple[float, float]], length_s: float, left_px: float, px_a_second: float, fold_px: float
) -> Iterable[Piece]:
    at_s, at_px = 0.0, left_px
    for start_s, end_s in [*folds, (length_s, length_s)]:
        if start_s > at_s:
            until_px = at_px + (start_s - at_s) * px_a_second
            yield Piece(start_s=at_s, end_s=start_s, start_px=at_px, end_px=until_px)
            at_px = until_px
        if end_s > start_s:
            yield Piece(start_s=start_s, end_s=end_s, start_px=at_px, end_px=at_px + fold_px, folded=True)
            at_px += fold_px
        at_s = end_s


def merged(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the stretches of time that any of them covers, in order."""
    found: list[tuple[float, float]] = []
    for start_s, end_s in sorted(stretches):
        if found and start_s <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end_s)
        else:
            found.append((start_s, end_s))
    return found


def tick_text(s: float, *, step_s: float, length_s: float) -> str:
    """Return a moment as the axis names it.

    Args:
        s: Seconds.
        step_s: Of the axis.
        length_s: Of the whole axis; it decides the unit, see `unit_text`.

    """
    decimals = 0 if step_s >= 1 else len(f"{step_s:g}".partition(".")[2])
    if length_s < SECONDS_BELOW_S:
        return f"{s:.{decimals}f}"
    minutes, rest = divmod(round(s, 3), 60)
    seconds = f"{rest:0{3 + decimals if decimals else 2}.{decimals}f}"
    if length_s < MINUTES_BELOW_S:
        return f"{minutes:.0f}:{seconds}"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:.0f}:{minutes:02.0f}" if step_s >= 60 else f"{hours:.0f}:{minutes:02.0f}:{seconds}"


SECONDS_BELOW_S: Final = 150.0
MINUTES_BELOW_S: Final = 7200.0


def unit_text(*, step_s: float, length_s: float) -> str:
    """Return the unit of `tick_text`."""
    if length_s < SECONDS_BELOW_S:
        return "seconds"
    if length_s < MINUTES_BELOW_S:
        return "min:s"
    return "h:min" if step_s >= 60 else "h:min:s"
