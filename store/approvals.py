"""The judgement of a request: may this principal ask it, of this node, for this plan. Pure.

The command that posts a request asks beforehand, the owner of the run asks again when it consumes it; both call
`judge`, so they cannot disagree.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from hostres.errors import Code
from store.amounts import Usage
from store.budgets import read_amounts
from store.contracts import Request, RequestKind
from store.lazy_dataclass import dataclass
from store.lifecycle import FINAL, IMMUTABLE, Status
from store.plans import GateExecutor
from store.receipts import FIELD, USES, Receipt, Refused, making_refusal, refusal, revoking_refusal, wanted
from store.rule_names import GATE_RULE, NO_RULE
from store.rules import DEFAULT_RULES, WHOLE_RUN, Action, Matter, Rule, Verdict, principal_kind, verdict
from store.transitions import CORRECTABLE

__all__ = ["Accepted", "Refused", "Standing", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The request may be consumed.

    Attributes:
        rule: Id of the rule that allows it.
        receipt: The receipt that it uses up, or takes back.

    """

    rule: str
    receipt: Receipt | None = None


ACTIONS: Final[Mapping[RequestKind, Action]] = MappingProxyType(
    {
        RequestKind.APPROVE: Action.APPROVE,
        RequestKind.DENY: Action.APPROVE,
        RequestKind.CANCEL: Action.CANCEL,
        RequestKind.RETRY: Action.RETRY,
        RequestKind.REPLAY: Action.REPLAY,
        RequestKind.SETTLE: Action.SETTLE,
        RequestKind.CORRECT: Action.CORRECT,
        RequestKind.RECOVER: Action.RECOVER,
        RequestKind.ACCEPT_INCOMPATIBLE: Action.CANCEL,  # it ends nodes, and nothing else
        RequestKind.LEASE_WORK: Action.WORK,
        RequestKind.SUBMIT_WORK: Action.WORK,
        RequestKind.GIVE_BACK_WORK: Action.WORK,
        RequestKind.BUDGET: Action.BUDGET,
        RequestKind.RECEIPT: Action.APPROVE,  # or what the receipt is for
        RequestKind.REVOKE: Action.APPROVE,
    }
)
"""What asking for that amounts to."""

_NEEDS: Final[Mapping[RequestKind, frozenset[Status]]] = MappingProxyType(
    {
        RequestKind.APPROVE: frozenset({Status.APPROVAL_REQUIRED}),
        RequestKind.DENY: frozenset({Status.APPROVAL_REQUIRED}),
        RequestKind.CANCEL: frozenset(Status) - FINAL,
        RequestKind.RETRY: frozenset({Status.FAILED, Status.BLOCKED}),
        RequestKind.REPLAY: frozenset({Status.AMBIGUOUS_CODE}),
        RequestKind.SETTLE: frozenset({Status.AMBIGUOUS}),
        RequestKind.CORRECT: CORRECTABLE,
        RequestKind.RECOVER: frozenset({Status.RUNNING}),
        RequestKind.ACCEPT_INCOMPATIBLE: frozenset(),  # it is about the run, and names nodes in its data
        RequestKind.LEASE_WORK: frozenset(),
        RequestKind.SUBMIT_WORK: frozenset(Status),  # what comes too late is refused with what it spent
        RequestKind.GIVE_BACK_WORK: frozenset(Status),
        RequestKind.BUDGET: frozenset(Status),  # a retry that failed for want of it may be made after it
        RequestKind.RECEIPT: frozenset(Status) - IMMUTABLE,
        RequestKind.REVOKE: frozenset(),  # it is about a receipt of the run
    }
)
"""In which statuses of the node a request of that kind has something to answer."""

_ANYBODY: Final = "human:anybody"
"""A person, as rules see one: all people are alike to them."""

_WORDS: Final = {RequestKind.RECEIPT: "give a receipt for", RequestKind.REVOKE: "revoke a receipt of"}

