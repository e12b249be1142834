"""Standard streams as every command needs them, whatever the caller left of them. Light: `hostler exec` uses it."""

import io
import os
import sys

STANDARD = (0, 1, 2)


def mend_standard_streams() -> None:
    """Open what is missing, and let no character end a command.

    A descriptor below 3 that is free would be taken by the next file that is opened: a lease there would become some
    program's standard output, and be closed or written into. A terminal or pipe that cannot show a character gets its
    escape instead.
    """
    for descriptor in STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            _open_nothing(descriptor)
    sys.stdin = sys.stdin or open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 - the standard stream
    sys.stdout = sys.stdout or open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open_nothing(descriptor: int) -> None:
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor:
        os.dup2(opened, descriptor)
        os.close(opened)
    os.set_inheritable(descriptor, True)
