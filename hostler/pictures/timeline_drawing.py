"""A timeline as an SVG document: what each resource was held for, and a bar for each node."""

from collections.abc import Sequence
from typing import Any, Final

from hostler.pictures.colours import CAPACITY, FOLD, HELD, NOBODY, NOBODY_THERE, PERHAPS, PHASES, Paint
from hostler.pictures.holding import Band
from hostler.pictures.paper import FAINT_INK, GRID, LINE, MONO, MONO_EM, SANS_EM, Paper, cut, px
from hostler.pictures.scale import Scale, scale_of, tick_text, unit_text
from hostler.pictures.timeline import ATTEMPTS, Bar, Phase, Timeline
from hostler.pictures.timeline_words import brief, origin, outcome, span_tip, step_tip, stretch, summary
from hostler.views.columns import shortened

WIDTH: Final = 1200.0
EDGE: Final = 16.0
KEY_LETTERS: Final = 36
KEY_SIZE: Final = 12.0
ROW: Final = 24.0
DENSE_ROW: Final = 18.0
DENSE_FROM: Final = 60
"""From so many nodes on, the rows stand closer."""
BAND: Final = 44.0
BAND_GAP: Final = 14.0
END_LETTERS: Final = 32
END_WIDTH: Final = 222.0
"""For what became of a node, on the right."""
LEGEND_ROW: Final = 20.0
TICK_APART: Final = 76.0
MIN_PX: Final = 1.5
"""An attempt is never drawn narrower, so that it is seen."""
SEEN_PX: Final = 2.0
"""The legend leaves out what is narrower wherever it stands."""
MAX_TIPS: Final = 400
"""So many stretches of a band at most say who held it."""


def timeline_svg(timeline: Timeline) -> str:
    """Return the picture.

    Raises:
        HostlerError: The drawing library is not installed (unavailable).

    """
    return _Sheet(timeline).svg()


