"""Agents in the core: what they are given, what they say, and what they say that they spent."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from actors.actions import Dispatch
from actors.messages import Returned
from actors.outcomes import Aborted, Failed
from actors.scheduling.operators import as_value
from store.amounts import Budget, Usage
from store.contracts import RequestKind
from store.lifecycle import Status
from store.plans import AgentExecutor, PlannedNode
from store.policy import Effect, FailureCode, Policy, Resume, Retry
from store.terms import Evidence, EvidenceType, Terms
from tests.actors.support import Drive, Model, kinds, planned

SPENT = Usage(tokens=5, cost=Decimal("0.5"))
GIVEN: dict[str, Any] = {"objective": "do it", "argv": ["agent"], "env": {}, "value": None}
TEST = Evidence(id="suite", type=EvidenceType.TEST)


def agent(key: str, *after: str, terms: Terms | None = None, **policy: Any) -> PlannedNode:
    authored = Policy(effect=Effect.LOCAL_DERIVED_WRITE, **policy)
    node = planned(key, *after, policy=authored, executor=AgentExecutor(), input=GIVEN)
    return node.model_copy(update={"terms": terms})


def blocked(**fields) -> Failed:
    return Failed(code=FailureCode.UNAVAILABLE, message="no login", todo="log in", blocked=True, **fields)


def drive(*nodes: PlannedNode) -> Drive:
    made = Drive(Model(nodes or [agent("a"), agent("b", "a")]))
    made.begin()
    return made


def test_an_agent_is_told_its_evidence_and_its_budget():
    """Nothing of that is anything to a node that is no agent."""
    terms = Terms(budget=Budget(tokens=9), evidence=(TEST,))
    made = drive(agent("a", terms=terms), planned("b"))
    first, second = sorted(kinds([*made.now, *made.after], Dispatch), key=lambda action: action.node)
    assert first.task is not None
    assert (first.task.budget, first.task.evidence) == (Budget(tokens=9), (TEST,))
    assert second.task is None


@pytest.mark.parametrize("resume", [Resume.DETERMINISTIC, Resume.AMBIGUOUS_AFTER_DISPATCH])
def test_an_agent_that_is_blocked_rests_whatever_its_policy(resume):
    """It is no failure to be retried by itself; a person acts and retries it."""
    made = drive(agent("a", resume=resume, retry=Retry(attempts=3)), agent("b", "a"))
    made.returned("a", blocked())
    assert made.statuses() == {"a": "blocked", "b": "pending"}
    assert made.state.nodes["a"].record.failures == 0
    made.request(RequestKind.RETRY, "a")
    assert (made.status("a"), made.state.nodes["a"].record.attempt) == (Status.RUNNING, 2)


def test_an_agent_that_is_blocked_while_it_is_being_cancelled_is_cancelled():
    """Nobody is asked to unblock what nobody wants any more."""
    made = drive()
    made.request(RequestKind.CANCEL)
    made.returned("a", blocked())
    assert made.statuses() == {"a": "cancelled", "b": "cancelled"}


@pytest.mark.parametrize(
    "outcome",
    [
        replace(as_value({}), usage=SPENT),
        Failed(code=FailureCode.MALFORMED_OUTPUT, message="m", todo="t", usage=SPENT),
        Aborted(reason="timeout", usage=SPENT),
        blocked(usage=SPENT),
    ],
    ids=["value", "failed", "aborted", "blocked"],
)
def test_what_was_spent_is_logged_however_it_ended(outcome):
    """Exact, as text, with its attempt."""
    made = drive()
    made.returned("a", outcome)
    assert [event.data for event in spending(made)] == [{"change": "spend", "amount": {"tokens": 5, "cost": "0.5"}}]
    assert [event.attempt for event in spending(made)] == [1]


def test_what_a_late_result_spent_is_logged_and_its_result_ignored():
    """G17: a superseded attempt reports; its spending counts."""
    made = drive(agent("a", retry=Retry(attempts=2)))
    made.failed("a", FailureCode.SUBPROCESS)
    assert made.state.nodes["a"].record.attempt == 2
    late = Failed(code=FailureCode.INTERNAL, message="m", todo="t", usage=SPENT)
    made.send(Returned(node="a", attempt=1, outcome=late, release=None))
    assert made.status("a") is Status.RUNNING
    assert [event.attempt for event in spending(made)] == [1]


def spending(made: Drive) -> list:
    return [
        event
        for transaction in made.model.transactions
        for event in transaction.events
        if event.kind.value == "spending"
    ]
