"""What is worked out once for many nodes is what each of them would give by itself."""

from decimal import Decimal

import pytest

from actors.scheduling.families import Families
from store.amounts import Budget
from store.lifecycle import Status
from store.plans import OperationExecutor
from store.policy import Effect, Policy
from store.rules import DEFAULT_RULES, Action, Rule, Verdict
from store.terms import Terms
from tests.actors.support import Drive, Model, paid, planned, writing

RUN = "run_" + "0" * 26


def test_nodes_are_one_family_only_with_the_same_operation_version_and_policy():
    """A family answers for all its nodes."""
    families = Families(RUN)
    one = planned("a")
    other_policy = one.model_copy(update={"policy": Policy(max_seconds=1.0)})
    executor = one.executor
    assert isinstance(executor, OperationExecutor)
    newer = one.model_copy(update={"executor": executor.model_copy(update={"version": executor.version + 1})})
    equal = one.model_copy(update={"key": "b", "policy": Policy(**one.policy.model_dump())})
    assert families.of(one) is families.of(equal)
    found = [families.of(each) for each in (one, other_policy, newer)]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_what_rules_say_of_a_key_counts_for_its_node_alone(order):
    """The second node of a family publishes what the first does not, or the other way round."""
    node = {
        key: writing(key, publishes=("out",)).model_copy(update={"input": {"out": path} if path else {}})
        for key, path in zip(order, (None, "secret"), strict=True)
    }
    rule = Rule(id="no", verdict=Verdict.DENY, action=Action.EFFECT, resource="file:*secret")
    drive = Drive(Model([node["a"], node["b"]]), rules=(rule, *DEFAULT_RULES))
    drive.begin()
    assert drive.status(order[0]) is Status.RUNNING
    assert drive.status(order[1]) is Status.FAILED


def test_what_rules_say_of_a_budget_counts_for_its_node_alone():
    """One node may cost less than the rule is about, as its terms say; its like may cost anything."""
    cheap = paid("b").model_copy(update={"terms": Terms(budget=Budget(cost=Decimal(1)))})
    rules = (
        Rule(id="dear", verdict=Verdict.DENY, effect=Effect.PAID_CLOUD, action=Action.EFFECT, cost=Decimal(5)),
        Rule(id="all", verdict=Verdict.ALLOW),
    )
    drive = Drive(Model([paid("a"), cheap, paid("c")]), rules=rules)
    drive.begin()
    assert [drive.status(key) for key in "abc"] == [Status.FAILED, Status.RUNNING, Status.FAILED]
