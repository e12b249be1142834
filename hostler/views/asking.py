"""What the authority rules will say to each node of a plan, as far as that can be known before it runs."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import JsonValue

from hostler.views.naming import executor_name
from store.lazy_dataclass import dataclass
from store.plans import GateExecutor, GraphPlan, PlannedNode
from store.publication import publication_keys
from store.rule_names import GATE_RULE
from store.rules import Action, Matter, Rule, Verdict, preparation_verdict, verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What a rule says to one thing that a node does.

    Attributes:
        action: `prepare`, `effect` or `gate`.
        what: Of what kind that is.
        rule: Id of the rule.
        certain: Whether it says so whatever the node will be given.

    """

    action: str
    what: str
    verdict: Verdict
    rule: str
    certain: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return it as `plan --json` prints it."""
        return {
            "action": self.action, "what": self.what, "verdict": self.verdict.value, "rule": self.rule,
            "certain": self.certain,
        }  # fmt: skip

    @property
    def text(self) -> str:
        """Return it for people."""
        said = {Verdict.ALLOW: "allowed", Verdict.ASK: "asks", Verdict.DENY: "denied"}[self.verdict]
        perhaps = "" if self.certain else ", depending on what it will publish"
        return f"{self.action} {self.what}: {said} by rule {self.rule}{perhaps}"


Rulings = dict[str, tuple[Ruling, ...]]
"""Key of each node → what the rules say to it."""


def rulings(plan: GraphPlan, *, rules: Sequence[Rule], principal: str, folder: str) -> Rulings:
    """Ask the rules about every node of a plan.

    Args:
        plan: The plan.
        rules: In order; the first match wins.
        principal: Who will run it, `kind:id`.
        folder: Where relative paths belong.

    """
    return {node.key: tuple(_rulings(node, rules, principal, folder)) for node in plan.nodes}


def asking(rulings: Rulings, said: Verdict = Verdict.ASK, *, certain: bool = True) -> list[str]:
    """Return the nodes of which a rule says that, in the order of the plan."""
    return [key for key, each in rulings.items() if any(one.verdict is said and one.certain is certain for one in each)]


def _rulings(node: PlannedNode, rules: Sequence[Rule], principal: str, folder: str) -> Iterator[Ruling]:
    policy = node.policy
    if isinstance(node.executor, GateExecutor):
        yield Ruling(action="gate", what=executor_name(node.executor), verdict=Verdict.ASK, rule=GATE_RULE)
        return
    keys = publication_keys(folder, policy.publishes, node.input)
    known = Matter(node=node, keys=keys)
    if policy.preparation:
        said, rule = preparation_verdict(rules, policy.preparation, principal=principal, matter=known)
        yield Ruling(action=Action.PREPARE, what=", ".join(policy.preparation), verdict=said, rule=rule)
    said, rule = verdict(rules, principal=principal, action=Action.EFFECT, matter=known)
    effect = policy.effect.value
    if not _refers(node, policy.publishes):
        yield Ruling(action=Action.EFFECT, what=effect, verdict=said, rule=rule)
        return
    other = verdict(rules, principal=principal, action=Action.EFFECT, matter=Matter(node=node, keys=None))
    certain = other == (said, rule)
    yield Ruling(action=Action.EFFECT, what=effect, verdict=said, rule=rule, certain=certain)
    if not certain:
        yield Ruling(action=Action.EFFECT, what=effect, verdict=other[0], rule=other[1], certain=False)


def _refers(node: PlannedNode, fields: Sequence[str]) -> bool:
    """Say whether what *node* publishes is still to come from other nodes."""
    for dotted in fields:
        found: JsonValue = node.input
        for name in dotted.split("."):
            if isinstance(found, dict) and "$ref" in found:
                return True
            found = found.get(name) if isinstance(found, dict) else None
        if any(isinstance(each, dict) and "$ref" in each for each in (found if isinstance(found, list) else [found])):
            return True
    return False
