"""Standard streams as every command needs them, whatever the caller left of them. Light: `hostler exec` uses it."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False  # as in the package

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

STANDARD = (0, 1, 2)


def mend_standard_streams() -> None:
    """Open what is missing, and let no character end a command.

    A descriptor below 3 that is free would be taken by the next file that is opened: a lease there would become some
    program's standard output, and be closed or written into. A terminal or pipe that cannot show a character gets its
    escape instead. Standard error that takes nothing (a full disk, a pipe that nobody reads) costs what was to be said,
    never the exit code that says it too.
    """
    for descriptor in STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            _open_nothing(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 - the standard stream
    sys.stdout = sys.stdout or open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Forgiving(sys.stderr.fileno(), "w", closefd=False)),
            encoding=sys.stderr.encoding, line_buffering=True, write_through=True,
        )  # fmt: skip
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Forgiving(io.FileIO):
    """A file that lets go what it cannot write."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write *data*, or not."""
        try:
            written = super().write(data)
        except OSError:
            written = None
        return memoryview(data).nbytes if written is None else written


def _open_nothing(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