OF_RUN: Final = frozenset(
    {
        RequestKind.CANCEL,
        RequestKind.ACCEPT_INCOMPATIBLE,
        RequestKind.LEASE_WORK,
        RequestKind.BUDGET,
        RequestKind.REVOKE,
    }
)
"""Requests that may be about a whole run and name no node."""
ATTEMPT: Final = "attempt"
"""In the data of an answer to a result: which attempt gave it, as all attempts of a plan have the same digest."""
_BOUND_TO_PLAN: Final = frozenset({RequestKind.APPROVE, RequestKind.DENY})
_MADE_FOR_PLAN: Final = frozenset({Action.APPROVE, Action.REPLAY})
"""Receipts for these name an exact plan."""
_NOT_APPROVED: Final = frozenset({Action.RETRY, Action.REPLAY})
"""What a receipt lets somebody do with a node that no approval is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How that stands which a request is about, at the moment when it is judged.

    Attributes:
        status: The status of its node; None if it names no node.
        plan_sha256: The digest of the node's frozen plan, if it has one.
        attempt: Of the node.
        revision: Of its input.
        matter: What the rules see of it.
        receipt: The receipt that the request names, if the run has one of that id.
        at: That moment.

    """

    status: Status | None = None
    plan_sha256: str | None = None
    attempt: int = 0
    revision: int = 0
    matter: Matter = WHOLE_RUN
    receipt: Receipt | None = None
    at: str = ""


def answers(kind: RequestKind, status: Status) -> bool:
    """Say whether a request of that kind has something to answer in that status of its node."""
    return status in _NEEDS[kind]


def judge(request: Request, standing: Standing, *, rules: Sequence[Rule] = DEFAULT_RULES) -> Accepted | Refused:
    """Say whether *request* may be consumed.

    Args:
        request: What somebody wants.
        standing: How that stands which it is about.
        rules: The authority rules, in order.

    """
    ruling = _may(request, standing, rules)
    if isinstance(ruling, Refused):
        return ruling
    about, status, plan_sha256 = _about(request), standing.status, standing.plan_sha256
    if request.node is None and request.kind not in OF_RUN:
        return Refused(code=Code.CONFLICT, what=f"the request to {request.kind} names no node", todo="name one")
    if status is not None and not answers(request.kind, status):
        return Refused(
            code=Code.CONFLICT,
            what=f"{about} is {status}; there is nothing to {request.kind}",
            todo=f"see `hostler show {request.run_id}` for what waits",
        )
    if not _says_how_much(request):
        return Refused(
            code=Code.INVALID_DATA,
            what=f"the request to {request.kind} {about} does not say how much",
            todo="give amounts such as cost=5 or tokens=1000",
        )
    named = request.plan_sha256
    made_for = wanted(request) if request.kind is RequestKind.RECEIPT else None
    if plan_sha256 is None and (named is not None or made_for in _MADE_FOR_PLAN):
        return Refused(
            code=Code.CONFLICT,
            what=f"{about} has no exact plan yet",
            todo=f"wait for it; see `hostler show {request.run_id}` for what is in the way",
        )
    if named is None and (request.kind in _BOUND_TO_PLAN or made_for in _MADE_FOR_PLAN):
        return Refused(
            code=Code.CONFLICT,
            what=f"the request to {request.kind} {about} names no plan; {plan_sha256} waits",
            todo=f"look at it and give --plan {plan_sha256}",
        )
    other = _stands_otherwise(request, standing)
    if other is not None:
        again = (
            f"show {request.run_id} --json" if made_for in _NOT_APPROVED else f"approve {request.run_id} {request.node}"
        )
        return Refused(code=Code.CONFLICT, what=f"{about} {other}", todo=f"look at it again with `hostler {again}`")
    if request.kind is RequestKind.CORRECT and request.data.get("revision") != standing.revision:
        meant = request.data.get("revision")
        return Refused(
            code=Code.CONFLICT,
            what=f"{about} has revision {standing.revision} by now; the request corrects {meant}",
            todo=f"look at it again with `hostler show {request.run_id}`, then correct what it is now",
        )
    return ruling


