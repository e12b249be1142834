"""What a graph file says of a node beside what it does: evidence, place, limits, retry, budget, for whom."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from store.amounts import Ask, Budget, Demand
from store.plans import RunLimits
from store.policy import Backoff, FailureCode, Retry
from store.terms import Owner, Terms
from store.workspace import GitWorkspace
from tests.hostler.graph_support import changed, command, compiled, node, refusal, write


def test_a_node_says_which_evidence_it_must_bring(tmp_path: Path) -> None:
    due = [{"id": "suite", "type": "test"}, {"id": "look", "type": "human-approval"}]
    (planned,) = compiled(
        write(tmp_path, command() | {"nodes": [command()["nodes"][0] | {"evidence": due}]}), text="a"
    ).plan.nodes
    assert planned.terms is not None
    assert [(each.id, each.type.value) for each in planned.terms.evidence] == [
        ("suite", "test"),
        ("look", "human-approval"),
    ]


@pytest.mark.parametrize(
    ("due", "executor", "why"),
    [
        ([{"id": "a", "type": "test"}, {"id": "a", "type": "commit"}], None, "evidence a is due twice"),
        (
            [{"id": "a", "type": "test"}],
            {"gate": "merge"},
            "evidence a (test) can never be brought: a gate runs nothing",
        ),
        ([{"id": "a", "type": "vibes"}], None, "evidence"),
        ([{"id": "a"}], None, "evidence"),
    ],
)
def test_evidence_that_cannot_be_brought_is_refused(tmp_path: Path, due: Any, executor: Any, why: str) -> None:
    more = {} if executor is None else {"executor": executor}
    assert why in refusal(write(tmp_path, node(evidence=due, **more)))


def test_a_node_may_work_in_a_git_worktree(tmp_path: Path) -> None:
    document = command(effect="project-mutation")
    document["nodes"][0]["workspace"] = {"repository": {"$input": "text"}, "base": "main"}
    (planned,) = compiled(write(tmp_path, document), text="code").plan.nodes
    assert planned.workspace == GitWorkspace(repository="code", base="main", integrate=True)


@pytest.mark.parametrize(
    ("workspace", "executor", "why"),
    [
        ({"repository": "code"}, None, "base"),
        ({"repository": "code", "base": "main", "push": True}, None, "push"),
        ({"repository": "code", "base": "main"}, {"gate": "merge"}, "a gate runs nothing"),
        (
            {"repository": "code", "base": "main"},
            {"command": {"argv": ["true"], "effect": "local-read"}},
            "its effect is local-read",
        ),
    ],
)
def test_a_worktree_that_makes_no_sense_is_refused(tmp_path: Path, workspace: Any, executor: Any, why: str) -> None:
    more = {} if executor is None else {"executor": executor}
    assert why in refusal(write(tmp_path, node(workspace=workspace, **more)))


def test_a_run_may_be_limited_as_a_whole(tmp_path: Path) -> None:
    limited = write(tmp_path, changed(limits={"seconds": 60, "active": 2}))
    assert compiled(limited, text="a").plan.limits == RunLimits(seconds=60.0, active=2)
    assert "limits.active" in refusal(write(tmp_path, changed(limits={"active": 0})))


def test_a_command_may_be_retried_and_a_node_has_a_priority(tmp_path: Path) -> None:
    document = command(retry={"attempts": 3, "delays": [1, 2.5], "codes": ["timeout"], "exhausted": "block"})
    document["nodes"][0]["priority"] = 4
    (planned,) = compiled(write(tmp_path, document), text="a").plan.nodes
    assert planned.priority == 4
    assert planned.policy.retry == Retry(attempts=3, delays=(1.0, 2.5), codes=(FailureCode.TIMEOUT,), exhausted="block")
    growing = command(retry={"attempts": 2, "delays": {"first_s": 2}})
    assert compiled(write(tmp_path, growing), text="a").plan.nodes[0].policy.retry.delays == Backoff(first_s=2)


@pytest.mark.parametrize(
    "retry", [{"attempts": 17}, {"delays": [-1]}, {"delays": [3601]}, {"codes": ["oops"]}, {"x": 1}]
)
def test_a_retry_outside_its_bounds_is_refused_with_its_place(tmp_path: Path, retry: dict[str, Any]) -> None:
    assert "nodes.0.executor.command.retry" in refusal(write(tmp_path, command(retry=retry))).replace("[0]", ".0")


def test_budgets_parents_owners_and_caps_are_part_of_the_plan(tmp_path: Path) -> None:
    document = changed(
        limits={"budget": {"cost": 0.3, "tokens": 1500, "retries": 2}, "per_owner": 2, "per_parent": 1},
        nodes=[
            {
                "key": "lead",
                "executor": {"gate": "merge"},
                "budget": {"tasks": 1},
                "owner": {"role": "lead", "id": "ada"},
            },
            {
                "key": "work",
                "parent": "lead",
                "executor": {"command": {"argv": ["true"], "budget": {"ask": {"cost": "0.10"}, "minimum": {}}}},
            },
        ],
        outputs=None,
    )
    plan = compiled(write(tmp_path, document), text="a").plan
    assert plan.limits.budget == Budget(cost=Decimal("0.3"), tokens=1500, retries=2)
    assert (plan.limits.per_owner, plan.limits.per_parent) == (2, 1)
    assert plan.nodes[0].terms == Terms(budget=Budget(tasks=1), owner=Owner(role="lead", id="ada"))
    assert plan.nodes[1].terms == Terms(parent="lead")
    assert plan.nodes[1].policy.budget == Demand(ask=Ask(cost=Decimal("0.1")), minimum=Ask())


@pytest.mark.parametrize(
    ("parents", "why"),
    [
        ({"n0": "gone"}, "node n0: its parent gone does not exist"),
        ({"n0": "n0"}, "node n0: it is delegated by itself: n0 from n0"),
        ({"n0": "n1", "n1": "n2", "n2": "n0"}, "it is delegated by itself: n0 from n1 from n2 from n0"),
        ({f"n{index}": f"n{index + 1}" for index in range(9)}, "node n0: more than 8 nodes stand above it"),
        ({f"n{index}": f"n{index + 1}" for index in range(8)}, None),
    ],
)
def test_a_parent_exists_and_leads_within_eight_to_a_node_without_one(
    tmp_path: Path, parents: dict[str, str], why: str | None
) -> None:
    nodes = [
        {"key": key, "executor": {"command": {"argv": ["true"]}}} | ({"parent": parents[key]} if key in parents else {})
        for key in (f"n{index}" for index in range(10))
    ]
    path = write(tmp_path, changed(nodes=nodes, outputs=None))
    if why is None:
        assert compiled(path, text="a").plan
    else:
        assert why in refusal(path)


@pytest.mark.parametrize(
    "budget", [{"cost": -1}, {"money": 1}, {"cost": "0.0000000001"}, {"tokens": 1.5}, {"cost": "1e3"}, {"tasks": "1"}]
)
def test_a_budget_that_is_none_is_refused(tmp_path: Path, budget: dict[str, Any]) -> None:
    refusal(write(tmp_path, changed(limits={"budget": budget})))
    assert "node a" in refusal(write(tmp_path, node(budget=budget)))


def test_a_minimum_is_not_more_than_what_is_asked(tmp_path: Path) -> None:
    line = refusal(write(tmp_path, command(budget={"ask": {"tokens": 1}, "minimum": {"tokens": 2}})))
    assert "its minimum of tokens is more than it asks" in line
