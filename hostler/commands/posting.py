"""Asking something of a run: judged here first, posted durably, then taken up by whoever owns the run."""

import re
import secrets
import time
from collections.abc import Sequence
from typing import Any, Final

from actors.secrets import without
from hostler.commands.places import whole
from hostler.config import Config
from hostler.host import Host
from hostler.principal import principal
from hostres.errors import Code, HostlerError
from hostres.masking import own_mask
from store.approvals import Refused, Standing, judge
from store.clock import SystemClock
from store.contracts import EventKind, NodeRecord, Request, RequestKind
from store.delegation import parents_owner
from store.evidence import asked_status
from store.heads import refuse_if_imported
from store.home import Home
from store.lazy_dataclass import dataclass
from store.patterns import SHA256_PATTERN
from store.plans import GraphPlan
from store.reader import Reader
from store.receipts import FIELD
from store.requests import cancel_id, post
from store.rules import Matter
from store.run_view import RunView
from store.service import service_alive

ANSWER_S: Final = 10.0
"""How long a living owner of a run is waited for."""
POLL_S: Final = 0.02


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

    def parents_owner(self, key: str) -> str | None:
        """Return the id of the owner of the node that delegated the one of that key."""
        planned = {node.key: node for node in self.plan.nodes}
        return parents_owner(planned[key], planned.get)


def look_at(reader: Reader, text: str) -> Subject:
    """Return the run that *text* names.

    Args:
        reader: The store.
        text: A prefix of its id, or `-`.

    Raises:
        HostlerError: not-found, or conflict if several runs match.

    """
    run, plan, nodes = whole(reader, reader.find(text))
    served = _is_served(reader, run.record.run_id)
    return Subject(run, plan, {node.key: node for node in nodes}, reader, served)


def _is_served(reader: Reader, run_id: str) -> bool:
    return reader.is_entrusted(run_id) and service_alive(reader.home)


def ask(
    home: Home,
    subject: Subject,
    kind: RequestKind,
    node: NodeRecord | None,
    *,
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
        plan_sha256: The exact node plan that is meant.
        reason: For people.
        data: What the kind needs besides.

    Returns:
        The id of the request.

    Raises:
        HostlerError: conflict, if this principal may not ask it, or not of this node or for this plan; then
            nothing was written.

    """
    if plan_sha256 is not None and not re.fullmatch(SHA256_PATTERN, plan_sha256):
        raise HostlerError(
            Code.CONFLICT,
            f"{plan_sha256!r} is no plan digest; {node.frozen_sha256 if node else 'none'} waits",
            f"look at it with `hostler approve {subject.run_id}` and give its plan whole",
        )
    refuse_if_imported(subject.run_id, imported=subject.run.imported)
    clock = SystemClock()
    request = Request(
        request_id=_request_id(kind, subject.run_id, node),
        run_id=subject.run_id,
        kind=kind,
        node=node.key if node else None,
        plan_sha256=plan_sha256,
        principal=principal(),
        reason=own_mask().text(reason),
        data={name: without(value, own_mask()) for name, value in (data or {}).items()},
        at=clock.now().at,
    )
    ruling = judge(request, subject.standing(request, node), rules=Config.load().rules)
    if isinstance(ruling, Refused):
        raise HostlerError(ruling.code, ruling.what, ruling.todo)
    post(home, request, clock=clock)
    return request.request_id


def _request_id(kind: RequestKind, run_id: str, node: NodeRecord | None) -> str:
    key = node.key if node else None
    if kind is RequestKind.CANCEL:
        return cancel_id(run_id, key)  # one for each run and node: the first one counts
    return f"{kind}:{run_id}:{key}:{secrets.token_hex(8)}"


def have_it_answered(reader: Reader, subject: Subject, request_ids: Sequence[str]) -> bool:
    """Let requests take effect, and hear what the owner of the run said to them.

    Args:
        reader: The store.
        subject: The run.
        request_ids: The requests.

    Returns:
        Whether they were taken up here, for want of somebody else.

    Raises:
        HostlerError: One was refused after all, since somebody else was first or its owner has other rules; or the
            run could not be claimed for it.

    """
    here = have_it_consumed(reader, subject)
    deadline = time.monotonic() + ANSWER_S
    for request_id in request_ids:
        event = reader.answer(subject.run_id, request_id)
        while event is None and time.monotonic() < deadline:  # its owner is at it, or has ended without having seen it
            time.sleep(POLL_S)
            here = have_it_consumed(reader, subject) or here
            event = reader.answer(subject.run_id, request_id)
        if event is not None and event.kind is EventKind.REQUEST_REFUSED:
            data = event.data
            raise HostlerError(
                Code(str(data["code"])),
                str(data["message"]),
                str(data.get("todo") or f"see `hostler show {subject.run_id}`"),
            )
    return here


def have_it_consumed(reader: Reader, subject: Subject) -> bool:
    """Let what was posted take effect in a run that no live host owns; a live owner does it by itself.

    Who owns it is looked up after the post: an owner that gave the run back before saw nothing of it, and one that
    took it up since has found it waiting.

    Returns:
        Whether it was done here.

    Raises:
        HostlerError: The run could not be claimed for it.

    """
    run_id = subject.run_id
    if reader.run(run_id).owned or _is_served(reader, run_id):
        return False
    with Host(config=Config.load()) as host:
        try:
            host.operate(run_id)
        except HostlerError as error:
            if error.code is not Code.CONFLICT or not reader.run(run_id).owned:
                raise
            return False
    return True


def next_step(subject: Subject, *, here: bool = False) -> str:
    """Return what happens now, or what to type for it.

    Args:
        subject: The run.
        here: Whether what was asked of it was taken up by this command itself.

    """
    if subject.owned and subject.run.owner is not None and not here:
        return f"host {subject.run.owner.host} goes on with it"
    if subject.served and not here:
        return "the background service goes on with it"
    return f"go on with: hostler resume {subject.run_id}"
