"""The main path: ready, queued, running, completed; how many commits, and what waits for the disk."""

import sys
import tracemalloc

import pytest

from actors.actions import Dispatch, SetTimer
from actors.messages import NotAdmitted, Returned
from actors.outcomes import Failed
from actors.scheduling.operators import as_value
from hostres.errors import Code
from store.lifecycle import RunStatus, Status
from store.plans import ComputeExecutor
from store.policy import Effect, FailureCode, Policy
from tests.actors.support import (
    Drive,
    Model,
    asked,
    claiming,
    dispatched,
    kinds,
    left,
    planned,
    writing,
)


def chain(length: int, make=planned):
    keys = [f"n{index:05d}" for index in range(length)]
    return [make(key, *([keys[index - 1]] if index else [])) for index, key in enumerate(keys)]


def test_a_pure_node_is_dispatched_before_its_commit_and_an_effectful_one_after():
    drive = Drive(Model([planned("pure"), writing("writes")]))
    drive.begin()
    assert dispatched(drive.now) == ["pure"]
    assert dispatched(drive.after) == ["writes"]


@pytest.mark.parametrize("make", [planned, writing])
def test_a_chain_without_claims_takes_one_transaction_a_step(make):
    nodes = chain(50, make)
    drive = Drive(Model(nodes))
    drive.begin()
    for node in nodes:
        drive.returned(node.key)
    assert drive.state.status is RunStatus.COMPLETED
    assert len(drive.model.transactions) == len(nodes) + 1


def diamonds(make=writing):
    return [
        *(make(key) for key in ("a", "b", "c", "d")),
        make("ab", "a", "b"),
        make("cd", "c", "d"),
        make("last", "ab", "cd"),
    ]


def test_what_has_returned_together_is_one_transaction_and_the_same_as_one_after_the_other():
    together, apart = Drive(Model(diamonds())), Drive(Model(diamonds()))
    for drive in (together, apart):
        drive.begin()
    ended = [Returned(node=key, attempt=1, outcome=as_value({"by": key}), release=None) for key in "abc"]
    failed = Failed(code=FailureCode.SUBPROCESS, message="it broke", todo="mend it")
    ended.append(Returned(node="d", attempt=1, outcome=failed, release=None))
    actions = together.send(*ended)
    for each in ended:
        apart.send(each)
    assert together.statuses() == apart.statuses()
    assert together.state.outputs == apart.state.outputs
    assert dispatched(actions) == ["ab"]
    assert (len(together.model.transactions), len(apart.model.transactions)) == (2, 5)
    told = [
        sorted((event.kind, event.node) for transaction in drive.model.transactions for event in transaction.events)
        for drive in (together, apart)
    ]
    assert told[0] == told[1]


def test_a_chain_with_claims_takes_two_transactions_a_step():
    nodes = chain(20, claiming)
    drive = Drive(Model(nodes))
    drive.begin()
    for node in nodes:
        drive.admitted(node.key)
        drive.returned(node.key)
    assert drive.state.status is RunStatus.COMPLETED
    assert len(drive.model.transactions) == 2 * len(nodes) + 1


def test_events_grow_linearly_with_nodes():
    def events(length: int) -> int:
        nodes = chain(length)
        drive = Drive(Model(nodes))
        drive.begin()
        for node in nodes:
            drive.returned(node.key)
        return sum(len(transaction.events) for transaction in drive.model.transactions)

    per_node = (events(40) - events(20)) / 20
    assert events(200) == events(20) + per_node * 180


def fan(width: int):
    return [planned(f"n{index:05d}") for index in range(width)]


def play(nodes) -> None:
    drive = Drive(Model(nodes))
    drive.begin()
    for node in nodes:
        drive.returned(node.key)
    assert drive.state.status is RunStatus.COMPLETED


def calls_a_node(make, size: int) -> float:
    """Count the calls that the pure core makes: a measure of time that no busy machine can move."""
    nodes, calls = make(size), 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        play(nodes)
    finally:
        sys.setprofile(None)
    return calls / size


