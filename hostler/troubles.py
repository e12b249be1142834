"""What went wrong, told in one line of standard error and an exit code."""

import errno
import os
import sys
from typing import Final

from hostler.own_names import RENAME, stranger
from hostres.errors import EXIT_CODES, MENDS, Code, HostlerError, describe, told

UNWRITABLE: Final = (errno.ENOSPC, errno.EIO, errno.EBADF)
"""What a standard output that takes nothing answers."""

EXIT_BROKEN_PIPE: Final = 141
"""What a shell reports of a program ended by SIGPIPE."""


def tell(error: Exception, *, debug: bool) -> int:
    """Tell of an error; called while it is handled.

    Args:
        error: What a command raised.
        debug: Show where.

    Returns:
        The exit code.

    """
    match error:
        case HostlerError():
            return _report(error, debug=debug)
        case BrokenPipeError():
            _forget_stdout()
            return EXIT_BROKEN_PIPE
        case OSError():
            code = _report(of_the_system(error), debug=debug)
            if error.errno in UNWRITABLE:
                _forget_stdout()
            return code
        case MemoryError():
            todo = "end something, or raise the limit of memory (ulimit -v, or MemoryMax)"
            return _report(HostlerError(Code.UNAVAILABLE, "no memory is left", todo), debug=debug)
        case ImportError() if (file := stranger()) is not None:
            what = f"{file} was found in the place of a package of Hostler"
            return _report(HostlerError(Code.UNAVAILABLE, what, RENAME), debug=debug)
    todo = "a bug in Hostler or in an operation; `hostler --debug …` shows where"
    return _report(HostlerError(Code.INTERNAL, describe(error), todo), debug=debug)


def of_the_system(error: OSError) -> HostlerError:
    """Return an error of the operating system that nobody foresaw, with the path that it is about."""
    said = error.strerror or str(error)
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return HostlerError(Code.UNAVAILABLE, "the current folder is gone", "change to one that exists")
    about = "" if error.filename is None else f": {str(error.filename)[:200]}"
    todo = MENDS.get(error.errno or 0, "mend that, then try again")
    return HostlerError(Code.UNAVAILABLE, f"{said}{about}", todo)


def _report(error: HostlerError, *, debug: bool) -> int:
    if debug:
        import traceback  # noqa: PLC0415 (seldom needed)

        traceback.print_exc()
    from hostres.masking import own_mask  # noqa: PLC0415 (only where something is wrong)

    sys.stderr.write(f"hostler: {own_mask().text(told(error.code, error.what, error.todo))}\n")
    return EXIT_CODES[error.code]


def _forget_stdout() -> None:
    # The interpreter flushes standard output once more as it ends; there is nobody to read it.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
