"""Which line of a node's own code is named for an exception: the author's, not that of a library it called."""

import os
import traceback
from collections.abc import Callable
from pathlib import PurePath
from types import CodeType
from typing import Any, Final

LIBRARIES: Final = frozenset({"site-packages", "dist-packages"})
OURS: Final = frozenset({"actors", "hostler", "hostres", "store"})
STANDARD_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - compared with names in tracebacks


def line_to_blame(error: BaseException, function: Callable[..., Any] | None) -> str | None:
    """Return the place where an author finds what an exception is about.

    Args:
        error: What was raised.
        function: What was called; None if that was no function of an author's.

    Returns:
        The innermost line of the author's own files, as `flow.py:12`; where there is none, as for a result that does
        not fit, the line at which the function begins; without a function, where it was raised.

    """
    code = getattr(function, "__code__", None)
    file = code.co_filename if isinstance(code, CodeType) else None
    own = inner = None
    trace = object.__getattribute__(error, "__traceback__")  # a class of an author's may have its own
    for frame, line in traceback.walk_tb(trace):
        filename = frame.f_code.co_filename
        inner = _place(filename, line)
        if filename == file or not _is_foreign(filename, str(frame.f_globals.get("__name__"))):
            own = inner
    if function is None:
        return inner
    if own is None and isinstance(code, CodeType):
        return _place(code.co_filename, code.co_firstlineno)
    return own or inner


def _is_foreign(filename: str, module: str) -> bool:
    """Say whether a file is none of an author's: generated, of the standard library, installed, or of this program."""
    return (
        filename.startswith(("<", STANDARD_LIBRARY))
        or module.partition(".")[0] in OURS
        or not LIBRARIES.isdisjoint(PurePath(filename).parts)
    )


def _place(filename: str, line: int | None) -> str:
    return f"{PurePath(filename).name}:{line}"
