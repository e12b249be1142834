"""Exact plans put together from what many of them share are those that are written whole."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostres.errors import HostlerError
from store.exact_plans import Shared
from store.plans import CommandExecutor, NodePlan, OperationExecutor, PlanPhase
from store.policy import Effect, Policy
from store.transactions import FrozenPlan
from store.values import canonical
from store.workspace import GitWorkspace
from tests.store.test_values import values

RUN = "run_" + "0" * 26
SHA = "ab" * 32
POLICIES = (
    Policy(),
    Policy(effect=Effect.PAID_CLOUD, claims={"gpu": 1, "cpu": 2}, publishes=("ü%s",), max_seconds=1e-7),
)
EXECUTORS = (
    OperationExecutor(operation="media.probe", version=2),
    CommandExecutor(cwd="fø", outputs={"b": "2", "a": "1"}),
)
WITHOUT: dict[str, Any] = {
    "keys": (),
    "descriptors": None,
    "max_input_bytes": None,
    "max_seconds": None,
    "preparation_sha256": None,
    "workspace": None,
}
WITH: dict[str, Any] = {
    "keys": ("file:/ä",),
    "descriptors": {"frames": 7.0},
    "max_input_bytes": 5,
    "max_seconds": 2.0,
    "preparation_sha256": SHA,
    "workspace": GitWorkspace(repository=".", base="main"),
}


def plan_of(value: Any, executor: Any, policy: Policy, **fields: Any) -> NodePlan:
    fixed: dict[str, Any] = {"run_id": RUN, "node": "a/b", "input_sha256": SHA, "revision": 3}
    given = {"dependencies": {"z": SHA, "a": SHA}, "phase": PlanPhase.EFFECT, **WITHOUT, **fields}
    return NodePlan.of_known(executor=executor, policy=policy, input=value, **fixed, **given)


@given(values, st.sampled_from(EXECUTORS), st.sampled_from(POLICIES), st.sampled_from(PlanPhase), st.booleans())
def test_a_plan_put_together_is_the_one_that_is_written_whole(value, executor, policy, phase, waits):
    """Bytes and digest, whatever the input; and of what is bare nothing is written whole."""
    plan = plan_of(value, executor, policy, phase=phase, dependencies={"z": SHA, "a": SHA} if waits else {})
    whole = FrozenPlan.of(plan)
    with patch("store.exact_plans.encode", side_effect=AssertionError):
        assert Shared(RUN, executor, policy).frozen(plan, canonical(value)) == whole


@pytest.mark.parametrize("name", WITH)
def test_what_only_some_plans_have_is_never_left_out(name):
    """A planner's words, publication keys, a workspace."""
    plan = plan_of({"n": 1}, EXECUTORS[0], POLICIES[0], **{name: WITH[name]})
    frozen = Shared(RUN, EXECUTORS[0], POLICIES[0]).frozen(plan, canonical(plan.input))
    assert frozen == FrozenPlan.of(plan)
    assert frozen != FrozenPlan.of(plan_of({"n": 1}, EXECUTORS[0], POLICIES[0]))


def test_an_input_nested_too_deeply_for_a_plan_is_refused_as_ever():
    """What stands at the edge by itself is beyond it inside of a plan."""
    value: Any = 1
    for _ in range(240):
        value = [value]
    with pytest.raises(HostlerError, match="nested too deeply"):
        Shared(RUN, EXECUTORS[0], POLICIES[0]).frozen(plan_of(value, EXECUTORS[0], POLICIES[0]), canonical(value))