def _stands_otherwise(request: Request, standing: Standing) -> str | None:
    """Say with what a node waits, if that is not what the request names."""
    if request.plan_sha256 is not None and request.plan_sha256 != standing.plan_sha256:
        return f"waits with plan {standing.plan_sha256}, not {request.plan_sha256}"
    meant = request.data.get(ATTEMPT) if request.kind in _BOUND_TO_PLAN else None
    if meant is not None and meant != standing.attempt:
        return f"waits with attempt {standing.attempt}, not {meant}"
    return None


def _says_how_much(request: Request) -> bool:
    """Say whether the amounts in the data of a request, where it needs or may have any, are amounts."""
    try:
        if request.kind is RequestKind.BUDGET:
            read_amounts(request.data.get("add"))
        if request.kind is RequestKind.SETTLE and "spent" in request.data:
            Usage.model_validate(request.data["spent"])
    except ValueError:
        return False
    return True


def _about(request: Request) -> str:
    return f"node {request.node}" if request.node else "the run"


def _may(request: Request, standing: Standing, rules: Sequence[Rule]) -> Accepted | Refused:
    """Say whether its principal may ask that, by the rules alone or with a receipt."""
    matter = standing.matter
    gate = matter.node is not None and isinstance(matter.node.executor, GateExecutor)
    uses = FIELD in request.data and request.kind in USES
    what_for = wanted(request) if request.kind is RequestKind.RECEIPT else None
    said, rule = verdict(rules, principal=request.principal, action=what_for or ACTIONS[request.kind], matter=matter)
    if (said is Verdict.DENY and uses and rule != NO_RULE) or (said is not Verdict.ALLOW and not uses):
        return _may_not(request, said, rule, matter, rules)
    if uses:
        refused = refusal(
            standing.receipt,
            request,
            plan_sha256=standing.plan_sha256,
            attempt=standing.attempt,
            gate=gate,
            rules=rules,
            matter=matter,
            at=standing.at,
        )
        return refused or Accepted(rule=standing.receipt.rule if standing.receipt else rule, receipt=standing.receipt)
    if gate and request.kind in _BOUND_TO_PLAN and principal_kind(request.principal) != "human":
        return _may_not(request, Verdict.DENY, GATE_RULE, matter, rules)
    if request.kind is RequestKind.RECEIPT:
        return making_refusal(request, standing.receipt) or Accepted(rule=rule)
    if request.kind is RequestKind.REVOKE:
        return revoking_refusal(request, standing.receipt) or Accepted(rule=rule, receipt=standing.receipt)
    return Accepted(rule=rule)


def _may_not(request: Request, said: Verdict, rule: str, matter: Matter, rules: Sequence[Rule]) -> Refused:
    return Refused(
        code=Code.CONFLICT,
        what=f"{request.principal} may not {_WORDS.get(request.kind, request.kind)} {_about(request)} (rule {rule})",
        todo=_remedy(request, said, rule, matter, rules),
    )


def _remedy(request: Request, said: Verdict, rule: str, matter: Matter, rules: Sequence[Rule]) -> str:
    """Say who may do what this principal may not; where nobody may, which rule must be changed for it."""
    action = (wanted(request) if request.kind is RequestKind.RECEIPT else None) or ACTIONS[request.kind]
    person = principal_kind(request.principal) == "human"
    says, of_people = (said, rule) if person else verdict(rules, principal=_ANYBODY, action=action, matter=matter)
    if says is not Verdict.ALLOW:
        what = "asks, and there is nobody to ask" if says is Verdict.ASK else "denies it to people"
        return f"rule {of_people} of [authority] in the configuration {what}: change it, `hostler doctor` shows where"
    if request.kind in USES and said is Verdict.ASK:
        return f"ask a person for a receipt: hostler receipt create {request.run_id} {request.node}"
    todo = "a person must do it, from a shell that no node of a run has started"
    owner = matter.parents_owner
    may = owner is not None and verdict(rules, principal=f"agent:{owner}", action=action, matter=matter)[0]
    return f"{todo}; or the owner of its parent, {owner}" if may is Verdict.ALLOW else todo
