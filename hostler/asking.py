"""Asking something of a run: judged here first, then posted durably. Whoever owns the run takes it up."""

import re
import secrets
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from actors.secrets import without
from hostler.config import Config
from hostler.principal import principal
from hostler.refusals import first_problem, invalid
from hostler.stored_runs import node_named, whole
from hostres.errors import Code, HostlerError
from hostres.masking import own_mask
from store.approvals import Refused, Standing, answers, judge
from store.clock import SystemClock
from store.contracts import NodeRecord, Request, RequestKind
from store.delegation import parents_owner
from store.evidence import asked_status
from store.heads import refuse_if_imported
from store.home import Home
from store.lazy_dataclass import dataclass
from store.lifecycle import RUN_FINAL, RunStatus
from store.patterns import SHA256_PATTERN
from store.plans import GraphPlan
from store.reader import Reader
from store.receipts import FIELD
from store.requests import post
from store.rules import Matter, Rule
from store.run_view import RunView
from store.service import service_alive


@dataclass(frozen=True, slots=True)
class Subject:
    """A run as it stood when the command looked.

    Attributes:
        served: Whether it is left to a background service, which lives.

    """

    run: RunView
    plan: GraphPlan
    nodes: dict[str, NodeRecord]
    reader: Reader
    served: bool = False

    def standing(self, request: Request, node: NodeRecord | None) -> Standing:
        """Return how that stood which *request* is about."""
        named = request.data.get(FIELD)
        found = (each for each in self.reader.receipts(self.run_id) if each.receipt_id == named) if named else ()
        receipt = next(iter(found), None)
        if node is None:
            return Standing(receipt=receipt, at=request.at)
        planned = next(each for each in self.plan.nodes if each.key == node.key)
        frozen = node.frozen_sha256
        keys = () if frozen is None else self.reader.node_plan(frozen).keys
        return Standing(
            status=asked_status(node, request.kind),
            plan_sha256=frozen,
            attempt=node.attempt,
            revision=node.revision,
            matter=Matter(node=planned, keys=keys, parents_owner=self.parents_owner(node.key)),
            receipt=receipt,
            at=request.at,
        )

    @property
    def run_id(self) -> str:
        """The run."""
        return self.run.record.run_id

    @property
    def owned(self) -> bool:
        """Whether a live host works on it."""
        return self.run.owned

    def node(self, key: str) -> NodeRecord:
        """Return a node of it.

        Raises:
            HostlerError: not-found.

        """
        return node_named(self.nodes.values(), self.run_id, key)

    def parents_owner(self, key: str) -> str | None:
        """Return the id of the owner of the node that delegated the one of that key."""
        planned = {node.key: node for node in self.plan.nodes}
        return parents_owner(planned[key], planned.get)


def subject_of(reader: Reader, run_id: str) -> Subject:
    """Return a run as it stands now.

    Raises:
        HostlerError: not-found.

    """
    run, plan, nodes = whole(reader, run_id)
    served = is_served(reader, run_id)
    return Subject(run, plan, {node.key: node for node in nodes}, reader, served)


def is_served(reader: Reader, run_id: str) -> bool:
    """Say whether a run is left to a background service, which lives."""
    return reader.is_entrusted(run_id) and service_alive(reader.home)


def ask(
    home: Home,
    subject: Subject,
    kind: RequestKind,
    node: NodeRecord | None,
    *,
    rules: Sequence[Rule] | None = None,
    plan_sha256: str | None = None,
    reason: str = "",
    data: dict[str, Any] | None = None,
) -> str:
    """Post a request; a live owner is woken by it.

    Args:
        home: The store.
        subject: The run.
        kind: What is wanted.
        node: The node it is about; None for the whole run.
        rules: The authority rules, in order; None reads them from the configuration.
        plan_sha256: The exact node plan that is meant.
        reason: For people.
        data: What the kind needs besides.

    Returns:
        The id of the request.

    Raises:
        HostlerError: conflict, if this principal may not ask it, or not of this node or for this plan; then
            nothing was written; invalid-data: a word of it cannot be stored.

    """
    if plan_sha256 is not None and not re.fullmatch(SHA256_PATTERN, plan_sha256):
        if node is None or answers(kind, asked_status(node, kind)):
            stands = f"{node.frozen_sha256 if node else 'none'} waits"
            todo = f"look at it with `hostler approve {subject.run_id}` and give its plan whole"
            if node is not None and node.frozen_sha256 is None:
                stands = f"node {node.key} has no exact plan yet"
                todo = f"wait for it; see `hostler show {subject.run_id}` for what is in the way"
            raise HostlerError(Code.CONFLICT, f"{plan_sha256!r} is no plan digest; {stands}", todo)
        plan_sha256 = None  # the ruling says that there is nothing to answer
    refuse_if_imported(subject.run_id, imported=subject.run.imported)
    clock = SystemClock()
    key = node.key if node else None
    try:
        request = Request(
            request_id=_request_id(subject, kind, key),
            run_id=subject.run_id,
            kind=kind,
            node=key,
            plan_sha256=plan_sha256,
            principal=principal(),
            reason=own_mask().text(reason),
            data={name: without(value, own_mask()) for name, value in (data or {}).items()},
            at=clock.now().at,
        )
    except ValidationError as error:
        raise invalid(first_problem(error), "say it in other words") from None
    ruling = judge(request, subject.standing(request, node), rules=Config.load().rules if rules is None else rules)
    if isinstance(ruling, Refused):
        raise HostlerError(ruling.code, ruling.what, ruling.todo)
    post(home, request, clock=clock)
    return request.request_id


def _request_id(subject: Subject, kind: RequestKind, key: str | None) -> str:
    if kind is RequestKind.CANCEL:
        return subject.reader.next_cancel_id(subject.run_id, key)  # the first of those that ask for the same counts
    return f"{kind}:{subject.run_id}:{key}:{secrets.token_hex(8)}"


def ask_to_cancel(
    home: Home, reader: Reader, run_id: str, key: str | None, *, reason: str, rules: Sequence[Rule] | None = None
) -> tuple[Subject, str | None]:
    """Ask for a run, or for a node and what depends on it, to be cancelled.

    Args:
        home: The store.
        reader: On the store.
        run_id: The run.
        key: The node; None for the whole run. A run that is cancelled already is asked for nothing.
        reason: For people.
        rules: As for `ask`.

    Returns:
        The run as it stood before, and the id of the request; None if there was nothing to ask for.

    Raises:
        HostlerError: not-found; conflict, if it has ended, or this principal may not ask it.

    """
    subject = subject_of(reader, run_id)
    node = None if key is None else subject.node(key)
    if node is not None or subject.run.status not in RUN_FINAL:
        return subject, ask(home, subject, RequestKind.CANCEL, node, rules=rules, reason=reason)
    if subject.run.status is not RunStatus.CANCELLED:
        what = f"run {run_id} is {subject.run.status}; there is nothing to cancel"
        raise HostlerError(Code.CONFLICT, what, f"see `hostler show {run_id}`")
    return subject, None