def bytes_a_node(make, size: int) -> float:
    nodes = make(size)
    tracemalloc.start()
    try:
        play(nodes)
        return tracemalloc.get_traced_memory()[1] / size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [chain, fan])
@pytest.mark.parametrize("cost", [calls_a_node, bytes_a_node])
def test_what_a_node_costs_in_time_and_memory_does_not_grow_with_the_run(make, cost):
    """R15: counted, so that no busy machine can move the verdict."""
    assert cost(make, 1200) <= 1.1 * cost(make, 200)


def test_completion_and_the_intents_it_releases_are_one_transaction():
    drive = Drive(Model([writing("a"), writing("b", "a")]))
    drive.begin()
    drive.returned("a")
    last = drive.model.transactions[-1]
    assert {record.key: record.status for record in last.nodes} == {"a": Status.COMPLETED, "b": Status.RUNNING}


def test_a_claim_is_asked_only_when_the_intent_is_durable_and_runs_when_admitted():
    drive = Drive(Model([claiming("encode")]))
    drive.begin()
    assert asked(drive.after) == ["encode"]
    assert not asked(drive.now)
    assert drive.status("encode") is Status.QUEUED
    assert drive.state.nodes["encode"].record.attempt == 0
    actions = drive.admitted("encode", ticket=7)
    assert dispatched(actions) == ["encode"]
    assert drive.state.nodes["encode"].record.attempt == 1
    (event,) = drive.model.events("node-running", "encode")
    assert event["ticket"] == 7
    assert event["claims"] == {"ffmpeg": 1}


def test_a_diamond_runs_its_sides_together_and_joins_after_both():
    """R1."""
    drive = Drive(
        Model([planned("top"), planned("left", "top"), planned("right", "top"), planned("join", "left", "right")])
    )
    drive.begin()
    assert sorted(dispatched(drive.returned("top"))) == ["left", "right"]
    assert not dispatched(drive.returned("left"))
    assert dispatched(drive.returned("right")) == ["join"]


def test_jobs_bound_what_is_queued_or_running_and_keys_decide_the_order():
    drive = Drive(Model([planned("c"), planned("a"), planned("b")]), jobs=2)
    assert dispatched(drive.begin()) == ["a", "b"]
    assert dispatched(drive.returned("a")) == ["c"]


def test_a_node_gets_the_values_of_its_dependencies():
    uses = planned("b", "a", input={"given": {"$ref": {"node": "a", "path": ["by"]}}})
    drive = Drive(Model([planned("a"), uses], outputs={"all": {"$ref": {"node": "b", "path": []}}}))
    drive.begin()
    (dispatch,) = kinds(drive.returned("a"), Dispatch)
    assert dispatch.plan.input == {"given": "a"}
    assert left(drive.returned("b")).outputs == {"all": {"by": "b"}}


def test_a_reference_that_leads_nowhere_fails_its_node_alone():
    uses = planned("b", "a", input={"given": {"$ref": {"node": "a", "path": ["missing"]}}})
    drive = Drive(Model([planned("a"), uses, planned("c")]))
    drive.begin()
    drive.returned("c")
    drive.returned("a")
    assert drive.status("b") is Status.FAILED
    assert drive.state.nodes["b"].record.failure.code is FailureCode.INVALID_DATA
    assert drive.state.status is RunStatus.PARTIAL


def test_a_file_name_that_cannot_be_fails_before_anything_starts():
    """Field case 32: of a name that another node made."""
    policy = Policy(effect=Effect.LOCAL_DERIVED_WRITE, publishes=("to",))
    drive = Drive(
        Model([planned("a"), planned("b", "a", policy=policy, input={"to": {"$ref": {"node": "a", "path": ["by"]}}})])
    )
    drive.begin()
    drive.returned("a", as_value({"by": "x" * 256}))
    failure = drive.state.nodes["b"].record.failure
    assert (drive.status("b"), failure.code) == (Status.FAILED, FailureCode.INVALID_DATA)
    assert "a file name of 256 bytes" in failure.message


