"""Grants: bound to exactly what they are for; what only a person may reopen opens by them alone."""

from typing import Any

import pytest

from hostres.errors import Code
from store.contracts import Grant, GrantAction, NodeRecord, RequestKind, Revision
from store.lifecycle import Status
from store.reader import Reader
from store.requests import post
from store.transactions import Claimed, Output
from store.values import Domain, digest_bytes
from tests.store.support import (
    CLOCK,
    COMPUTE,
    STAMP,
    Setting,
    assert_refused,
    grant_of,
    moved,
    node_plan,
    plan_of,
    request_of,
)

BUNDLE = b"code"
BUNDLE_SHA256 = digest_bytes(Domain.BUNDLE, BUNDLE)


def interrupted(setting: Setting, status: Status) -> tuple[Claimed, NodeRecord]:
    """Return a claimed run whose compute node `a` was interrupted in its first attempt."""
    plan = plan_of({"a": [], "b": ["a"]}, executors={"a": COMPUTE}, bundle_sha256=BUNDLE_SHA256)
    claimed = setting.claimed(plan, bundle=BUNDLE)
    frozen = node_plan(claimed.fence.run_id, "a")
    running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, plan_sha256=frozen.sha256, started_at=STAMP.at)
    setting.accept(claimed, started=True, plans=(frozen,), nodes=(running,))
    stopped = moved(running, status)
    setting.accept(claimed, nodes=(stopped,))
    return claimed, stopped


def replay(run: str, record: NodeRecord, **changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "attempt": record.attempt + 1,
        "plan_sha256": record.plan_sha256,
        "bundle_sha256": BUNDLE_SHA256,
        "compute": "double",
    }
    return {"grants": (grant_of(run, changes.pop("node", "a"), GrantAction.REPLAY, **{**fields, **changes}),)}


@pytest.mark.parametrize(
    "changes",
    [
        {"attempt": 1},
        {"attempt": 3},
        {"attempt": None},
        {"plan_sha256": "0" * 64},
        {"bundle_sha256": "0" * 64},
        {"bundle_sha256": None},
        {"compute": "triple"},
        {"compute": None},
        {"node": "b"},
        {"allowed": False},
    ],
)
def test_a_replay_grant_that_names_anything_else_opens_nothing(setting: Setting, changes: dict[str, Any]) -> None:
    claimed, stopped = interrupted(setting, Status.AMBIGUOUS_CODE)
    run = claimed.fence.run_id
    ready = moved(stopped, Status.READY)
    assert_refused(setting.write(claimed, nodes=(ready,)), Code.CONFLICT, "node a")
    assert_refused(setting.write(claimed, nodes=(ready,), **replay(run, stopped, **changes)), Code.CONFLICT)
    with Reader.open(setting.home) as reader:
        assert reader.grants(run) == ()
    setting.accept(claimed, nodes=(ready,), **replay(run, stopped))


def test_a_grant_for_attempt_two_does_not_serve_attempt_three(setting: Setting) -> None:
    claimed, stopped = interrupted(setting, Status.AMBIGUOUS_CODE)
    run = claimed.fence.run_id
    grant = replay(run, stopped)
    setting.accept(claimed, nodes=(moved(stopped, Status.READY),), **grant)
    running = moved(stopped, Status.RUNNING, attempt=2, started_at=STAMP.at)
    setting.accept(claimed, nodes=(running,))
    again = moved(running, Status.AMBIGUOUS_CODE)
    setting.accept(claimed, nodes=(again,))
    assert_refused(setting.write(claimed, nodes=(moved(again, Status.READY),), **grant), Code.CONFLICT)
    setting.accept(claimed, nodes=(moved(again, Status.READY),), **replay(run, again))


def test_interrupted_code_can_be_given_up_without_a_grant(setting: Setting) -> None:
    claimed, stopped = interrupted(setting, Status.AMBIGUOUS_CODE)
    setting.accept(claimed, nodes=(moved(stopped, Status.CANCELLED),))


@pytest.mark.parametrize("after", [Status.COMPLETED, Status.FAILED, Status.READY, Status.CANCELLED])
def test_an_ambiguous_node_is_settled_only_by_a_grant_for_that_attempt(setting: Setting, after: Status) -> None:
    claimed, stopped = interrupted(setting, Status.AMBIGUOUS)
    run = claimed.fence.run_id
    output = Output.of("a", 1)
    settled = moved(stopped, after, **({"output_sha256": output.sha256} if after is Status.COMPLETED else {}))
    parts: dict[str, Any] = {"nodes": (settled,), "outputs": (output,) if after is Status.COMPLETED else ()}
    assert_refused(setting.write(claimed, **parts), Code.CONFLICT, "node a")
    for wrong in ({"attempt": 2}, {"attempt": 1, "allowed": False}):
        grants = (grant_of(run, "a", GrantAction.SETTLE, **wrong),)
        assert_refused(setting.write(claimed, **parts, grants=grants), Code.CONFLICT, "node a")
    setting.accept(claimed, **parts, grants=(grant_of(run, "a", GrantAction.SETTLE, attempt=1),))


def test_a_failed_node_and_its_skipped_dependent_reopen_by_a_retry_grant_in_one_transaction(
    setting: Setting,
) -> None:
    claimed, stopped = interrupted(setting, Status.FAILED)
    run = claimed.fence.run_id
    skipped = moved(claimed.nodes[1], Status.SKIPPED)
    setting.accept(claimed, nodes=(skipped,))
    reopened = (moved(stopped, Status.READY), moved(skipped, Status.PENDING))
    assert_refused(setting.write(claimed, nodes=reopened), Code.CONFLICT, "node a")
    for_another = (grant_of(run, "b", GrantAction.RETRY),)
    assert_refused(setting.write(claimed, nodes=reopened, grants=for_another), Code.CONFLICT, "node a")
    setting.accept(claimed, nodes=reopened, grants=(grant_of(run, "a", GrantAction.RETRY),))


