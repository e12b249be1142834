"""What a program wrote last, and how it ended."""

from pathlib import Path
from typing import Any

import pytest

from actors.program import Tail, left_behind, program_words, secret_values
from hostres.exits import Ended
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


def test_a_program_is_given_texts_paths_and_numbers() -> None:
    """Numbers are written out, so that a frame rate need not be a text."""
    assert program_words(("ffmpeg", Path("a b"), 30, 2.5)) == ["ffmpeg", "a b", "30", "2.5"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("echo hi", "'echo hi' (str) is no program"),
        (b"echo", "b'echo' (bytes) is no program"),
        ({"echo": "hi"}, "(dict) is no program"),
        ([], "[] (list) is no program"),
        (None, "None (NoneType) is no program"),
        (["echo", None], "word 1 of the program is None (NoneType)"),
        (["echo", True], "word 1 of the program is True (bool)"),
        (["echo", b"hi"], "word 1 of the program is b'hi' (bytes)"),
        ([["echo"]], "word 0 of the program is ['echo'] (list)"),
    ],
)
def test_what_is_no_program_is_not_started_letter_by_letter(argv: Any, said: str) -> None:
    """A shell string would have been a program of one letter; None would have been the word None."""
    with pytest.raises(TypeError) as raised:
        program_words(argv)
    assert said in str(raised.value)


@pytest.mark.parametrize("secrets", ["hunter2", ["right", 5]])
def test_what_is_secret_is_a_list_and_no_mistake_in_it_shows_it(secrets: Any) -> None:
    """The letters of a text would have been taken out of everything."""
    with pytest.raises(TypeError) as raised:
        secret_values(secrets)
    assert "hunter2" not in str(raised.value)
    assert "right" not in str(raised.value)
