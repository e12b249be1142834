"""What an attempt and its executor share: one abort reaches all process trees at once, and may be hurried."""

import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from actors.control import Control
from hostres.exits import Ended, Left
from tests.support import until


@dataclass(eq=False)
class Tree:
    """A process tree that ends when it is told to, or only in the end."""

    all_asked: threading.Barrier
    left: tuple[Left, ...] = ()
    asked: list[tuple[float, str]] = field(default_factory=list)

    def end(self, *, grace_s: float, reason: str) -> Ended:
        self.asked.append((grace_s, reason))
        self.all_asked.wait(timeout=60)
        return Ended(exit=None, left=self.left)


def supervised(control: Control, tree: Any, begun: threading.Barrier, over: threading.Event) -> None:
    with control.supervising(tree):
        begun.wait(timeout=60)
        over.wait(timeout=60)


def test_all_trees_of_an_attempt_are_asked_at_once_and_a_second_abort_passes_a_shorter_grace_on():
    control, begun, over = Control(), threading.Barrier(4), threading.Event()
    together = threading.Barrier(6)  # three trees, asked twice each: nobody waits for another to end
    trees = [Tree(together), Tree(together, left=(Left(pid=7, command="ffmpeg"),)), Tree(together)]
    threads = [threading.Thread(target=supervised, args=(control, tree, begun, over)) for tree in trees]
    for thread in threads:
        thread.start()
    begun.wait(timeout=60)
    first = threading.Thread(target=control.abort, args=("drain",), kwargs={"grace_s": 5.0})
    first.start()
    control.abort("drain", grace_s=1.0)
    first.join(timeout=60)
    over.set()
    for thread in threads:
        thread.join(timeout=60)
    assert control.left == ["ffmpeg (pid 7)"]
    assert control.reason == "drain"
    for tree in trees:
        assert len(tree.asked) == 2
        assert (1.0, "drain") in tree.asked


def test_without_room_for_threads_trees_are_ended_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """They were left running, and the cancel failed."""

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    control, alone = Control(), threading.Barrier(1)
    trees = [Tree(alone, left=(Left(pid=7, command="ffmpeg"),)), Tree(alone)]
    with control.supervising(trees[0]), control.supervising(trees[1]):
        monkeypatch.setattr(threading.Thread, "start", start)
        control.abort("cancel", grace_s=1.0)
    assert [tree.asked for tree in trees] == [[(1.0, "cancel")]] * 2
    assert control.left == ["ffmpeg (pid 7)"]


def test_who_leaves_while_what_it_supervised_is_being_ended_waits_for_what_is_left_of_it() -> None:
    """The wait is over with the last of those that end it."""
    control, asked, go, said = Control(), threading.Event(), threading.Event(), list[list[str]]()

    class Slow(Tree):
        def end(self, *, grace_s: float, reason: str) -> Ended:
            asked.set()
            assert go.wait(60)
            return Ended(exit=None, left=(Left(pid=7, command="ffmpeg"),))

    def work() -> None:
        with control.supervising(Slow(threading.Barrier(1))):
            begun.set()
            assert asked.wait(60)
        said.append(list(control.left))

    begun = threading.Event()
    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    assert begun.wait(60)
    ending = threading.Thread(target=control.abort, args=("cancel",), kwargs={"grace_s": 1.0}, daemon=True)
    ending.start()
    until(lambda: control._ended is not None)
    assert said == []
    go.set()
    worker.join(timeout=60)
    ending.join(timeout=60)
    assert said == [["ffmpeg (pid 7)"]]