def test_a_grant_for_another_plan_or_run_is_never_stored(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    run = claimed.fence.run_id
    plan = node_plan(run, "a")
    waits = moved(claimed.nodes[0], Status.APPROVAL_REQUIRED, plan_sha256=plan.sha256)
    setting.accept(claimed, started=True, plans=(plan,), nodes=(waits,))
    other_plan = grant_of(run, "a", GrantAction.EFFECT, plan_sha256="1" * 64)
    other_run = grant_of(setting.created(), "a", GrantAction.EFFECT, plan_sha256=plan.sha256)
    no_node = grant_of(run, "zz", GrantAction.EFFECT, plan_sha256=plan.sha256)
    assert_refused(setting.write(claimed, grants=(other_plan,)), Code.CONFLICT, "1" * 64, plan.sha256)
    assert_refused(setting.write(claimed, grants=(other_run,)), Code.CONFLICT)
    assert_refused(setting.write(claimed, grants=(no_node,)), Code.NOT_FOUND, "zz")
    right = grant_of(run, "a", GrantAction.EFFECT, plan_sha256=plan.sha256)
    setting.accept(claimed, grants=(right,))
    setting.accept(claimed, grants=(right,))
    changed = right.model_copy(update={"reason": "other"})
    assert_refused(setting.write(claimed, grants=(changed,)), Code.CONFLICT, right.grant_id)
    with Reader.open(setting.home) as reader:
        assert reader.grants(run) == (right,)


def test_a_request_is_consumed_once_together_with_its_grant_or_not_at_all(setting: Setting) -> None:
    claimed = setting.claimed(plan_of({"a": []}))
    run = claimed.fence.run_id
    plan = node_plan(run, "a")
    waits = moved(claimed.nodes[0], Status.APPROVAL_REQUIRED, plan_sha256=plan.sha256)
    setting.accept(claimed, started=True, plans=(plan,), nodes=(waits,))
    request = request_of(run, RequestKind.APPROVE, node="a", plan_sha256=plan.sha256)
    assert post(setting.home, request, clock=CLOCK)
    (stored,) = setting.store.requests([run])
    wrong = grant_of(run, "a", GrantAction.EFFECT, plan_sha256="1" * 64)
    assert setting.write(claimed, consumed=(stored.request_id,), grants=(wrong,)) is not None
    assert setting.store.requests([run]) == [stored]
    right = grant_of(run, "a", GrantAction.EFFECT, plan_sha256=plan.sha256, request_id=stored.request_id)
    parts: dict[str, Any] = {"consumed": (stored.request_id,), "grants": (right,)}
    setting.accept(claimed, **parts, nodes=(moved(waits, Status.QUEUED),))
    assert setting.store.requests([run]) == []
    assert_refused(setting.write(claimed, **parts), Code.CONFLICT, stored.request_id)
    other = setting.claimed(plan_of({"a": []}))
    assert_refused(setting.write(other, consumed=(stored.request_id,)), Code.CONFLICT, stored.request_id)


def test_only_a_correction_makes_a_revision_and_just_the_next_one(setting: Setting) -> None:
    """A revision comes with its grant, in one transaction, on a node that has failed; nothing else changes it."""
    claimed, failed = interrupted(setting, Status.FAILED)
    run = claimed.fence.run_id

    def correction(number: int, **changes: Any) -> Grant:
        return grant_of(run, changes.pop("node", "a"), GrantAction.CORRECT, revision=Revision(number=number, input={}))

    def ready(**changes: Any) -> tuple[NodeRecord, ...]:
        return (moved(failed, Status.READY, plan_sha256=None, failure=None, **changes),)

    denied = correction(1).model_copy(update={"allowed": False})
    for nodes, grants in (
        (ready(revision=1), ()),
        (ready(revision=1), (grant_of(run, "a", GrantAction.RETRY),)),
        (ready(revision=2), (correction(1),)),
        (ready(revision=2), (correction(2),)),
        (ready(), (correction(1),)),
        ((), (correction(1),)),
        (ready(revision=1), (denied,)),
        (ready(revision=1), (correction(1, node="b"),)),
        (ready(), (grant_of(run, "a", GrantAction.RETRY, revision=Revision(number=1, input={})),)),
        (ready(revision=1), (grant_of(run, "a", GrantAction.CORRECT),)),
    ):
        assert_refused(setting.write(claimed, nodes=nodes, grants=grants), Code.CONFLICT)
    setting.accept(claimed, nodes=ready(revision=1), grants=(correction(1),))


@pytest.mark.parametrize("status", [Status.BLOCKED, Status.AMBIGUOUS, Status.AMBIGUOUS_CODE])
def test_a_blocked_node_may_be_corrected_and_an_ambiguous_one_not(setting: Setting, status: Status) -> None:
    """What may have happened is settled first."""
    claimed, stopped = interrupted(setting, status)
    run = claimed.fence.run_id
    after = (moved(stopped, Status.READY, plan_sha256=None, revision=1),)
    grant = (grant_of(run, "a", GrantAction.CORRECT, revision=Revision(number=1, input=1)),)
    refused = setting.write(claimed, nodes=after, grants=grant)
    assert (refused is None) is (status is Status.BLOCKED)
