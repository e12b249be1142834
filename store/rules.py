"""Who may do what: the authority rules as data, and what they say. Pure.

A rule is about all that it does not narrow down. Rules are asked in order and the first that matches decides; what no
rule is about is denied.
"""

from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from store.lazy_dataclass import dataclass
from store.plans import OperationExecutor, PlannedNode
from store.policy import Effect, PreparationKind
from store.rule_names import DEFAULT, NO_RULE

PRINCIPAL_KINDS: Final = frozenset({"human", "agent", "service"})


class Verdict(StrEnum):
    """What a rule says."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Action(StrEnum):
    """What a principal can want."""

    PREPARE = "prepare"
    EFFECT = "effect"
    APPROVE = "approve"
    RETRY = "retry"
    REPLAY = "replay"
    SETTLE = "settle"
    CORRECT = "correct"
    CANCEL = "cancel"
    RECOVER = "recover"
    BUDGET = "budget"
    WORK = "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matter:
    """What something is wanted for.

    Attributes:
        node: The node; None where it is about a whole run.
        keys: The keys under which it publishes; None where they are not known yet and may be any.
        parents_owner: Id of the owner of the node's parent, who may recover its children.

    """

    node: PlannedNode | None = None
    keys: Sequence[str] | None = ()
    parents_owner: str | None = None

    def touches(self, pattern: str) -> bool:
        """Say whether a resource of the machine that it claims, or a key that it publishes, is of that pattern."""
        if self.node is None:
            return False
        if self.keys is None:
            return True
        return any(fnmatchcase(name, pattern) for name in (*self.node.policy.claims, *self.keys))

    def may_cost(self, amount: Decimal) -> bool:
        """Say whether it may cost *amount* or more: a paid call without a budget of its own may cost anything."""
        if self.node is None:
            return False
        budget = self.node.terms.budget if self.node.terms is not None else None
        if budget is not None and budget.cost is not None:
            return budget.cost >= amount
        return self.node.policy.effect is Effect.PAID_CLOUD


WHOLE_RUN: Final = Matter()


def operation_of(node: PlannedNode) -> str:
    """Return the kind of the node's operation, or of its executor where it is none."""
    executor = node.executor
    return executor.operation if isinstance(executor, OperationExecutor) else executor.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of the authority rules; None matches everything.

    Attributes:
        id: Recorded with every grant that the rule let be given.
        verdict: What it says.
        principal_kind: human, agent or service.
        action: What is wanted.
        effect: The effect of the node that it is wanted for.
        preparation: What the node's planner wants to look at: one of these.
        operation: Pattern of the kind of the node's operation, with `*` and `?`; `command`, `compute`… for the rest.
        resource: Pattern of a resource that the node claims, or of a key that it publishes (`file:/films/*`).
        cost: It may cost so much or more.
        parents_owner: Whether it is about the owner of the node's parent alone.

    """

    id: str
    verdict: Verdict
    principal_kind: str | None = None
    action: str | None = None
    effect: Effect | None = None
    preparation: frozenset[PreparationKind] | None = None
    operation: str | None = None
    resource: str | None = None
    cost: Decimal | None = None
    parents_owner: bool = False

    def matches(self, principal: str, action: str, matter: Matter, preparation: PreparationKind | None) -> bool:
        """Say whether the rule is about that."""
        node = matter.node
        return (
            self.principal_kind in (None, principal_kind(principal))
            and (not self.parents_owner or is_owner(principal, matter.parents_owner))
            and self.action in (None, action)
            and (self.effect is None or (node is not None and node.policy.effect is self.effect))
            and (self.preparation is None or preparation in self.preparation)
            and (self.operation is None or (node is not None and fnmatchcase(operation_of(node), self.operation)))
            and (self.resource is None or matter.touches(self.resource))
            and (self.cost is None or matter.may_cost(self.cost))
        )


_HUMANS_ONLY: Final = (
    Action.APPROVE, Action.RETRY, Action.REPLAY, Action.SETTLE, Action.CORRECT, Action.CANCEL, Action.RECOVER,
    Action.BUDGET,
)  # fmt: skip
RECOVERY: Final = (Action.RETRY, Action.CORRECT, Action.CANCEL, Action.RECOVER)
"""What whoever owns its parent may do with a node that got into trouble."""

DEFAULT_RULES: Final = (
    *(
        Rule(
            id=f"{DEFAULT}prepare-{kind}",
            action=Action.PREPARE,
            preparation=frozenset({kind}),
            verdict=Verdict.ALLOW,
        )
        for kind in (PreparationKind.LOCAL_MEDIA, PreparationKind.PROJECT_STATE)
    ),
    Rule(id=f"{DEFAULT}ask-preparation", action=Action.PREPARE, verdict=Verdict.ASK),
    Rule(id=f"{DEFAULT}ask-paid-cloud", action=Action.EFFECT, effect=Effect.PAID_CLOUD, verdict=Verdict.ASK),
    Rule(id=f"{DEFAULT}ask-live-control", action=Action.EFFECT, effect=Effect.LIVE_CONTROL, verdict=Verdict.ASK),
    Rule(id=f"{DEFAULT}allow-effects", action=Action.EFFECT, verdict=Verdict.ALLOW),
    Rule(id=f"{DEFAULT}allow-work", action=Action.WORK, verdict=Verdict.ALLOW),
    *(
        Rule(id=f"{DEFAULT}human-{action}", principal_kind="human", action=action, verdict=Verdict.ALLOW)
        for action in _HUMANS_ONLY
    ),
    *(
        Rule(id=f"{DEFAULT}owner-{action}", parents_owner=True, action=action, verdict=Verdict.ALLOW)
        for action in RECOVERY
    ),
)
"""What holds where no rule of the user's own matches before."""


