"""A graph as an SVG document: layers from left to right, so that names stand below each other and can be read."""

from typing import Any, Final

from hostler.pictures.chart import Box, Chart
from hostler.pictures.layers import Layers, Point, layers
from hostler.pictures.paper import FAINT_INK, MONO, MONO_EM, SANS_EM, Paper, cut, px

BOX_WIDTH: Final = 216.0
BOX_HEIGHT: Final = 40.0
ACROSS: Final = 84.0
"""Between two layers, for the edges."""
DOWN: Final = 14.0
EDGE: Final = 20.0
HEAD: Final = 88.0
POINT: Final = 12.0
"""How far the pointed ends of a box reach."""
SIZE: Final = 12.0
SMALL: Final = 10.5
MIN_WIDTH: Final = 640.0
EDGE_INK: Final = "#7a8593"


def chart_svg(chart: Chart) -> str:
    """Return the picture.

    Raises:
        HostlerError: A library for it is not installed (unavailable).

    """
    laid = layers(len(chart.boxes), chart.edges)
    width = max(2 * EDGE + laid.columns * (BOX_WIDTH + ACROSS) - ACROSS, MIN_WIDTH)
    height = HEAD + laid.rows * (BOX_HEIGHT + DOWN) - DOWN + EDGE
    paper = Paper(width, height, about=f"Graph of {chart.title}: {chart.summary}", ids="g")
    _draw_head(paper, chart)
    _draw_edges(paper, chart, laid)
    for number, box in enumerate(chart.boxes):
        _draw_box(paper, box, *_corner(laid.places[number]))
    return paper.svg()


def _draw_head(paper: Paper, chart: Chart) -> None:
    letters = int((paper.width - 2 * EDGE) / (17 * SANS_EM))
    paper.text(cut(chart.title, letters), EDGE, 28, 17, title=chart.title, font_weight="bold")
    paper.text(chart.summary, EDGE, 48, 12.5, fill=FAINT_INK)
    x = EDGE
    for text, fill, pointed in chart.legend:
        paper.add(_outline(paper, x, 60, 26, 14, 5 if pointed else 0, fill=fill, stroke=EDGE_INK, stroke_width=1))
        paper.text(text, x + 33, 71, 11.5)
        x += 33 + len(text) * 11.5 * SANS_EM + 20


def _draw_edges(paper: Paper, chart: Chart, laid: Layers) -> None:
    arrow = paper.draw.Marker(-8, -4, 1, 4, orient="auto")
    arrow.append(paper.draw.Lines(-8, -4, 0, 0, -8, 4, close=True, fill=EDGE_INK))
    for start, end in chart.edges:
        x, y = _corner(laid.places[start])
        to_x, to_y = _corner(laid.places[end])
        path = paper.draw.Path(fill="none", stroke=EDGE_INK, stroke_width=1.25, marker_end=arrow)
        at = x + BOX_WIDTH, y + BOX_HEIGHT / 2
        path.M(*_px(at))
        for place in laid.paths[start, end]:
            left, top = _corner(place)
            # through the gap between two boxes, straight past the layer, and on
            at = _curve(path, at, (left, top + BOX_HEIGHT / 2))
            at = left + BOX_WIDTH, at[1]
            path.L(*_px(at))
        _curve(path, at, (to_x - 2, to_y + BOX_HEIGHT / 2))
        paper.add(path, f"{chart.boxes[start].name} → {chart.boxes[end].name}")


def _curve(path: Any, at: Point, to: Point) -> Point:
    middle = (at[0] + to[0]) / 2
    path.C(*_px((middle, at[1])), *_px((middle, to[1])), *_px(to))
    return to


def _draw_box(paper: Paper, box: Box, x: float, y: float) -> None:
    point = POINT if box.asks else 0.0
    outline = _outline(
        paper, x, y, BOX_WIDTH, BOX_HEIGHT, point, fill=box.fill, stroke=FAINT_INK, stroke_width=1,
        stroke_linejoin="round",
    )  # fmt: skip
    paper.add(outline, box.tip)
    room = BOX_WIDTH - 16 - 2 * point
    for text, size, foot in ((box.name, SIZE, 17), (box.below, SMALL, 32)):
        paper.text(
            _middle_cut(text, int(room / (size * MONO_EM))), x + 8 + point, y + foot, size, font_family=MONO,
            fill=FAINT_INK if foot == 32 else "#1b1f24", title=box.tip,
        )  # fmt: skip


def _outline(paper: Paper, x: float, y: float, width: float, height: float, point: float, **how: Any) -> Any:
    """Return a box; with *point*, its left and right ends are pointed by so many pixels."""
    if not point:
        return paper.draw.Rectangle(x, y, width, height, rx=4, **how)
    middle = y + height / 2
    corners = (
        (x, middle), (x + point, y), (x + width - point, y), (x + width, middle), (x + width - point, y + height),
        (x + point, y + height),
    )  # fmt: skip
    return paper.draw.Lines(*(number for corner in corners for number in _px(corner)), close=True, **how)


def _corner(place: Point) -> Point:
    return EDGE + place[0] * (BOX_WIDTH + ACROSS), HEAD + place[1] * (BOX_HEIGHT + DOWN)


def _px(place: Point) -> Point:
    return px(place[0]), px(place[1])


def _middle_cut(text: str, letters: int) -> str:
    """Cut a name in its middle: what tells names apart is mostly at their ends."""
    if len(text) <= letters:
        return text
    tail = (letters - 1) // 2
    return f"{text[: letters - 1 - tail]}…{text[len(text) - tail :]}"
