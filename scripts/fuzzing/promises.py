"""What must hold whatever was done to a store: errors are clean, and answers come in time."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from hostres.errors import Code, HostlerError

PATIENCE_S: Final = 20
LONGEST_LINE: Final = 4000


class FuzzError(Exception):
    """A promise that was not kept."""


def check_clean(error: HostlerError) -> None:
    """Check that an error can be shown as it is.

    Raises:
        FuzzError: It cannot.

    """
    text = str(error)
    if error.code is Code.INTERNAL or not text.isprintable() or len(text) > LONGEST_LINE or not error.todo:
        raise FuzzError(f"not a clean error: {text[:300]!r}")


@contextmanager
def patience() -> Iterator[None]:
    """Let the block take so many seconds.

    Raises:
        FuzzError: It takes longer.

    """

    def late(_number: int, _frame: FrameType | None) -> None:
        raise FuzzError(f"it hangs: no answer within {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