def principal_kind(principal: str) -> str | None:
    """Return the kind of `kind:id`, or None if it is not a principal."""
    kind, colon, name = principal.partition(":")
    return kind if colon and name and kind in PRINCIPAL_KINDS else None


def is_owner(principal: str, owner: str | None) -> bool:
    """Say whether the principal `kind:id` is the owner of that id."""
    return owner is not None and principal_kind(principal) is not None and principal.partition(":")[2] == owner


def verdict(
    rules: Sequence[Rule],
    *,
    principal: str,
    action: str,
    matter: Matter = WHOLE_RUN,
    preparation: PreparationKind | None = None,
) -> tuple[Verdict, str]:
    """Ask the rules.

    Args:
        rules: In order; the first match wins.
        principal: `kind:id`.
        action: What is wanted.
        matter: What it is wanted for.
        preparation: What is to be looked at, for the action prepare.

    Returns:
        What they say, and the id of the rule that said it (`NO_RULE` if none matched).

    """
    if principal_kind(principal) is not None:
        for rule in rules:
            if rule.matches(principal, action, matter, preparation):
                return rule.verdict, rule.id
    return Verdict.DENY, NO_RULE


_STRICTNESS: Final = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY)


def preparation_verdict(
    rules: Sequence[Rule], kinds: Sequence[PreparationKind], *, principal: str, matter: Matter
) -> tuple[Verdict, str]:
    """Ask the rules about all that a preparation looks at; the strictest answer counts.

    Args:
        rules: In order; the first match wins.
        kinds: What is looked at; nothing needs no leave.
        principal: `kind:id`.
        matter: The node that is prepared.

    Returns:
        What they say, and the id of the rule that said it.

    """
    answers = [
        verdict(rules, principal=principal, action=Action.PREPARE, matter=matter, preparation=kind) for kind in kinds
    ]
    return max(answers, key=lambda answer: _STRICTNESS.index(answer[0]), default=(Verdict.ALLOW, NO_RULE))