class _Sheet:
    """Where everything is, from the top down."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        names = [bar.key for bar in timeline.bars]
        self._names = shortened(names, KEY_LETTERS)
        resources = [band.resource for band in timeline.bands]
        letters = max(map(len, [*self._names.values(), *resources, "no nodes"]))
        self._left = EDGE + min(letters, KEY_LETTERS) * KEY_SIZE * MONO_EM + 12
        self._right = WIDTH - EDGE - END_WIDTH
        self._row = DENSE_ROW if len(names) >= DENSE_FROM else ROW
        self._scale = scale_of(timeline, left_px=self._left, right_px=self._right)
        self._legend = _legend_rows(_meanings(timeline, self._scale), WIDTH - 2 * EDGE)
        self._legend_y = 62.0
        folds = any(piece.folded for piece in self._scale.pieces)
        self._bands_y = self._legend_y + len(self._legend) * LEGEND_ROW + (26 if folds else 12)
        self._rows_y = self._bands_y + len(timeline.bands) * (BAND + BAND_GAP) + 26
        self._foot_y = self._rows_y + max(len(names), 1) * self._row + 4
        self._paper = Paper(
            WIDTH, self._foot_y + 44, about=f"Timeline of {timeline.title}: {summary(timeline)}", ids="t"
        )
        self._paints = {paint: self._paint(paint) for paint in (*PHASES.values(), HELD, PERHAPS, NOBODY_THERE)}

    def svg(self) -> str:
        self._draw_head()
        self._draw_ground()
        self._draw_axis()
        for number, band in enumerate(self._timeline.bands):
            self._draw_band(band, self._bands_y + number * (BAND + BAND_GAP))
        for number, bar in enumerate(self._timeline.bars):
            self._draw_bar(bar, self._rows_y + number * self._row)
        return self._paper.svg()

    def _paint(self, paint: Paint) -> Any:
        return paint.colour if paint.ground is None else self._paper.hatch(paint.colour, paint.ground)

    def _draw_head(self) -> None:
        paper, timeline = self._paper, self._timeline
        letters = int((WIDTH - 2 * EDGE) / (17 * SANS_EM))
        paper.text(cut(timeline.title, letters), EDGE, 28, 17, title=timeline.title, font_weight="bold")
        paper.text(summary(timeline), EDGE, 48, 12.5, fill=FAINT_INK)
        for number, entries in enumerate(self._legend):
            y = self._legend_y + number * LEGEND_ROW
            for x, text, paint in entries:
                if paint is None:
                    paper.line(x, y + 7, x + 18, y + 7, stroke=CAPACITY, stroke_width=1.5, stroke_dasharray="4 3")
                else:
                    height = 12 * paint.part
                    paper.box(
                        x, y + 7 - height / 2, 18, height, fill=self._paints[paint], stroke=LINE, stroke_width=0.75
                    )
                paper.text(text, x + 24, y + 11, 11.5)

    def _draw_ground(self) -> None:
        """Draw what lies behind all: when nobody worked on the run, and where time is folded."""
        top, height = self._bands_y - 4, self._foot_y - self._bands_y + 4
        for piece in self._scale.pieces:
            if piece.folded:
                width = piece.end_px - piece.start_px
                said = f"nothing was done: {stretch(piece.start_s, piece.end_s)}; drawn shorter than the rest"
                self._paper.box(
                    piece.start_px, top, width, height, said, fill=FOLD, stroke=LINE, stroke_dasharray="2 3"
                )
                length = brief(piece.end_s - piece.start_s)
                middle = (piece.start_px + piece.end_px) / 2
                self._paper.text(length, middle, top - 5, 10.5, text_anchor="middle", font_style="italic")
        for absence in self._timeline.absences:
            x, to_x = self._scale.x(absence.start_s), self._scale.x(absence.end_s)
            how = "its host died, and then no host" if absence.died else "no host"
            said = f"{how} worked on the run: {stretch(absence.start_s, absence.end_s)}"
            self._paper.box(x, top, to_x - x, height, said, fill=NOBODY, fill_opacity=0.55)

    def _draw_axis(self) -> None:
        paper, scale = self._paper, self._scale
        length_s = self._timeline.length_s
        step_s, ticks = scale.ticks(TICK_APART)
        unit = unit_text(step_s=step_s, length_s=length_s)
        for y, foot in ((self._rows_y - 8, False), (self._foot_y, True)):
            paper.line(self._left, y, self._right, y, stroke=FAINT_INK, stroke_width=1)
            for s in ticks:
                x = scale.x(s)
                paper.line(x, y - 4, x, y + 4, stroke=FAINT_INK, stroke_width=1)
                text = tick_text(s, step_s=step_s, length_s=length_s)
                paper.text(text, x, y + 16 if foot else y - 7, 11, text_anchor="middle")
            paper.text(unit, self._right + 22, y + 16 if foot else y - 7, 11, fill=FAINT_INK)
        for s in ticks:
            x = scale.x(s)
            paper.line(x, self._bands_y - 4, x, self._rows_y - 24, stroke=GRID, stroke_width=1)
            paper.line(x, self._rows_y - 4, x, self._foot_y - 4, stroke=GRID, stroke_width=1)
        middle = (self._left + self._right) / 2
        said = origin(self._timeline)
        paper.text(said, middle, self._foot_y + 34, 11.5, text_anchor="middle", fill=FAINT_INK)

    def _draw_band(self, band: Band, y: float) -> None:
        paper = self._paper
        top = max(band.capacity or 0, band.most, 1)
        foot = y + BAND
        per_unit = (BAND - 4) / top
        name = cut(band.resource, KEY_LETTERS)
        paper.text(
            name, self._left - 10, foot - BAND / 2 + 4, KEY_SIZE, title=band.resource, text_anchor="end",
            font_family=MONO,
        )  # fmt: skip
        if any(step.perhaps for step in band.steps):
            perhaps = [(step.start_s, step.end_s, step.units + step.perhaps) for step in band.steps]
            self._draw_area(perhaps, foot, per_unit, PERHAPS)
        self._draw_area([(step.start_s, step.end_s, step.units) for step in band.steps], foot, per_unit, HELD)
        if len(band.steps) <= MAX_TIPS:
            for step in band.steps:
                x, to_x = self._scale.x(step.start_s), self._scale.x(step.end_s)
                height = (step.units + step.perhaps) * per_unit
                paper.box(x, foot - height, to_x - x, height, step_tip(band, step), fill="#ffffff", fill_opacity=0)
        paper.line(self._left, foot, self._right, foot, stroke=LINE, stroke_width=1)
        said = f"at most {band.most} held"
        if band.capacity is not None:
            line = foot - band.capacity * per_unit
            paper.line(self._left, line, self._right, line, stroke=CAPACITY, stroke_width=1.5, stroke_dasharray="4 3")
            said = f"at most {band.most} of {band.capacity} held"
        paper.text(said, self._right + 10, foot - BAND / 2 + 4, 11)

    def _draw_area(self, steps: Sequence[tuple[float, float, int]], foot: float, per_unit: float, paint: Paint) -> None:
        """Draw what was held as one shape, so that no seams show between its steps."""
        path: Any = self._paper.draw.Path(fill=self._paints[paint], stroke=PERHAPS.colour, stroke_width=0.75)
        end_px: float | None = None
        for start_s, end_s, units in steps:
            x, to_x, y = self._scale.x(start_s), self._scale.x(end_s), foot - units * per_unit
            if end_px is None:
                path.M(px(x), px(foot))
            elif x > end_px + 0.01:
                path.V(px(foot)).Z().M(px(x), px(foot))
            path.V(px(y)).H(px(to_x))
            end_px = to_x
        if end_px is not None:
            path.V(px(foot)).Z()
            self._paper.add(path)

    def _draw_bar(self, bar: Bar, y: float) -> None:
        paper, middle = self._paper, y + self._row / 2
        full = bar.key if bar.label is None else f"{bar.key}: {bar.label}"
        paper.text(
            self._names[bar.key], self._left - 10, middle + 4, KEY_SIZE, title=full, text_anchor="end",
            font_family=MONO,
        )  # fmt: skip
        thick = self._row - 6
        for span in bar.spans:
            x, to_x = self._scale.x(span.start_s), self._scale.x(span.end_s)
            paint = PHASES[span.phase]
            width = max(to_x - x, MIN_PX if span.phase in ATTEMPTS else 0.0)
            height = thick * paint.part
            paper.box(x, middle - height / 2, width, height, span_tip(bar, span), fill=self._paints[paint])
            if span.going and span.phase in ATTEMPTS:
                path: Any = paper.draw.Path(fill=self._paints[paint])
                paper.add(path.M(px(to_x), px(middle - height / 2)).l(6, px(height / 2)).l(-6, px(height / 2)).Z())
            if span.attempt is not None and bar.attempts > 1 and span.phase in ATTEMPTS and width >= 12:
                light = paint.ground is None
                paper.text(
                    str(span.attempt), x + 3, middle + 4, 10, fill="#ffffff" if light else "#1b1f24",
                    pointer_events="none",
                )  # fmt: skip
        said = outcome(bar)
        paper.text(cut(said, END_LETTERS), self._right + 10, middle + 4, 11, title=said)


def _meanings(timeline: Timeline, scale: Scale) -> list[tuple[str, Paint | None]]:
    """Return what the legend explains: only what can be seen."""

    def seen(start_s: float, end_s: float) -> bool:
        return scale.x(end_s) - scale.x(start_s) >= SEEN_PX

    there = {
        span.phase
        for bar in timeline.bars
        for span in bar.spans
        if span.phase in ATTEMPTS or seen(span.start_s, span.end_s)
    }
    found: list[tuple[str, Paint | None]] = [(phase.value, PHASES[phase]) for phase in Phase if phase in there]
    if timeline.bands:
        found.append(("held", HELD))
    if any(step.perhaps for band in timeline.bands for step in band.steps):
        found.append(("perhaps held still", PERHAPS))
    if any(band.capacity is not None for band in timeline.bands):
        found.append(("capacity of the machine now", None))
    if any(seen(absence.start_s, absence.end_s) for absence in timeline.absences):
        found.append(("no host worked on it", NOBODY_THERE))
    return found


def _legend_rows(
    entries: Sequence[tuple[str, Paint | None]], width: float
) -> list[list[tuple[float, str, Paint | None]]]:
    """Lay the legend into as many lines as it needs."""
    rows: list[list[tuple[float, str, Paint | None]]] = []
    x = width
    for text, paint in entries:
        needed = 24 + len(text) * 11.5 * SANS_EM + 18
        if x + needed > width:
            rows.append([])
            x = 0.0
        rows[-1].append((EDGE + x, text, paint))
        x += needed
    return rows
