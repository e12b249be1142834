"""The log told again: which stories can be true."""

import itertools
from typing import Any

from store.clock import instant
from store.contracts import Event, EventKind, GrantAction
from store.lifecycle import MOVES, RunStatus, Status
from store.transitions import CORRECTABLE, GRANTED
from store.verification.retelling import Retelling
from tests.store.support import EPOCH_MS, HUMAN, run_id

PLAN = "a" * 64


class Teller:
    """Makes the events of one node, and gathers what is said against them."""

    def __init__(self, status: Status = Status.READY, *, waits: bool = False) -> None:
        self.told = Retelling.begin([("a", waits), ("b", False)])
        self.told.nodes["a"].status = status
        self.objections: list[str] = []
        self._seq = itertools.count(1)
        self._run = run_id()

    def tell(self, kind: EventKind, *, node: str | None = "a", attempt: int | None = None, **data: Any) -> None:
        seq = next(self._seq)
        event = Event(
            run_id=self._run, seq=seq, at=instant(EPOCH_MS + seq), boot_ns=seq, kind=kind, node=node, attempt=attempt,
            principal=HUMAN, data=data, prev_sha256="0" * 64, sha256="0" * 64,
        )  # fmt: skip
        self.objections += self.told.take(event)

    def move(self, *path: Status, attempt: int | None = None, **data: Any) -> None:
        before, *rest = path
        self.tell(
            EventKind.NODE_STATUS, attempt=attempt, status=rest[-1].value, via=[one.value for one in rest[:-1]],
            **{"from": before.value, **data},
        )  # fmt: skip

    def grant(self, action: GrantAction, *, allowed: bool = True) -> None:
        self.tell(EventKind.GRANT, action=action.value, allowed=allowed, plan_sha256=PLAN, rule="r")


def test_a_move_can_be_told_if_the_lifecycle_has_it_and_what_needs_a_grant_has_one() -> None:
    for before, after in itertools.product(Status, Status):
        without, denied, allowed = Teller(before), Teller(before), Teller(before)
        for action in set(GrantAction) - {GrantAction.CORRECT}:
            denied.grant(action, allowed=False)
            allowed.grant(action)
        for teller in (without, denied, allowed):
            teller.move(before, after)
        legal, needs = after in MOVES[before], after in GRANTED.get(before, ())
        assert (not without.objections) == (not denied.objections) == (legal and not needs), (before, after)
        assert (not allowed.objections) == legal, (before, after)


def test_a_grant_lets_one_move_through_and_only_the_kind_that_it_is_for() -> None:
    teller = Teller(Status.FAILED)
    teller.grant(GrantAction.RETRY)
    teller.move(Status.FAILED, Status.READY, Status.QUEUED, Status.RUNNING, attempt=2)
    teller.move(Status.RUNNING, Status.FAILED, attempt=2)
    assert teller.objections == []
    teller.move(Status.FAILED, Status.READY, attempt=2)
    assert teller.objections == ["node a leaves failed for ready without a grant"]
    for status, action in ((Status.FAILED, GrantAction.SETTLE), (Status.AMBIGUOUS_CODE, GrantAction.RETRY)):
        other = Teller(status)
        other.grant(action)
        other.move(status, Status.READY)
        assert len(other.objections) == 1


def test_a_move_from_where_the_node_was_not_and_one_of_no_node_are_objected_to() -> None:
    teller = Teller(Status.READY)
    teller.move(Status.QUEUED, Status.RUNNING)
    alien: dict[str, Any] = {"from": "queued", "status": "running"}
    teller.tell(EventKind.NODE_STATUS, node="zz", **alien)
    other: dict[str, Any] = {"from": "queued", "status": "flying"}
    teller.tell(EventKind.NODE_STATUS, **other)
    teller.tell(EventKind.NODE_STATUS, **other | {"from": None, "status": ["running"], "via": {"a": 1}})
    teller.tell(EventKind.NODE_PLAN, node="zz", plan_sha256=PLAN)
    assert [text.split(" ")[0] for text in teller.objections] == ["it", "the", "it", "it", "the"]


def test_claims_rise_by_one_and_are_released_by_who_has_them() -> None:
    teller = Teller()
    for generation in (1, 2):
        teller.tell(EventKind.RUN_CLAIMED, node=None, generation=generation, host="h")
    teller.tell(EventKind.RUN_RELEASED, node=None, generation=2, host="h")
    assert (teller.objections, teller.told.claim.released) == ([], True)
    teller.tell(EventKind.RUN_RELEASED, node=None, generation=2, host="h")
    teller.tell(EventKind.RUN_CLAIMED, node=None, generation=4, host="h")
    teller.tell(EventKind.RUN_RELEASED, node=None, generation=4, host="other")
    assert len(teller.objections) == 3


def test_a_request_is_answered_once() -> None:
    teller = Teller()
    for kind in (EventKind.REQUEST, EventKind.REQUEST_REFUSED):
        teller.tell(kind, request_id="r", request="retry")
    assert teller.objections == ["request r was answered before, by event 1"]
    teller.tell(EventKind.REQUEST, request_id=7)
    teller.tell(EventKind.GRANT, action="fly", allowed=True, plan_sha256=PLAN, rule="r")
    assert len(teller.objections) == 3


