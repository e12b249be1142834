"""The authority rules: the defaults, and each thing that a rule can narrow itself to."""

import itertools
from decimal import Decimal
from typing import Any

import pytest

from store.amounts import Budget
from store.plans import CommandExecutor, OperationExecutor, PlannedNode
from store.policy import Effect, Policy, PreparationKind
from store.rule_names import NO_RULE
from store.rules import (
    DEFAULT_RULES,
    WHOLE_RUN,
    Action,
    Matter,
    Rule,
    Verdict,
    preparation_verdict,
    principal_kind,
    verdict,
)
from store.terms import Terms


def matter(effect: Effect = Effect.PURE, operation: str = "media.probe", **fields: Any) -> Matter:
    executor = CommandExecutor() if operation == "command" else OperationExecutor(operation=operation, version=1)
    policy = Policy(effect=effect, claims=fields.pop("claims", {}))
    cost = fields.pop("cost", None)
    terms = None if cost is None else Terms(budget=Budget(cost=Decimal(cost)))
    return Matter(node=PlannedNode(key="n", executor=executor, input={}, policy=policy, terms=terms), **fields)


def test_effects_are_allowed_but_paid_and_live_ones_are_asked() -> None:
    for effect, principal in itertools.product(Effect, ["human:ada", "agent:x", "service:hostler"]):
        said, rule = verdict(DEFAULT_RULES, principal=principal, action=Action.EFFECT, matter=matter(effect))
        asked = effect in {Effect.PAID_CLOUD, Effect.LIVE_CONTROL}
        assert said is (Verdict.ASK if asked else Verdict.ALLOW)
        assert rule.startswith("default.")


def test_all_else_is_for_humans() -> None:
    for action, what in itertools.product(
        set(Action) - {Action.EFFECT, Action.PREPARE, Action.WORK}, (WHOLE_RUN, *map(matter, Effect))
    ):
        said = {
            kind: verdict(DEFAULT_RULES, principal=f"{kind}:x", action=action, matter=what)[0]
            for kind in ("human", "agent", "service")
        }
        assert said == {"human": Verdict.ALLOW, "agent": Verdict.DENY, "service": Verdict.DENY}


def test_what_no_rule_is_about_is_denied() -> None:
    assert verdict((), principal="human:ada", action="effect") == (Verdict.DENY, NO_RULE)
    assert verdict(DEFAULT_RULES, principal="human:ada", action="shave") == (Verdict.DENY, NO_RULE)


@pytest.mark.parametrize("principal", ["ada", "", "human:", ":ada", "root:ada", "Human:ada"])
def test_who_is_no_principal_may_nothing(principal: str) -> None:
    assert principal_kind(principal) is None
    everything = (Rule(id="all", verdict=Verdict.ALLOW),)
    assert verdict(everything, principal=principal, action="effect") == (Verdict.DENY, NO_RULE)


def test_the_first_rule_that_matches_decides() -> None:
    rules = (
        Rule(id="one", verdict=Verdict.DENY, principal_kind="agent", action="effect", effect=Effect.LOCAL_READ),
        Rule(id="two", verdict=Verdict.ALLOW, principal_kind="agent"),
        Rule(id="three", verdict=Verdict.ASK),
    )
    asked = [("agent:x", Effect.LOCAL_READ), ("agent:x", Effect.PURE), ("human:x", Effect.LOCAL_READ)]
    said = [verdict(rules, principal=who, action="effect", matter=matter(effect)) for who, effect in asked]
    assert said == [(Verdict.DENY, "one"), (Verdict.ALLOW, "two"), (Verdict.ASK, "three")]


def test_rule_ids_are_unique() -> None:
    assert len({rule.id for rule in DEFAULT_RULES}) == len(DEFAULT_RULES)


@pytest.mark.parametrize(
    ("narrowed", "met", "missed"),
    [
        ({"effect": Effect.PAID_CLOUD}, matter(Effect.PAID_CLOUD), matter(Effect.PURE)),
        ({"operation": "media.*"}, matter(operation="media.probe"), matter(operation="files.publish")),
        ({"operation": "command"}, matter(operation="command"), matter(operation="media.probe")),
        ({"resource": "paid-*"}, matter(claims={"paid-call": 1}), matter(claims={"cpu": 1})),
        ({"resource": "file:/films/*"}, matter(keys=("file:/films/a",)), matter(keys=("file:/books/a",))),
        ({"resource": "file:/films/*"}, matter(keys=None), matter(keys=())),
        ({"cost": Decimal("0.3")}, matter(cost="0.30"), matter(cost="0.29")),
        ({"cost": Decimal(1000)}, matter(Effect.PAID_CLOUD), matter(Effect.LOCAL_READ)),
    ],
)
def test_a_rule_is_about_what_it_names_and_about_nothing_else(
    narrowed: dict[str, Any], met: Matter, missed: Matter
) -> None:
    rule = Rule(id="r", verdict=Verdict.ASK, **narrowed)
    assert verdict([rule], principal="human:a", action="effect", matter=met) == (Verdict.ASK, "r")
    for other in (missed, WHOLE_RUN):
        assert verdict([rule], principal="human:a", action="effect", matter=other) == (Verdict.DENY, NO_RULE)


def test_the_strictest_answer_about_what_is_looked_at_counts() -> None:
    camera = Rule(id="no-camera", verdict=Verdict.DENY, preparation=frozenset({PreparationKind.CAMERA}))
    asked = [PreparationKind.LOCAL_MEDIA, PreparationKind.TYPED_TEXT, PreparationKind.CAMERA]
    said = [
        preparation_verdict((camera, *DEFAULT_RULES), asked[:count], principal="human:a", matter=matter())
        for count in range(4)
    ]
    assert said == [
        (Verdict.ALLOW, NO_RULE),
        (Verdict.ALLOW, "default.prepare-local-media"),
        (Verdict.ASK, "default.ask-preparation"),
        (Verdict.DENY, "no-camera"),
    ]
