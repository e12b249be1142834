"""What gathers is committed together, each caller hears of its own, and another process's byte is heard."""

import os
import threading
from dataclasses import replace
from typing import Any

import pytest

from actors.host_messages import ChangeTimers, Commit, FenceLost, FollowRequests
from actors.mailbox import Mailbox
from actors.messages import CommitRefused, Committed, Due, RequestsArrived
from actors.run_store import GATHER, GATHER_S, RunStore
from hostres.errors import Code, HostlerError
from store.transactions import Fence
from tests.support import until


class Identity:
    """A host's file: a pipe stands for the FIFO."""

    host_id = "host_a"

    def __init__(self) -> None:
        self.fd, self.other_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.there = True

    def still_there(self) -> bool:
        return self.there


class Store:
    """A store that the test can hold up and that refuses what it is told to."""

    def __init__(self) -> None:
        self.groups: list[list[Any]] = []
        self.tidied: list[int] = []
        self.refuses: set[Any] = set()
        self.waiting: list[Any] = []
        self.closed = False
        self.there = True
        self.stale: dict[str, HostlerError] = {}

    def still_there(self):
        return self.there

    def refusal(self, fence):
        return self.stale.get(fence.run_id)

    def write(self, transactions):
        self.groups.append(list(transactions))
        gone = HostlerError(Code.CONFLICT, "stale", "start again")
        return [gone if transaction in self.refuses else None for transaction in transactions]

    def tidy(self):
        self.tidied.append(len(self.groups))

    def requests(self, run_ids):
        return [request for request in self.waiting if request.run_id in run_ids]

    def close(self):
        self.closed = True


@pytest.fixture
def parts():
    store, identity = Store(), Identity()
    actor = RunStore.start(open_store=lambda: store, identity=identity, timer=Mailbox())
    yield actor, store, identity
    actor.stop(block=True, timeout=60)
    assert store.closed
    os.close(identity.other_end)
    os.close(identity.fd)


def commit(number, transaction, box):
    return Commit(number=number, transaction=transaction, reply_to=box)


def test_a_refusal_is_told_to_its_own_caller_and_the_others_are_committed(parts):
    actor, store, _ = parts
    store.refuses = {"b"}
    boxes = {name: Mailbox() for name in "abc"}
    for name, box in boxes.items():
        actor.tell(commit(1, name, box))
    answers = {name: box.get(timeout=60) for name, box in boxes.items()}
    assert isinstance(answers["a"], Committed)
    assert isinstance(answers["b"], CommitRefused)
    assert isinstance(answers["c"], Committed)


def test_what_arrives_while_a_commit_is_made_becomes_one_group_with_one_answer():
    entered, go = threading.Event(), threading.Event()

    class Slow(Store):
        def write(self, transactions):
            entered.set()
            assert go.wait(60)
            return super().write(transactions)

    store, identity, box = Slow(), Identity(), Mailbox()
    actor = RunStore.start(open_store=lambda: store, identity=identity, timer=Mailbox())
    actor.tell(commit(0, "first", box))
    assert entered.wait(60)
    for number in range(1, 21):
        actor.tell(commit(number, number, box))
    go.set()
    assert [box.get(timeout=60) for _ in range(2)] == [Committed(number=0), Committed(number=20)]
    assert [len(group) for group in store.groups] == [1, 20]
    actor.stop(block=True, timeout=60)
    os.close(identity.other_end)
    os.close(identity.fd)


def test_a_caller_hears_of_what_is_durable_before_it_hears_of_a_refusal():
    store, identity, box = Store(), Identity(), Mailbox()
    store.refuses = {3}
    actor = RunStore(open_store=lambda: store, identity=identity, timer=Mailbox())
    actor.setup()
    actor._pending = [commit(number, number, box) for number in range(1, 5)]
    actor._flush()
    assert [type(box.get(timeout=60)) for _ in range(3)] == [Committed, CommitRefused, Committed]
    actor.teardown()
    os.close(identity.other_end)
    os.close(identity.fd)


