"""What tests of several packages share."""

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], *, timeout: float = 60.0, every: float = 0.005) -> Any:
    """Return what *condition* returns as soon as that is true; fail after *timeout* seconds."""
    deadline = time.monotonic() + timeout
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {timeout} s: {condition}"
        time.sleep(every)
    return found
