"""Exact plans: an honest preparation and its effect are taken, and whatever a planner could lie about is found."""

from typing import Any, cast

import pytest
from pydantic import JsonValue

from store.contracts import NodeRecord
from store.plans import NodePlan, OperationExecutor, PlannedNode, PlanPhase
from store.policy import Policy, PreparationKind
from store.records import node_plan_sha256
from store.values import Domain, digest
from store.verification.exact_plans import Rules
from store.verification.node_rows import Outputs
from tests.store.support import run_id

FOLDER = "/films"
RUN = run_id()
POLICY = Policy(publishes=("path",), preparation=(PreparationKind.LOCAL_MEDIA,), max_input_bytes=100, max_seconds=10.0)
PLANNED = PlannedNode(
    key="a", executor=OperationExecutor(operation="test.cut", version=1), input={"path": "in"}, policy=POLICY
)


class NoOutputs:
    """The outputs of a run in which nothing refers to any."""

    def has(self, keys: set[str]) -> bool:
        return not keys


def with_input(value: JsonValue) -> dict[str, Any]:
    return {"input": value, "input_sha256": digest(Domain.INPUT, value)}


def prepared(**changes: Any) -> NodePlan:
    fields: dict[str, Any] = {
        "run_id": RUN, "node": "a", "phase": PlanPhase.PREPARATION, "executor": PLANNED.executor, "policy": POLICY,
        "dependencies": {}, "descriptors": {"n": 1}, "max_input_bytes": 60, "max_seconds": 5.0,
        **with_input(PLANNED.input),
    }  # fmt: skip
    return NodePlan(**fields | changes)


def effect(**changes: Any) -> NodePlan:
    fields: dict[str, Any] = {
        "phase": PlanPhase.EFFECT, "descriptors": None, "keys": ("file:/films/out", "file:/films/out.json"),
        "preparation_sha256": node_plan_sha256(prepared()), **with_input({"path": "out"}),
    }  # fmt: skip
    return prepared(**fields | changes)


def said(*plans: NodePlan, planned: PlannedNode = PLANNED, record: NodeRecord | None = None) -> list[str | None]:
    """Return what is said of each plan of one node, frozen in that order."""
    rules = Rules(FOLDER, {} if record is None else {"a": record}, cast("Outputs", NoOutputs()))
    answers = []
    for plan in plans:
        sha256 = node_plan_sha256(plan)
        rules.stored.add(sha256)
        answers.append(rules.difference(sha256, plan, planned))
    return answers


def test_an_honest_preparation_and_the_effect_that_follows_from_it_are_taken() -> None:
    preparation, exact = prepared(), effect()
    named = NodeRecord(key="a", preparation_sha256=node_plan_sha256(preparation), plan_sha256=node_plan_sha256(exact))
    assert said(preparation, exact, record=named) == [None, None]


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ({"keys": ("file:/films/in",)}, "what only an effect has"),
        ({"preparation_sha256": "0" * 64}, "what only an effect has"),
        (with_input({"path": "elsewhere"}), "not what its dependencies gave"),
        ({"input": {"path": "elsewhere"}}, "digest of its input"),
        ({"max_input_bytes": 101}, "beyond those of its policy"),
        ({"max_seconds": 11.0}, "beyond those of its policy"),
        ({"policy": Policy()}, "its policy is not"),
        ({"executor": OperationExecutor(operation="test.cut", version=2)}, "runs something else"),
        ({"dependencies": {"b": "0" * 64}}, "its dependencies are not"),
    ],
)
def test_a_preparation_that_is_not_what_the_graph_plan_makes_is_found(lie: dict[str, Any], why: str) -> None:
    (answer,) = said(prepared(**lie))
    assert answer is not None
    assert why in answer


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ({"keys": ("file:/films/out.json",)}, "publication keys"),
        ({"preparation_sha256": "0" * 64}, "is missing"),
        ({"preparation_sha256": None}, "publication keys"),
        ({"preparation_sha256": None, "keys": ("file:/films/out",)}, "follows no preparation"),
        ({"max_seconds": 6.0}, "max_seconds are not those of its preparation"),
        ({"max_input_bytes": 70}, "max_input_bytes are not those of its preparation"),
        (with_input({"path": "out", "more": "x" * 60}), "60 are allowed"),
        ({"descriptors": {"n": 1}}, "what only a preparation has"),
    ],
)
def test_an_effect_that_its_preparation_does_not_allow_is_found(lie: dict[str, Any], why: str) -> None:
    _, answer = said(prepared(), effect(**lie))
    assert answer is not None
    assert why in answer


def test_an_effect_of_another_preparation_than_its_node_names_is_found() -> None:
    exact = effect()
    for named in (None, "1" * 64):
        record = NodeRecord(key="a", preparation_sha256=named, plan_sha256=node_plan_sha256(exact))
        _, answer = said(prepared(), exact, record=record)
        assert answer is not None
        assert "its node has" in answer


def test_bounds_without_a_planner_are_found() -> None:
    plain = PLANNED.model_copy(update={"policy": Policy()})
    honest: dict[str, Any] = {
        "policy": Policy(), "max_input_bytes": None, "max_seconds": None, "preparation_sha256": None, "keys": (),
        **with_input(PLANNED.input),
    }  # fmt: skip
    assert said(effect(**honest), planned=plain) == [None]
    for lie in ({"max_seconds": 1.0}, {"max_input_bytes": 90}, {"descriptors": 1}):
        assert said(effect(**honest | lie), planned=plain) == ["it has what only a planner gives"]