def test_nobody_waits_for_the_log_to_be_tidied_up():
    heard, told = Mailbox(), threading.Event()

    class Untidy(Store):
        def tidy(self):
            assert told.wait(60)
            super().tidy()

    store, identity = Untidy(), Identity()
    actor = RunStore.start(open_store=lambda: store, identity=identity, timer=Mailbox())
    actor.tell(commit(1, "a", heard))
    assert heard.get(timeout=60) == Committed(number=1)
    told.set()
    actor.stop(block=True, timeout=60)
    assert store.tidied == [1]
    os.close(identity.other_end)
    os.close(identity.fd)


def test_a_commit_nobody_waits_for_gathers_others_until_it_is_due_or_one_is_awaited():
    store, identity, box, timer = Store(), Identity(), Mailbox(), Mailbox()
    actor = RunStore.start(open_store=lambda: store, identity=identity, timer=timer)
    for number in range(3):
        actor.tell(Commit(number=number, transaction=number, reply_to=box, awaited=False))
    started = timer.get(timeout=60)
    assert started == ChangeTimers(owner=actor.actor_urn, changes=(GATHER,), reply_to=actor)
    assert GATHER.seconds == GATHER_S
    assert not store.groups
    actor.tell(Due(timer=GATHER.timer))
    assert box.get(timeout=60) == Committed(number=2)
    actor.tell(Commit(number=3, transaction=3, reply_to=box, awaited=False))
    actor.tell(Commit(number=4, transaction=4, reply_to=box))
    assert box.get(timeout=60) == Committed(number=4)
    assert store.groups == [[0, 1, 2], [3, 4]]
    actor.stop(block=True, timeout=60)
    os.close(identity.other_end)
    os.close(identity.fd)


@pytest.mark.parametrize("gone", ["host", "database"])
def test_a_host_whose_file_is_gone_commits_nothing(parts, gone):
    actor, store, identity = parts
    (identity if gone == "host" else store).there = False
    box = Mailbox()
    actor.tell(commit(1, "a", box))
    assert box.get(timeout=60).error.code is Code.OWNERSHIP_LOST
    assert not store.groups


def test_what_was_handed_in_before_the_stop_is_committed():
    store, identity, box = Store(), Identity(), Mailbox()
    actor = RunStore.start(open_store=lambda: store, identity=identity, timer=Mailbox())
    for number in range(5):
        actor.tell(commit(number, number, box))
    actor.stop(block=True, timeout=60)
    assert [transaction for group in store.groups for transaction in group] == list(range(5))
    os.close(identity.other_end)
    os.close(identity.fd)


class Asked:
    run_id = "run_x"


FENCE = Fence(run_id="run_x", host_id="host_a", generation=1, token="t")


def test_one_byte_of_another_process_brings_the_requests_to_their_run(parts):
    actor, store, identity = parts
    box = Mailbox()
    actor.tell(FollowRequests(run_id="run_x", fence=FENCE, reply_to=box))
    store.waiting.append(Asked())
    os.write(identity.other_end, b"!")
    assert isinstance(box.get(timeout=60), RequestsArrived)


def test_a_claim_that_is_no_longer_in_force_is_told_at_the_next_wake_up_and_once(parts):
    actor, store, identity = parts
    lost, kept = Mailbox(), Mailbox()
    for box, fence in ((lost, FENCE), (kept, replace(FENCE, run_id="run_y"))):
        actor.tell(FollowRequests(run_id=fence.run_id, fence=fence, reply_to=box))
    store.stale["run_x"] = HostlerError(Code.CONFLICT, "claim 1 is no longer in force", "nothing")
    os.write(identity.other_end, b"!")
    assert lost.get(timeout=60) == FenceLost(error=store.stale["run_x"])
    asked = Asked()
    asked.run_id = "run_y"
    store.waiting += [asked, Asked()]
    os.write(identity.other_end, b"!")
    assert kept.get(timeout=60) == RequestsArrived(requests=(asked,))
    with pytest.raises(HostlerError):
        lost.get(timeout=0)


def test_a_store_that_cannot_be_opened_is_reported():
    def fails():
        raise HostlerError(Code.NEWER_SCHEMA, "newer", "upgrade")

    identity, box = Identity(), Mailbox()
    actor = RunStore.start(open_store=fails, identity=identity, timer=Mailbox(), parent=box)
    assert box.get(timeout=60).error.code is Code.NEWER_SCHEMA
    until(lambda: not actor.is_alive())
    os.close(identity.other_end)
    os.close(identity.fd)
