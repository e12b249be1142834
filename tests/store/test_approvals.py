"""The judgement of requests."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from hostres.errors import Code
from store.approvals import ACTIONS, Accepted, Refused, Standing, judge
from store.contracts import RequestKind
from store.lifecycle import FINAL, Status
from store.rule_names import NO_RULE
from store.rules import DEFAULT_RULES, Action, Matter, Rule, Verdict, is_owner, verdict
from tests.store.support import request_of, run_id

SHA, OTHER = "a" * 64, "b" * 64
RUN = run_id()
OF_WORKERS = {RequestKind.LEASE_WORK, RequestKind.SUBMIT_WORK, RequestKind.GIVE_BACK_WORK}
ABOUT_RECEIPTS = {RequestKind.RECEIPT, RequestKind.REVOKE}
OF_A_NODE = sorted(set(RequestKind) - {RequestKind.ACCEPT_INCOMPATIBLE} - OF_WORKERS - ABOUT_RECEIPTS)
FITTING = {
    RequestKind.APPROVE: Status.APPROVAL_REQUIRED,
    RequestKind.DENY: Status.APPROVAL_REQUIRED,
    RequestKind.CANCEL: Status.RUNNING,
    RequestKind.RETRY: Status.FAILED,
    RequestKind.REPLAY: Status.AMBIGUOUS_CODE,
    RequestKind.SETTLE: Status.AMBIGUOUS,
    RequestKind.CORRECT: Status.FAILED,
    RequestKind.RECOVER: Status.RUNNING,
    RequestKind.BUDGET: Status.READY,
}


def judged(kind: RequestKind, status: Status | None = None, **changes: Any) -> Accepted | Refused:
    plan = changes.pop("stored", SHA)
    data = {"add": {"cost": "0.5"}} if kind is RequestKind.BUDGET else {"input": 1, "revision": 0}
    fields = {"node": "a", "plan_sha256": SHA, "data": data, **changes}
    return judge(request_of(RUN, kind, **fields), Standing(status=status or FITTING[kind], plan_sha256=plan))


@pytest.mark.parametrize("kind", OF_A_NODE)
def test_a_human_who_names_what_waits_is_accepted_by_a_rule_and_nobody_else_is(kind: RequestKind) -> None:
    accepted = judged(kind)
    assert isinstance(accepted, Accepted)
    assert accepted.rule == f"default.human-{ACTIONS[kind]}"
    for principal in ("agent:x", "service:hostler", "nobody"):
        refused = judged(kind, principal=principal)
        assert isinstance(refused, Refused)
        assert refused.code is Code.CONFLICT
        assert principal in refused.what


def test_where_nothing_waits_for_an_answer_there_is_nothing_to_answer() -> None:
    several = {
        RequestKind.CANCEL: set(Status) - FINAL,
        RequestKind.RETRY: {Status.FAILED, Status.BLOCKED},
        RequestKind.CORRECT: {Status.FAILED, Status.BLOCKED},
        RequestKind.BUDGET: set(Status),
    }
    for kind, status in itertools.product(OF_A_NODE, Status):
        answer = judged(kind, status)
        assert isinstance(answer, Accepted) is (status in several.get(kind, {FITTING[kind]})), (kind, status)
        if isinstance(answer, Refused):
            assert answer.code is Code.CONFLICT
            assert f"node a is {status}" in answer.what


def test_a_wrong_plan_is_refused_naming_both() -> None:
    for kind in (RequestKind.APPROVE, RequestKind.DENY, RequestKind.REPLAY):
        refused = judged(kind, plan_sha256=OTHER)
        assert isinstance(refused, Refused)
        assert refused.code is Code.CONFLICT
        assert SHA in refused.what
        assert OTHER in refused.what
        unplanned = judged(kind, stored=None)
        assert isinstance(unplanned, Refused)
        assert "node a has no exact plan yet" in unplanned.what


@pytest.mark.parametrize(
    ("use", "again"), [("approve", "approve RUN a`"), ("retry", "show RUN --json`"), ("replay", "show RUN --json`")]
)
def test_a_receipt_for_another_plan_is_refused_naming_what_shows_the_one_that_stands(use: str, again: str) -> None:
    """`approve` shows nothing of a node that waits for no approval."""
    wants = {"receipt": "r1", "subject": "agent:night", "action": use, "lasts_ms": 1000}
    for stored, what in ((SHA, f"with plan {SHA}, not {OTHER}"), (None, "has no exact plan yet")):
        refused = judged(RequestKind.RECEIPT, Status.FAILED, data=wants, plan_sha256=OTHER, stored=stored)
        assert isinstance(refused, Refused)
        assert what in refused.what
        assert stored is None or refused.todo.replace(RUN, "RUN").endswith(again)
    unnamed = judged(RequestKind.RECEIPT, Status.PENDING, data=wants, plan_sha256=None, stored=None)
    assert isinstance(unnamed, Accepted) is (use == "retry")
    assert isinstance(unnamed, Accepted) or "has no exact plan yet" in unnamed.what


@pytest.mark.parametrize("kind", [RequestKind.APPROVE, RequestKind.DENY])
def test_an_answer_to_the_result_of_another_attempt_is_refused_naming_both(kind: RequestKind) -> None:
    """All attempts of a plan have its digest; one that was made meanwhile gave another result."""
    for named, stands in ((1, 2), (2, 1)):
        request = request_of(RUN, kind, node="a", plan_sha256=SHA, data={"attempt": named})
        standing = Standing(status=Status.APPROVAL_REQUIRED, plan_sha256=SHA, attempt=stands)
        refused = judge(request, standing)
        assert isinstance(refused, Refused)
        assert refused.what == f"node a waits with attempt {stands}, not {named}"
        assert isinstance(judge(request, replace(standing, attempt=named)), Accepted)


def test_an_approval_always_names_its_plan() -> None:
    for kind in (RequestKind.APPROVE, RequestKind.DENY):
        refused = judged(kind, plan_sha256=None)
        assert isinstance(refused, Refused)
        assert SHA in refused.what
    assert isinstance(judged(RequestKind.RETRY, plan_sha256=None), Accepted)


def test_only_a_cancel_more_budget_and_the_acceptance_of_missing_code_can_be_about_the_whole_run() -> None:
    of_run = {RequestKind.CANCEL, RequestKind.ACCEPT_INCOMPATIBLE, RequestKind.BUDGET, RequestKind.LEASE_WORK}
    for kind in set(RequestKind) - ABOUT_RECEIPTS:
        request = request_of(RUN, kind, node=None, data={"add": {"tasks": 1}})
        answer = judge(request, Standing())
        assert isinstance(answer, Accepted) is (kind in of_run)


def test_anybody_may_work_unless_a_rule_denies_it() -> None:
    """What comes too late is judged by the run, so that what it spent is recorded."""
    denied = (Rule(id="no-agents", verdict=Verdict.DENY, principal_kind="agent", action=Action.WORK), *DEFAULT_RULES)
    for kind, status in itertools.product(OF_WORKERS, Status):
        node = None if kind is RequestKind.LEASE_WORK else "a"
        request = request_of(RUN, kind, node=node, principal="agent:x")
        standing = Standing(status=status if node else None, plan_sha256=SHA)
        assert judge(request, standing) == Accepted(rule="default.allow-work")
        assert isinstance(judge(request, Standing(status=status, plan_sha256=SHA), rules=denied), Refused)


PERSON = "a person must do it, from a shell that no node of a run has started"
OF_RULE = "rule mine of [authority] in the configuration"


@pytest.mark.parametrize(
    ("kind", "principal", "rule", "todo"),
    [
        (RequestKind.CANCEL, "human:ada", {"verdict": Verdict.DENY}, f"{OF_RULE} denies it to people: change it"),
        (RequestKind.CANCEL, "human:ada", {"verdict": Verdict.ASK}, f"{OF_RULE} asks, and there is nobody to ask: "),
        (RequestKind.RETRY, "human:ada", {"verdict": Verdict.ASK}, f"{OF_RULE} asks, and there is nobody to ask: "),
        (RequestKind.APPROVE, "human:ada", {"verdict": Verdict.DENY}, f"{OF_RULE} denies it to people: change it"),
        (RequestKind.CANCEL, "agent:x", {"verdict": Verdict.DENY}, f"{OF_RULE} denies it to people: change it"),
        (RequestKind.CANCEL, "agent:x", {"verdict": Verdict.DENY, "principal_kind": "agent"}, PERSON),
        (RequestKind.CANCEL, "agent:x", None, f"{PERSON}; or the owner of its parent, lead"),
        (RequestKind.CANCEL, "agent:x", {"verdict": Verdict.DENY, "principal_kind": "human"}, OF_RULE),
        (RequestKind.SETTLE, "agent:x", None, PERSON),
        (
            RequestKind.RETRY,
            "agent:x",
            {"verdict": Verdict.ASK, "principal_kind": "agent"},
            "ask a person for a receipt",
        ),
    ],
)
def test_who_may_not_is_told_who_may_and_where_nobody_may_which_rule_says_so(
    kind: RequestKind, principal: str, rule: dict[str, Any] | None, todo: str
) -> None:
    """A person is not sent to another shell by a rule that is about people."""
    rules = (*([] if rule is None else [Rule(id="mine", **rule)]), *DEFAULT_RULES)
    request = request_of(RUN, kind, node="a", plan_sha256=SHA, principal=principal, data={"input": 1, "revision": 0})
    standing = Standing(status=FITTING[kind], plan_sha256=SHA, matter=Matter(parents_owner="lead"))
    refused = judge(request, standing, rules=rules)
    assert isinstance(refused, Refused)
    assert refused.todo.startswith(todo)
    assert (PERSON in refused.todo) is todo.startswith(PERSON)
    assert ("lead" in refused.todo) is ("lead" in todo)


@pytest.mark.parametrize(
    ("kind", "data"),
    [(RequestKind.BUDGET, {}), (RequestKind.BUDGET, {"add": {"cost": "0"}}), (RequestKind.SETTLE, {"spent": {"x": 1}})],
)
def test_a_request_that_does_not_say_how_much_is_refused(kind: RequestKind, data: dict[str, Any]) -> None:
    refused = judged(kind, data=data)
    assert isinstance(refused, Refused)
    assert refused.code is Code.INVALID_DATA


def test_only_a_person_may_accept_missing_code_and_only_for_a_whole_run() -> None:
    accept = request_of(RUN, RequestKind.ACCEPT_INCOMPATIBLE)
    assert judge(accept, Standing()) == Accepted(rule="default.human-cancel")
    for principal in ("agent:x", "service:hostler"):
        by_another = accept.model_copy(update={"principal": principal})
        assert isinstance(judge(by_another, Standing()), Refused)
    of_a_node = accept.model_copy(update={"node": "a"})
    for status in Status:
        assert isinstance(judge(of_a_node, Standing(status=status)), Refused)


def test_a_correction_names_the_revision_that_it_replaces() -> None:
    """What somebody else has replaced meanwhile is not replaced again."""
    request = request_of(RUN, RequestKind.CORRECT, node="a", data={"input": 1, "revision": 1})
    assert isinstance(judge(request, Standing(status=Status.FAILED, revision=1)), Accepted)
    for revision in (0, 2):
        refused = judge(request, Standing(status=Status.FAILED, revision=revision))
        assert isinstance(refused, Refused)
        assert refused.code is Code.CONFLICT
        assert f"has revision {revision}" in refused.what


@pytest.mark.parametrize("action", sorted(Action))
def test_only_recovery_is_allowed_to_the_owner_of_a_parent(action: Action) -> None:
    """Whoever owns the parent recovers; what decides for people stays with people."""
    recovery = {Action.RETRY, Action.CORRECT, Action.CANCEL, Action.RECOVER}
    for principal in ("agent:lead", "service:lead"):
        said, rule = verdict(DEFAULT_RULES, principal=principal, action=action, matter=Matter(parents_owner="lead"))
        if action in {Action.EFFECT, Action.PREPARE, Action.WORK}:
            continue
        expected = (Verdict.ALLOW, f"default.owner-{action}") if action in recovery else (Verdict.DENY, NO_RULE)
        assert (said, rule) == expected
    assert not is_owner("lead", "lead")
    assert not is_owner("agent:lead", None)
    assert not is_owner("agent:leader", "lead")
