"""What a program wrote last, and how it ended."""

import pytest

from actors.program import Tail, left_behind
from hostres.process import Ended
from store.policy import FailureCode


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3)])
def test_a_listener_that_fails_is_not_called_again_and_loses_nothing_of_the_output(error: BaseException) -> None:
    """What the program wrote after that is in its result all the same."""
    calls: list[bytes] = []

    def fails(chunk: bytes) -> None:
        calls.append(chunk)
        raise error

    tail = Tail(fails)
    tail.feed(b"a")
    tail.feed(b"b")
    assert (tail.data, calls, tail.error) == (b"ab", [b"a"], error)


def test_a_program_of_which_nothing_is_left_is_not_said_to_have_left_something() -> None:
    """Where nobody saw its end, that is what is told."""
    failure = left_behind("sh", Ended(exit=None, left=()))
    assert failure.code is FailureCode.INTERNAL
    assert failure.message == "how sh ended is not known"
