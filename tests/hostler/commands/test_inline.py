"""Lines that are rewritten in place, as a person sees them."""

import fcntl
import os
import pty
import struct
import termios
from collections.abc import Iterator

import pyte
import pytest
from rich.console import Console
from rich.text import Text

from hostler.commands import inline
from hostler.commands.inline import Inline

SHELL = "$ hostler run"


class Window:
    """A terminal with `Inline` on it: what is written, a person sees."""

    def __init__(self, rows: int = 8, columns: int = 20) -> None:
        self._master, self.slave = pty.openpty()
        self._seen = pyte.HistoryScreen(columns, rows, history=100)
        self._stream = pyte.ByteStream(self._seen)
        self.resize(rows, columns)
        self._out = os.fdopen(os.dup(self.slave), "w", encoding="utf-8")
        self.inline = Inline(Console(file=self._out, no_color=True))
        self.write(f"{SHELL}\r\n")

    def write(self, text: str) -> None:
        """Write as another program does."""
        self._out.write(text)
        self._out.flush()

    def resize(self, rows: int, columns: int) -> None:
        self._seen.resize(rows, columns)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def draw(self, *lines: str) -> list[str]:
        self.inline.draw([Text(line) for line in lines])
        return self.rows()

    def rows(self) -> list[str]:
        """Return what is seen, without what is empty at its end."""
        os.set_blocking(self._master, False)
        try:
            while True:
                self._stream.feed(os.read(self._master, 65536))
        except BlockingIOError:
            pass
        rows = [row.rstrip() for row in self._seen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def scrolled_out(self) -> str:
        return "\n".join("".join(cell.data for _, cell in sorted(row.items())) for row in self._seen.history.top)

    def close(self) -> None:
        self._out.close()
        os.close(self._master)
        os.close(self.slave)


@pytest.fixture
def window() -> Iterator[Window]:
    opened = Window()
    yield opened
    opened.close()


def test_lines_are_rewritten_in_place_whether_they_grow_or_shrink(window: Window) -> None:
    assert window.draw("a", "b") == [SHELL, "a", "b"]
    assert window.draw("a", "bb", "c") == [SHELL, "a", "bb", "c"]
    assert window.draw("longer") == [SHELL, "longer"]
    assert window.draw("short", "d") == [SHELL, "short", "d"]


def test_lines_that_reach_the_end_of_the_screen_scroll_what_is_above(window: Window) -> None:
    lines = [str(number) for number in range(7)]
    window.draw("x")
    assert window.draw(*lines) == [SHELL, *lines]
    window.inline.say("said")
    assert window.rows() == ["said", *lines]
    assert SHELL in window.scrolled_out()
    assert window.draw("end") == ["said", "end"]


def test_what_is_said_stands_above_and_can_command_nothing(window: Window) -> None:
    window.draw("a", "b")
    window.inline.say("one\nevil\x1b[2J\x07")
    assert window.draw("a", "c") == [SHELL, "one", r"evil\x1b[2J\x07", "a", "c"]


def test_a_line_that_is_wider_than_we_think_takes_no_row_of_its_own(
    window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline, "as_written", lambda _console, lines, _width: [lines[0].plain * 25])
    window.draw("ab", "cd")
    assert window.draw("ef", "gh") == [SHELL, f"{'ef' * 9}ef", f"{'gh' * 9}gh"]


def test_a_line_as_wide_as_the_screen_is_whole(window: Window) -> None:
    assert window.draw("w" * 20, "b")[1] == "w" * 20


@pytest.mark.parametrize(("rows", "columns"), [(8, 10), (8, 40), (5, 20), (30, 20)])
def test_in_another_size_the_lines_stand_at_the_top_and_nothing_above_them_is_lost(
    rows: int, columns: int, window: Window
) -> None:
    window.draw("first", "second")
    window.resize(rows, columns)
    assert window.draw("first", "third") == ["first", "third"]
    if rows >= 8:  # this terminal forgets what it has no room for
        assert SHELL[:columns] in window.scrolled_out()
    assert "second" not in window.scrolled_out()
    window.resize(8, 20)
    assert window.draw("first", "fourth") == ["first", "fourth"]
    window.inline.say("said")
    assert window.draw("first", "fifth") == ["said", "first", "fifth"]


def test_in_the_end_the_shell_goes_on_below_with_its_cursor(window: Window) -> None:
    window.draw("a", "b")
    assert window._seen.cursor.hidden
    window.inline.close()
    window.inline.close()
    window.write("$ ")
    assert window.rows() == [SHELL, "a", "b", "$"]
    assert not window._seen.cursor.hidden


def test_what_has_not_changed_is_not_written_again(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    window.draw("same", "b")
    written: list[str] = []
    monkeypatch.setattr(window.inline, "_write", written.append)
    window.draw("same", "b")
    assert written == []
    window.draw("same", "c")
    assert "same" not in written[0]


def test_nothing_is_written_on_a_terminal_that_another_has(window: Window, monkeypatch: pytest.MonkeyPatch) -> None:
    window.draw("a")
    with monkeypatch.context() as behind:
        behind.setattr(Inline, "in_front", False)
        assert window.draw("b") == [SHELL, "a"]
        window.inline.say("said")
        window.write("\r\n$ fg\r\n")
    assert window.draw("c", "d") == [SHELL, "a", "$ fg", "c", "d"]
