"""G1: whatever could start waits for all activation gates, and a plan where something does not is not taken."""

import random
from typing import Any

import pytest

from hostres.errors import Code, HostlerError
from store.activation import early, held_back
from store.plans import GateExecutor, GraphPlan
from tests.store.support import Setting, plan_of, record_of

GATE = GateExecutor(gate="activation")


def planned(nodes: dict[str, list[str]], *gates: str) -> GraphPlan:
    return plan_of(nodes, executors=dict.fromkeys(gates, GATE))


def test_what_waits_for_nothing_else_waits_for_all_gates() -> None:
    given: dict[str, tuple[str, ...]] = {"a": (), "go": (), "b": ("a",), "also": (), "c": ("go",), "d": ("b", "go")}
    held = held_back(given, ["go", "also"])
    both = ("also", "go")
    assert held == {"a": both, "go": (), "b": ("a",), "also": (), "c": both, "d": ("b", "go")}
    assert held_back(given, []) == given


@pytest.mark.parametrize(
    ("nodes", "gates", "first"),
    [
        ({"a": []}, (), None),
        ({"go": [], "a": ["go"]}, ("go",), None),
        ({"go": [], "a": []}, ("go",), "a"),
        ({"go": [], "also": [], "a": ["go"]}, ("go", "also"), "a"),
        ({"a": [], "go": ["a"]}, ("go",), "a"),
        ({"other": [], "go": ["other"]}, ("go", "other"), "go"),
    ],
)
def test_a_plan_in_which_something_starts_too_early_is_named_and_refused(
    nodes: dict[str, list[str]], gates: tuple[str, ...], first: str | None, setting: Setting
) -> None:
    plan = planned(nodes, *gates)
    assert early(plan) == first
    if first is None:
        setting.store.create(record_of(plan), plan, bundle=None)
        return
    with pytest.raises(HostlerError) as caught:
        setting.store.create(record_of(plan), plan, bundle=None)
    assert caught.value.code is Code.INVALID_DATA
    assert f"node {first} does not wait for its activation gates" in caught.value.what


def test_in_any_graph_that_is_held_back_every_node_comes_after_every_gate() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        keys = [f"n{number:02}" for number in range(chance.randrange(2, 12))]
        gates = keys[: chance.randrange(1, len(keys))]
        given: dict[str, Any] = {
            key: () if key in gates else tuple(sorted(chance.sample(keys[:place], chance.randrange(0, min(place, 3)))))
            for place, key in enumerate(keys)
        }
        held = held_back(given, gates)
        for key in keys[len(gates) :]:
            reached, frontier = set(), [key]
            while frontier:
                for each in held[frontier.pop()]:
                    if each not in reached:
                        reached.add(each)
                        frontier.append(each)
            assert set(gates) <= reached, (seed, key)
