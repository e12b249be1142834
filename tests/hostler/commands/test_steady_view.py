"""A view that breaks, and what becomes of the one who looks at it."""

from typing import Any

import pytest

from actors.actions import RunChanged
from hostler.commands.foreground import SilentView
from hostler.commands.steady_view import SteadyView
from hostres.errors import Code, HostlerError
from store.lifecycle import RunStatus

CHANGE = RunChanged(run_id="run_0", status=RunStatus.RUNNING)


class Fragile(SilentView):
    """Raises in one of its methods, and notes that it was let go."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.let_go = 0
        self.asked: list[str] = []
        self._where = where
        self._error = error

    def _pass(self, name: str) -> None:
        self.asked.append(name)
        if name == self._where:
            raise self._error

    def __exit__(self, *_: object) -> None:
        self.let_go += 1
        self._pass("exit")

    def apply(self, change: object, now_s: float) -> None:
        self._pass("apply")

    def say(self, text: str) -> None:
        self._pass("say")

    def draw(self, now_s: float) -> None:
        self._pass("draw")


def used(view: Any) -> None:
    with view:
        view.apply(CHANGE, 0.0)
        view.draw(0.0)
        view.say("stopping")
        view.draw(1.0)


@pytest.mark.parametrize("where", ["apply", "draw", "say", "exit"])
def test_a_view_that_breaks_is_let_go_and_asked_no_more(where: str) -> None:
    """What is said to people is told without it."""
    told: list[str] = []
    fragile = Fragile(where, OverflowError("too large"))
    used(SteadyView(fragile, told.append))
    assert fragile.asked.count(where) == (2 if where == "exit" else 1)
    assert fragile.let_go == (2 if where == "exit" else 1)
    assert told[0] == "the view broke, and the run goes on unseen: OverflowError: too large; report this"
    assert told[1:] == ([] if where == "exit" else ["stopping"])


@pytest.mark.parametrize("error", [OSError("gone"), HostlerError(Code.UNAVAILABLE, "a", "b"), KeyboardInterrupt()])
def test_what_is_no_fault_of_the_view_is_told_as_ever(error: BaseException) -> None:
    """A reader that has gone ends the command."""
    with pytest.raises(type(error)):
        used(SteadyView(Fragile("draw", error), pytest.fail))
