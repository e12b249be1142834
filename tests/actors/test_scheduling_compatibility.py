"""A host that lacks code of a run: it changes nothing, until a person accepts to go on without."""

import pytest

from actors.actions import EndLeftovers, Judge, RunLeft
from actors.messages import Begin, LeftoversEnded
from actors.scheduling.state import load
from store.contracts import Request, RequestKind
from store.lifecycle import RunStatus, Status
from store.policy import Effect, Policy, Resume, Retry
from tests.actors.support import (
    HUMAN,
    RUN_ID,
    Drive,
    Model,
    code,
    dispatched,
    gate,
    kinds,
    left,
    paid,
    planned,
    rule,
    writing,
)

WHY = "operation test.work@1 (not installed)"


def lacking(model: Model, *keys: str, accept: bool = True, jobs: int = 8, principal: str = HUMAN) -> Drive:
    """Claim the run with a host that lacks the code of those nodes, having asked it to go on without them."""
    drive = Drive(model, jobs=jobs)
    drive.state = load(model.claim(), jobs=jobs, release_at_rest=False, lacking=dict.fromkeys(keys, WHY))
    if accept:
        model.asked += 1
        request = Request(
            request_id=f"request-{model.asked}",
            run_id=RUN_ID,
            kind=RequestKind.ACCEPT_INCOMPATIBLE,
            principal=principal,
            data={"nodes": list(keys)},
            at="2026-01-01T00:00:00.000Z",
        )
        model.post(request)
        drive.send(Begin(requests=model.waiting))
        drive.send(rule(kinds(drive.now, Judge)[-1]))
    else:
        drive.begin()
    return drive


def settle_leftovers(drive: Drive) -> list:
    (asked,) = kinds(drive.now, EndLeftovers)
    return drive.send(LeftoversEnded(nodes=asked.nodes, ended={}, remaining={}))


def test_what_needs_the_missing_code_is_incompatible_its_dependents_skipped_and_the_rest_goes_on():
    model = Model([writing("gone"), writing("after", "gone"), writing("also/gone", "gone"), writing("fine")])
    drive = lacking(model, "gone", "also/gone")
    assert drive.statuses() == {"gone": "incompatible", "after": "skipped", "also/gone": "skipped", "fine": "running"}
    assert dispatched(drive.after) == ["fine"]
    assert WHY in drive.state.nodes["gone"].record.failure.message
    ((request,),) = [model.events("request")]
    assert request["request"] == "accept-incompatible"
    told = [event for each in model.transactions for event in each.events if event.node == "gone"]
    assert told[-1].principal == HUMAN
    assert left(drive.returned("fine")).status is RunStatus.PARTIAL


@pytest.mark.parametrize("status", [Status.APPROVAL_REQUIRED, Status.BLOCKED, Status.AMBIGUOUS_CODE])
def test_what_rests_and_needs_the_code_is_incompatible_too(status):
    node = {
        Status.APPROVAL_REQUIRED: paid("a"),
        Status.BLOCKED: writing("a", retry=Retry(exhausted="block")),
        Status.AMBIGUOUS_CODE: code("a"),
    }[status]
    model = Model([node, gate("keep")])
    first = Drive(model)
    first.begin()
    if status is not Status.APPROVAL_REQUIRED:
        first.failed("a")
    assert first.status("a") is status
    drive = lacking(model, "a")
    assert drive.statuses() == {"a": "incompatible", "keep": "approval-required"}


def test_an_ambiguous_effect_needs_no_code_and_stays_for_a_person_to_settle():
    model = Model([writing("a", resume=Resume.AMBIGUOUS_AFTER_DISPATCH), writing("gone")])
    first = Drive(model)
    first.begin()
    first.failed("a")
    drive = lacking(model, "a", "gone", jobs=8)
    assert drive.status("a") is Status.AMBIGUOUS
    drive.request(RequestKind.SETTLE, "a", data={"outcome": "retry"})
    assert drive.status("a") is Status.AMBIGUOUS, "what cannot run here is not made ready here"
    drive.request(RequestKind.SETTLE, "a", data={"outcome": "completed", "value": 1})
    assert drive.status("a") is Status.COMPLETED


@pytest.mark.parametrize(
    ("resume", "becomes"),
    [
        (Resume.DETERMINISTIC, Status.INCOMPATIBLE),
        (Resume.RECOVERABLE_TRANSACTION, Status.INCOMPATIBLE),
        (Resume.AMBIGUOUS_AFTER_DISPATCH, Status.AMBIGUOUS),
    ],
)
def test_what_a_dead_host_left_running_is_ended_before_it_is_given_up(resume, becomes):
    model = Model([planned("a", policy=Policy(effect=Effect.PROJECT_MUTATION, resume=resume)), writing("b")])
    Drive(model).begin()
    drive = lacking(model, "a")
    assert drive.status("a") is Status.RUNNING
    assert model.waiting, "the request is not consumed before it can be obeyed"
    settle_leftovers(drive)
    assert drive.status("a") is becomes
    assert not model.waiting


@pytest.mark.parametrize("principal", [None, "agent:x"])
def test_without_a_persons_word_the_run_is_handed_back_as_it_was(principal):
    model = Model([writing("gone"), writing("fine")])
    before = dict(model.records)
    drive = lacking(model, "gone", accept=principal is not None, principal=principal or HUMAN)
    assert model.records == before
    (gone,) = kinds(drive.after, RunLeft)
    assert gone.drained


def test_a_host_that_has_the_code_refuses_to_go_on_without_it():
    model = Model([writing("a")])
    drive = Drive(model)
    drive.begin()
    drive.request(RequestKind.ACCEPT_INCOMPATIBLE, data={"nodes": ["a"]})
    assert drive.status("a") is Status.RUNNING
    assert "has the code" in model.events("request-refused")[0]["message"]


def test_a_failed_node_is_not_reopened_by_a_host_that_lacks_its_code():
    model = Model([writing("a"), writing("b", "a"), gate("keep")])
    first = Drive(model)
    first.begin()
    first.failed("a")
    here = lacking(model, "b", accept=False)
    here.request(RequestKind.RETRY, "a")
    assert here.statuses()["a"] == "failed"
    assert "lacks the code of b" in model.events("request-refused")[0]["message"]


def test_who_only_settles_requests_starts_nothing_and_needs_no_code():
    model = Model([writing("a"), writing("b", "a"), gate("keep")])
    first = Drive(model)
    first.begin()
    first.failed("a")
    retry = Request(
        request_id="retry",
        run_id=RUN_ID,
        kind=RequestKind.RETRY,
        node="a",
        principal=HUMAN,
        at="2026-01-01T00:00:00.000Z",
    )
    model.post(retry)
    operator = lacking(model, "b", accept=False, jobs=0)
    operator.send(rule(kinds(operator.now, Judge)[0]))
    assert operator.statuses() == {"a": "ready", "b": "pending", "keep": "approval-required"}
