"""Writing results to standard output."""

import codecs
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

from hostler.json_format import versioned

PIPE_WIDTH: Final = 120

_kept: list[IO[str]] = []
"""Where JSON goes while `json_alone` is entered."""


def print_line(text: str) -> None:
    """Write one line, or several, at once, so that a reader at the other end of a pipe has it now."""
    _write(sys.stdout, f"{text}\n")


def print_xml(text: str) -> None:
    """Write an XML document that says it is UTF-8, also where standard output is not."""
    stream = sys.stdout
    if codecs.lookup(stream.encoding or "utf-8").name != "utf-8":
        text = text.encode("ascii", "xmlcharrefreplace").decode()
    _write(stream, text)


def print_json(value: Mapping[str, Any], *, compact: bool = False) -> None:
    """Write one JSON object, with the version of its format.

    Args:
        value: JSON.
        compact: In one line, for streams of them.

    """
    import orjson  # noqa: PLC0415  the list of runs is there before it is imported

    text = orjson.dumps(versioned(value), option=0 if compact else orjson.OPT_INDENT_2).decode()
    _write(_kept[-1] if _kept else sys.stdout, f"{text}\n")


def width() -> int:
    """Return how many columns standard output has; a pipe has some, too."""
    return terminal_width() or PIPE_WIDTH


def terminal_width() -> int | None:
    """Return how many columns a terminal at standard output has; None for a pipe, which takes lines of any length."""
    if not sys.stdout.isatty():
        return None
    import shutil  # noqa: PLC0415  its archive formats take longer to import than the terminal to be asked

    return shutil.get_terminal_size().columns


@contextlib.contextmanager
def json_alone(*, wanted: bool) -> Iterator[None]:
    """While entered, keep standard output for `print_json`: whatever else is written to it goes to standard error.

    Code of a workflow runs in this process and may print, also by way of the descriptor.

    Args:
        wanted: Whether to; otherwise nothing changes.

    """
    if not wanted:
        yield
        return
    with contextlib.ExitStack() as undone:
        _kept.append(_set_aside(sys.stdout, undone))
        undone.callback(_kept.pop)
        undone.enter_context(contextlib.redirect_stdout(sys.stderr))
        yield


def _set_aside(stdout: IO[str], undone: contextlib.ExitStack) -> IO[str]:
    """Return a stream to where *stdout* leads, and lead its descriptor to standard error."""
    try:
        descriptor, errors = stdout.fileno(), sys.stderr.fileno()
    except OSError:  # a stream of a program's own, as in tests: it has no descriptor that others could write to
        return stdout
    stdout.flush()
    copy = os.dup(descriptor)
    os.dup2(errors, descriptor)
    kept = os.fdopen(copy, "w", encoding="utf-8")

    def put_back() -> None:
        stdout.flush()  # what code of a workflow wrote to it by a name of its own
        os.dup2(copy, descriptor)
        with contextlib.suppress(BrokenPipeError):
            kept.close()

    undone.callback(put_back)
    return kept


def _write(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        if error.filename is None:
            error.filename = "standard output"
        raise