def test_an_input_over_its_limit_fails_before_anything_starts():
    small = planned("a", policy=Policy(max_input_bytes=8), input={"text": "more than eight bytes"})
    drive = Drive(Model([small]))
    drive.begin()
    assert drive.state.nodes["a"].record.failure.code is FailureCode.INVALID_DATA
    assert drive.state.status is RunStatus.FAILED


def test_a_failure_skips_what_depends_on_it_and_nothing_else():
    """R5."""
    drive = Drive(Model([planned("a"), planned("b", "a"), planned("c", "b"), planned("d")]))
    drive.begin()
    drive.failed("a")
    assert drive.statuses() == {"a": "failed", "b": "skipped", "c": "skipped", "d": "running"}
    gone = left(drive.returned("d"))
    assert gone.status is RunStatus.PARTIAL
    assert gone.counts == {
        "cancelled": 0, "completed": 1, "failed": 1, "pending": 0, "resting": 0, "running": 0, "skipped": 2,
    }  # fmt: skip


def test_a_claim_the_machine_can_never_admit_makes_its_node_incompatible_and_others_go_on():
    """R3."""
    drive = Drive(Model([claiming("big", cpu=99), planned("after", "big"), planned("other")]))
    drive.begin()
    drive.send(NotAdmitted(node="big", number=1, code=Code.INVALID_CLAIMS, message="cpu 99 of 2", todo="claim less"))
    assert drive.statuses() == {"big": "incompatible", "after": "skipped", "other": "running"}
    assert left(drive.returned("other")).status is RunStatus.PARTIAL


def test_the_publication_key_of_a_file_is_the_same_however_it_is_written():
    nodes = [
        writing("a", publishes=("target",)).model_copy(update={"input": {"target": "out/x.mp4"}}),
        writing("b", publishes=("target",)).model_copy(update={"input": {"target": "/films/./out/sub/../x.mp4"}}),
    ]
    drive = Drive(Model(nodes))
    asks = {ask.node: ask.keys for ask in drive.begin() if hasattr(ask, "keys")}
    assert asks == {"a": ("file:/films/out/x.mp4",), "b": ("file:/films/out/x.mp4",)}


def test_the_run_is_released_in_the_transaction_that_ends_it():
    drive = Drive(Model([planned("a")]))
    drive.begin()
    drive.returned("a")
    assert drive.model.transactions[-1].release
    assert drive.model.transactions[-1].summary.status is RunStatus.COMPLETED
    assert [transaction.release for transaction in drive.model.transactions].count(True) == 1


def test_a_run_without_nodes_completes_at_once():
    drive = Drive(Model([]))
    assert left(drive.begin()).status is RunStatus.COMPLETED


def test_trusted_code_is_dispatched_only_when_its_intent_is_durable():
    drive = Drive(Model([planned("a", executor=ComputeExecutor(compute="f"))]))
    drive.begin()
    assert dispatched(drive.after) == ["a"]


def test_a_deadline_is_set_with_the_dispatch():
    drive = Drive(Model([writing("a", max_seconds=12.0)]))
    (timer,) = kinds(drive.begin(), SetTimer)
    assert (timer.timer.kind, timer.timer.node, timer.seconds) == ("deadline", "a", 12.0)


def test_what_is_wrong_with_a_reference_deep_inside_an_input_fails_its_node_and_no_more():
    """The way to it is longer than the text of a failure may be; the core must not break on that."""
    deep = {"$ref": {"node": "a", "path": ["none"]}}
    for _ in range(80):
        deep = {"k" * 70: deep}
    drive = Drive(Model([planned("a"), planned("b", "a", input=deep)]))
    drive.begin()
    drive.returned("a")
    assert drive.status("b") is Status.FAILED
    assert len(drive.model.records["b"].failure.message) == 4000
