"""What pictures are drawn with: drawsvg, imported only now, and text that is safe in any SVG.

Everything is said by presentation attributes: no style sheet, no script, nothing fetched; so a picture may stand inside
a page that forbids them all. The same value gives the same bytes.
"""

from types import ModuleType
from typing import Any, Final
from xml.sax.saxutils import escape

from hostler.views.terminal import harmless
from hostres.errors import Code, HostlerError

INK: Final = "#1b1f24"
FAINT_INK: Final = "#4d5561"
LINE: Final = "#c4cad1"
GRID: Final = "#e7eaee"
PAPER: Final = "#ffffff"

MONO: Final = "DejaVu Sans Mono, Menlo, Consolas, monospace"
SANS: Final = "DejaVu Sans, Verdana, Geneva, sans-serif"
MONO_EM: Final = 0.602
"""Width of a letter of `MONO`, in font sizes."""
SANS_EM: Final = 0.61
"""Width of an average letter of `SANS`, in font sizes; generous."""

INSTALL: Final = "pip install 'hostler[pictures]'"


def drawing_library() -> ModuleType:
    """Return drawsvg.

    Raises:
        HostlerError: It is not installed (unavailable).

    """
    try:
        import drawsvg  # noqa: PLC0415 (an extra, and slow to import)
    except ImportError:
        raise missing("drawsvg") from None
    module: ModuleType = drawsvg
    return module


def missing(name: str) -> HostlerError:
    """Return the error of a library that is not installed.

    Args:
        name: The library.

    """
    return HostlerError(Code.UNAVAILABLE, f"pictures need the library {name}, which is not installed", INSTALL)


def clean(text: str) -> str:
    """Return *text* in one line, without what XML cannot hold or what could turn text around."""
    return harmless(text).replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")


class Paper:
    """A picture that is being drawn.

    Args:
        width: Pixels.
        height: Pixels.
        about: What it shows, for those who do not see it.
        ids: In front of the ids in it, so that two pictures can stand in one page.

    """

    def __init__(self, width: float, height: float, *, about: str, ids: str) -> None:
        self.draw: Any = drawing_library()
        self.width = width
        said = escape(clean(about), {'"': "&quot;"})
        self._drawing = self.draw.Drawing(
            px(width), px(height), id_prefix=ids, role="img", aria_label=said, font_family=SANS, fill=INK
        )
        self.add(self.draw.Rectangle(0, 0, px(width), px(height), fill=PAPER))

    def add(self, element: Any, title: str = "") -> None:
        """Put an element on top of what is there.

        Args:
            element: From the drawing library.
            title: What is told of it where a pointer rests.

        """
        if title:
            element.append_title(clean(title))
        self._drawing.append(element)

    def text(self, text: str, x: float, y: float, size: float = 12, *, title: str = "", **how: Any) -> None:
        """Write one line, its foot at *y*."""
        self.add(self.draw.Text(clean(text), size, px(x), px(y), **how), title)

    def box(self, x: float, y: float, width: float, height: float, title: str = "", **how: Any) -> None:
        """Draw a rectangle."""
        self.add(self.draw.Rectangle(px(x), px(y), px(width), px(height), **how), title)

    def line(self, x: float, y: float, to_x: float, to_y: float, **how: Any) -> None:
        """Draw a straight line."""
        self.add(self.draw.Line(px(x), px(y), px(to_x), px(to_y), **how))

    def hatch(self, colour: str, ground: str) -> Any:
        """Return a paint of diagonal lines.

        Args:
            colour: Of the lines.
            ground: Of what lies between them.

        """
        pattern = self.draw.Pattern(6, 6, patternUnits="userSpaceOnUse", patternTransform="rotate(45)")
        pattern.append(self.draw.Rectangle(0, 0, 6, 6, fill=ground))
        pattern.append(self.draw.Rectangle(0, 0, 2.5, 6, fill=colour))
        return pattern

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        text: str = self._drawing.as_svg()
        return f"{text}\n"


def px(value: float) -> float:
    """Return a length as it is written: a hundredth of a pixel is not seen."""
    return round(value, 2)


def cut(text: str, letters: int) -> str:
    """Return *text* in at most so many letters."""
    return text if len(text) <= letters else f"{text[: letters - 1]}…"
