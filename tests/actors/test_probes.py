"""What an operation's probe says, whatever it does."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from actors.control import Control
from actors.operations import Operation
from actors.planner import Planning, still_runs
from store.policy import Policy


class Nothing(BaseModel):
    """An input without fields."""


class Odd(BaseException):
    """None of Python's own."""


def asked(said: Any) -> bool | None:
    def probe(planning: Planning, given: Nothing) -> Any:
        if isinstance(said, BaseException):
            raise said
        return said

    operation = Operation(
        kind="test.probed",
        version=1,
        policy=Policy(effect="local-read"),
        function=probe,
        input_type=Nothing,
        output_type=Nothing,
        probe=probe,
    )
    planning = Planning(run_id="run_0", node="n", folder=Path("/"), control=Control())
    return still_runs(operation, {}, planning)


@pytest.mark.parametrize(
    ("said", "heard"),
    [(True, True), (False, False), ("yes", None), (ValueError("x"), None), (SystemExit(1), None), (Odd(), None)],
)
def test_a_probe_that_gives_no_answer_says_neither(said: Any, heard: bool | None) -> None:
    """Its thread answers all the same."""
    assert asked(said) is heard
