"""What comes in while a view is kept up to date."""

import time
from queue import SimpleQueue
from typing import Any

from hostler.commands.foreground import SilentView, heard


class Drawing(SilentView):
    """Counts how often it is drawn, and is never done."""

    def __init__(self) -> None:
        self.drawn = 0

    def draw(self, now_s: float) -> float:  # type: ignore[override] # one that is redrawn
        self.drawn += 1
        return 0.001


def test_what_was_taken_out_first_comes_first_and_all_else_in_order() -> None:
    inbox: SimpleQueue[Any] = SimpleQueue()
    for number in (2, 3):
        inbox.put(number)
    told = heard(inbox, SilentView(), first=1)
    assert [next(told) for _ in range(3)] == [1, 2, 3]


def test_the_view_is_drawn_again_and_again_until_the_time_is_over() -> None:
    view = Drawing()
    assert list(heard(SimpleQueue(), view, until_s=time.monotonic() + 0.1)) == []
    assert view.drawn > 3


def test_a_time_that_is_over_already_hears_nothing_and_loses_nothing() -> None:
    inbox: SimpleQueue[Any] = SimpleQueue()
    inbox.put(1)
    assert list(heard(inbox, SilentView(), until_s=time.monotonic() - 1.0)) == []
    assert inbox.get_nowait() == 1
