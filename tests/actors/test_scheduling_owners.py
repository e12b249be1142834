"""Whoever owns the parent of a node may recover it; nobody else but a person may."""

import pytest

from store.contracts import RequestKind
from store.lifecycle import Status
from store.plans import PlannedNode
from store.terms import Owner, Terms
from tests.actors.support import Drive, Model, paid, writing

LEAD, STRANGER = "agent:lead", "agent:other"


def owned(node: PlannedNode, owner: str) -> PlannedNode:
    return node.model_copy(update={"terms": Terms(owner=Owner(role="lead", id=owner))})


def child(node: PlannedNode, parent: str, owner: str = "worker") -> PlannedNode:
    return node.model_copy(update={"terms": Terms(parent=parent, owner=Owner(role="worker", id=owner))})


def family(*nodes: PlannedNode) -> Drive:
    made = Drive(Model([owned(writing("p"), "lead"), *nodes]))
    made.begin()
    return made


def refusals(made: Drive, node: str) -> list[str]:
    return [event["message"] for event in made.model.events("request-refused", node)]


def test_the_owner_of_its_parent_may_retry_a_failed_node_and_a_stranger_may_not():
    """G19: ready again with the next attempt for the owner of the parent; a stranger is refused."""
    made = family(child(writing("a"), "p"))
    made.failed("a")
    made.request(RequestKind.RETRY, "a", principal=STRANGER, reason="me too")
    assert made.status("a") is Status.FAILED
    assert "agent:other may not retry node a" in refusals(made, "a")[0]
    made.request(RequestKind.RETRY, "a", principal=LEAD, reason="the network is back")
    assert made.status("a") is Status.RUNNING
    assert made.state.nodes["a"].record.attempt == 2
    (grant,) = made.model.grants
    assert (grant.principal, grant.rule, grant.reason) == (LEAD, "default.owner-retry", "the network is back")


def test_a_completed_node_is_not_retried_for_its_parents_owner_either():
    """G19: on a completed node the retry is refused, whoever asks."""
    made = family(child(writing("a"), "p"))
    made.returned("a")
    for principal in (LEAD, "human:ann"):
        made.request(RequestKind.RETRY, "a", principal=principal)
        assert "there is nothing to retry" in refusals(made, "a")[-1]
    assert made.state.nodes["a"].record.attempt == 1


@pytest.mark.parametrize("principal", ["agent:worker", "agent:boss", "service:worker"])
def test_neither_its_own_owner_nor_that_of_a_grandparent_may(principal):
    """Delegation goes one step: a node answers to its parent's owner."""
    made = Drive(
        Model([owned(writing("top"), "boss"), child(writing("p"), "top", "lead"), child(writing("a"), "p", "worker")])
    )
    made.begin()
    made.failed("a")
    made.request(RequestKind.RETRY, "a", principal=principal)
    assert made.status("a") is Status.FAILED


def test_the_owner_of_a_parent_may_cancel_its_child_but_neither_approve_nor_settle_it():
    """What decides for people stays with people."""
    made = family(child(paid("a"), "p"), child(paid("b"), "p"))
    made.approve("a", principal=LEAD)
    assert made.status("a") is Status.APPROVAL_REQUIRED
    made.approve("b")
    made.failed("b")
    assert made.status("b") is Status.AMBIGUOUS
    made.request(RequestKind.SETTLE, "b", principal=LEAD, data={"outcome": "failed"})
    assert made.status("b") is Status.AMBIGUOUS
    made.request(RequestKind.CANCEL, "a", principal=LEAD)
    assert made.status("a") is Status.CANCELLED


def test_without_an_owner_of_its_parent_only_a_person_may():
    """A node without a parent, or whose parent has no owner, is recovered by people alone."""
    made = Drive(Model([writing("p"), child(writing("a"), "p"), writing("b")]))
    made.begin()
    for key in "ab":
        made.failed(key)
        for principal in (LEAD, "agent:worker", "agent:p"):
            made.request(RequestKind.RETRY, key, principal=principal)
        assert made.status(key) is Status.FAILED