def test_times_attempt_failure_and_output_follow_the_moves() -> None:
    teller = Teller(Status.READY)
    failure = {"code": "internal", "message": "m", "todo": "t"}
    teller.move(Status.READY, Status.QUEUED, Status.RUNNING, attempt=1)
    teller.move(Status.RUNNING, Status.FAILED, attempt=1, failure=failure)
    node = teller.told.nodes["a"]
    assert (node.attempt, node.failure, node.output_sha256) == (1, failure, None)
    assert (node.started_at, node.finished_at) == (instant(EPOCH_MS + 1), instant(EPOCH_MS + 2))
    teller.grant(GrantAction.RETRY)
    teller.move(Status.FAILED, Status.READY, attempt=1)
    assert (node.started_at, node.finished_at, node.failure) == (instant(EPOCH_MS + 1), None, None)
    teller.move(Status.READY, Status.QUEUED, Status.RUNNING, attempt=2)
    teller.move(Status.RUNNING, Status.COMPLETED, attempt=2, output_sha256=PLAN)
    assert (node.attempt, node.output_sha256, node.finished_at) == (2, PLAN, instant(EPOCH_MS + 6))
    assert teller.objections == []


def test_the_run_starts_once_and_ends_as_often_as_it_is_reopened() -> None:
    teller, told_ends = Teller(), []
    for kind, status in (
        (EventKind.RUN_STATUS, "running"), (EventKind.RUN_FINALIZED, "failed"), (EventKind.RUN_REOPENED, "running"),
        (EventKind.RUN_STATUS, "running"), (EventKind.RUN_FINALIZED, "completed"),
    ):  # fmt: skip
        teller.tell(kind, node=None, status=status, counts={"completed": 1})
        told_ends.append(teller.told.end is not None)
    assert told_ends == [False, True, False, False, True]
    told = teller.told
    assert (told.started_at, told.status) == (instant(EPOCH_MS + 1), RunStatus.COMPLETED)
    assert told.end is not None
    assert (told.end.at, told.end.status, told.end.counts) == (
        instant(EPOCH_MS + 5),
        RunStatus.COMPLETED,
        {"completed": 1},
    )
    teller.tell(EventKind.RUN_STATUS, node=None, status="over")
    assert teller.objections == ["it names no such status"]


def test_a_preparation_and_an_effect_are_told_apart_and_a_grant_is_for_what_is_frozen() -> None:
    teller = Teller()
    teller.tell(EventKind.NODE_PLAN, plan_sha256="b" * 64, phase="preparation")
    teller.grant(GrantAction.PREPARATION)
    teller.tell(EventKind.NODE_PLAN, plan_sha256=PLAN, phase="effect")
    teller.grant(GrantAction.EFFECT)
    node = teller.told.nodes["a"]
    assert (node.preparation_sha256, node.plan_sha256) == ("b" * 64, PLAN)
    assert [grant.node_plan for grant in teller.told.grants] == ["b" * 64, PLAN]
    assert teller.objections == []


def test_only_a_retry_and_a_correction_may_be_granted_without_a_plan() -> None:
    for action in GrantAction:
        teller = Teller(Status.FAILED)
        teller.tell(EventKind.GRANT, action=action.value, allowed=True, plan_sha256=None, rule="r", revision=1)
        assert (not teller.objections) == (action in {GrantAction.RETRY, GrantAction.CORRECT}), action


def test_a_correction_reopens_a_node_without_a_plan_and_each_is_the_next_revision() -> None:
    """A revision has no plan until one is told of, and none is left out or made of what has not failed."""
    for status in Status:
        teller = Teller(status)
        teller.told.nodes["a"].plan_sha256 = PLAN
        teller.tell(EventKind.GRANT, action="correct", allowed=True, plan_sha256=PLAN, rule="r", revision=1)
        assert (not teller.objections) == (status in CORRECTABLE), status
        node = teller.told.nodes["a"]
        assert (node.revision, node.plan_sha256, teller.told.grants[0].node_plan) == (1, None, PLAN)
    teller = Teller(Status.FAILED)
    teller.tell(EventKind.GRANT, action="correct", allowed=True, plan_sha256=None, rule="r", revision=1)
    teller.move(Status.FAILED, Status.READY)
    assert teller.objections == []
    for revision, allowed in ((2, True), (1, False), (None, True)):
        other = Teller(Status.FAILED)
        other.tell(EventKind.GRANT, action="correct", allowed=allowed, plan_sha256=None, rule="r", revision=revision)
        assert len(other.objections) == 1


def test_finding_out_about_an_attempt_moves_nothing_and_is_only_about_one_that_runs() -> None:
    teller = Teller(Status.QUEUED)
    teller.move(Status.QUEUED, Status.RUNNING, attempt=1)
    teller.tell(EventKind.NODE_RUNNING, attempt=1, reconciling=True, ticket=3)
    assert (teller.told.nodes["a"].status, teller.objections) == (Status.RUNNING, [])
    teller.tell(EventKind.NODE_RUNNING, attempt=2, reconciling=True)
    teller.move(Status.RUNNING, Status.COMPLETED, attempt=1, output_sha256=PLAN)
    teller.tell(EventKind.NODE_RUNNING, attempt=1, reconciling=True)
    teller.tell(EventKind.NODE_RUNNING, node="zz", attempt=1, reconciling=True)
    assert len(teller.objections) == 3


def test_a_try_that_is_put_off_says_from_when_and_for_how_long_until_it_is_made() -> None:
    teller = Teller(Status.RUNNING)
    teller.move(Status.RUNNING, Status.CORRECTIVE, attempt=1, delay_ms=500)
    put_off = [teller.told.nodes["a"].put_off]
    teller.move(Status.CORRECTIVE, Status.READY, attempt=1)
    put_off.append(teller.told.nodes["a"].put_off)
    assert put_off == [(instant(EPOCH_MS + 1), 500), None]
    assert teller.objections == []
