"""What code of a workflow prints while a view has the terminal: whole lines, to be shown above it."""

import contextlib
import io
import sys
import threading
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Final

from hostler.views.terminal import harmless

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LONGEST: Final = 8192
MOST: Final = 1000
"""Lines that are kept until they are shown; of a flood the end."""


class Prints(io.RawIOBase):
    """Keeps the lines that are written to it, whichever thread does so.

    Attributes:
        under: What it stands for.

    """

    def __init__(self, under: IO[str]) -> None:
        """Prepare it.

        Args:
            under: What it stands for: programs that are given its descriptor write there.

        """
        super().__init__()
        self.under = under
        self._lock = threading.Lock()
        self._lines: list[bytes] = []
        self._begun = b""

    @contextlib.contextmanager
    def instead(self) -> Iterator[None]:
        """While entered, take what is printed; what nobody has taken by the end is written where it was meant to go."""
        stream = self.stream()
        try:
            with contextlib.redirect_stdout(stream), contextlib.ExitStack() as undone:
                if sys.stderr.isatty():  # anywhere else it is in nobody's way
                    undone.enter_context(contextlib.redirect_stderr(stream))
                yield
        finally:
            for line in self.take(rest=True):
                self.say(line)

    def say(self, line: str) -> None:
        """Write a line to what this stands for; it can command nothing."""
        self.under.write(f"{harmless(line)}\n")
        self.under.flush()

    def stream(self) -> IO[str]:
        """Return it as a stream of text."""
        return io.TextIOWrapper(self, encoding="utf-8", errors="backslashreplace", write_through=True)  # type: ignore[type-var] # write is what is used of it

    def fileno(self) -> int:
        """Return the descriptor of what it stands for."""
        return self.under.fileno()

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def write(self, data: "ReadableBuffer") -> int:
        """Take bytes; of a line that is written over and over after carriage returns, the last counts."""
        given = bytes(data)
        with self._lock:
            *lines, begun = (self._begun + given).split(b"\n")
            self._lines += [_last(line.removesuffix(b"\r")) for line in lines]
            del self._lines[:-MOST]
            self._begun = begun if len(begun) <= LONGEST else _last(begun)
        return len(given)

    def take(self, *, rest: bool = False) -> list[str]:
        """Return the lines since the last call.

        Args:
            rest: Also the one that is only begun.

        """
        with self._lock:
            taken, self._lines = self._lines, []
            if rest and self._begun:
                taken.append(_last(self._begun))
                self._begun = b""
        return [line.decode("utf-8", "replace") for line in taken]


def _last(line: bytes) -> bytes:
    return line.rpartition(b"\r")[2][:LONGEST]
