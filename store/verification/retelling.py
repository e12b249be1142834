"""What a run's log says of the run, told again from its first event: the statuses, plans, claims and answers. Pure.

The log is the witness that the rows are checked against. The rules it is read by are those of `store.lifecycle`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from store import transitions
from store.contracts import Event, EventKind, GrantAction
from store.ledgers import Entry, InconsistentError, Ledger, apply
from store.lifecycle import FINAL, RESTING, RUN_FINAL, IllegalMoveError, RunStatus, Status, check_path
from store.plans import PlanPhase
from store.shapes import REOPENS

_NEEDED: Final[Mapping[Status, frozenset[GrantAction]]] = MappingProxyType(
    {
        Status.FAILED: REOPENS,
        Status.SKIPPED: REOPENS,
        Status.AMBIGUOUS: frozenset({GrantAction.SETTLE}),
        Status.AMBIGUOUS_CODE: frozenset({GrantAction.REPLAY}),
    }
)
"""Which grants let a node leave that status by one of the moves of `transitions.GRANTED`."""

RECEIPT_TERMS: Final = ("action", "plan_sha256", "approver", "subject", "rule", "expires_at")
"""What every event about a receipt says of it."""

_ACTIONS: Final = frozenset(action.value for action in GrantAction)


@dataclass(slots=True, kw_only=True)
class ToldNode:
    """What the log says of a node.

    Attributes:
        worker: Who outside works on it, if it is leased.
        put_off: Since when its next try is put off, and for how many milliseconds; None if it is not.

    """

    status: Status
    attempt: int = 0
    revision: int = 0
    preparation_sha256: str | None = None
    plan_sha256: str | None = None
    output_sha256: str | None = None
    evidence: list[Any] = field(default_factory=list)
    started_at: str | None = None
    finished_at: str | None = None
    failure: Mapping[str, Any] | None = None
    worker: str | None = None
    put_off: tuple[str, int] | None = None

    @property
    def frozen_sha256(self) -> str | None:
        """What an answer must name: its plan, or its preparation before it has one."""
        return self.plan_sha256 or self.preparation_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldGrant:
    """What the log says of a grant, and where its node stood when it was given.

    Attributes:
        seq: Number of the event.
        node_attempt: The node's attempt at that moment.
        node_plan: Digest of its frozen plan at that moment, or of its preparation if it had none.
        input_sha256: Of the input that a correction gave it.

    """

    seq: int
    at: str
    node: str
    action: str
    allowed: bool
    plan_sha256: str | None
    rule: str
    principal: str | None
    node_attempt: int
    node_plan: str | None
    revision: int | None = None
    input_sha256: str | None = None
    receipt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldReceipt:
    """What the log says of a receipt.

    Attributes:
        seq: Number of the last event about it.
        terms: What it is for, whom, by whom and until when, as its first event says.
        state: What became of it.
        request_id: The request that made it, used it up or took it back.

    """

    seq: int
    node: str | None
    terms: tuple[object, ...]
    state: str
    request_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAnswer:
    """What the log says of a request that was taken up or refused."""

    seq: int
    kind: str
    principal: str | None
    generation: int


@dataclass(slots=True, kw_only=True)
class ToldClaim:
    """What the log says of the last claim."""

    generation: int = 0
    host: str | None = None
    token_sha256: str | None = None
    released: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEnd:
    """What the log says of how the run ended."""

    at: str
    status: RunStatus
    counts: Mapping[str, object]


@dataclass(slots=True)
class Retelling:
    """The state of a run by its log alone.

    Attributes:
        nodes: By key.
        status: Of the run.
        started_at: When it was first taken up.
        claim: The last claim.
        end: How it ended; None if it goes on.
        grants: In order.
        answers: By request id.
        ledgers: What the nodes reserved and spent, and under None what was added to the budget of the run.
        receipts: By id.

    """

    nodes: dict[str, ToldNode]
    status: RunStatus = RunStatus.PLANNED
    started_at: str | None = None
    claim: ToldClaim = field(default_factory=ToldClaim)
    end: ToldEnd | None = None
    grants: list[ToldGrant] = field(default_factory=list)
    answers: dict[str, ToldAnswer] = field(default_factory=dict)
    ledgers: dict[str | None, Ledger] = field(default_factory=dict)
    receipts: dict[str, ToldReceipt] = field(default_factory=dict)
    _usable: dict[str, set[GrantAction]] = field(default_factory=dict)

    @classmethod
    def begin(cls, nodes: Iterable[tuple[str, bool]]) -> "Retelling":
        """Return a run before its first event.

        Args:
            nodes: Key of each node, and whether it waits for others.

        """
        return cls({key: ToldNode(status=Status.PENDING if waits else Status.READY) for key, waits in nodes})

    def take(self, event: Event) -> Iterator[str]:
        """Take in the next event and yield what about it cannot be."""
        match event.kind:
            case EventKind.NODE_RUNNING if event.data.get("reconciling") is True:
                yield from self._reconcile(event)
            case EventKind.NODE_STATUS | EventKind.NODE_RUNNING:
                yield from self._move(event)
            case EventKind.NODE_PLAN:
                yield from self._plan(event)
            case EventKind.RUN_CLAIMED | EventKind.RUN_RELEASED:
                yield from self._claim(event)
            case EventKind.RUN_STATUS | EventKind.RUN_FINALIZED | EventKind.RUN_REOPENED:
                yield from self._of_run(event)
            case EventKind.GRANT:
                yield from self._grant(event)
            case EventKind.SPENDING:
                yield from self._spending(event)
            case EventKind.RECEIPT:
                yield from self._receipt(event)
            case EventKind.REQUEST | EventKind.REQUEST_REFUSED:
                yield from self._answer(event)
            case _:
                pass

    def _node(self, event: Event) -> ToldNode | None:
        return self.nodes.get(event.node or "")

    def _move(self, event: Event) -> Iterator[str]:
        node = self._node(event)
        try:
            before = Status(str(event.data.get("from")))
            path = [Status(name) for name in (*_texts(event.data.get("via", [])), str(event.data.get("status")))]
        except ValueError:
            yield "it names no such status"
            return
        if node is None:
            yield f"the plan has no node {event.node}"
            return
        if before is not node.status:
            yield f"it moves node {event.node} from {before}, which was {node.status}"
        try:
            check_path(event.node or "", before, path)
        except IllegalMoveError as error:
            yield str(error)
        yield from self._check_granted(event.node or "", before, path[0])
        self._change(node, event, before, path)

    def _check_granted(self, key: str, before: Status, after: Status) -> Iterator[str]:
        usable = self._usable.pop(key, set())
        if before is Status.SKIPPED:  # with its failed source, which needs the grant itself
            usable = {GrantAction(told.action) for told in self.grants if told.allowed}
        if after in transitions.GRANTED.get(before, frozenset()) and not _NEEDED[before] & usable:
            yield f"node {key} leaves {before} for {after} without a grant"

    @staticmethod
    def _change(node: ToldNode, event: Event, before: Status, path: list[Status]) -> None:
        if before in FINAL:
            node.finished_at = None
        for status in path:
            if status is Status.RUNNING:
                node.started_at, node.finished_at = event.at, None
            elif status in FINAL:
                node.finished_at = event.at
        node.status = path[-1]
        node.attempt = event.attempt or 0
        failure = event.data.get("failure")
        node.failure = failure if node.status in FINAL | RESTING and isinstance(failure, dict) else None
        if Status.READY in path:
            node.output_sha256, node.evidence = None, []
        if node.status is Status.COMPLETED or "output_sha256" in event.data:
            node.output_sha256 = _text(event.data.get("output_sha256"))
        node.worker = _text(event.data.get("worker")) if node.status is Status.RUNNING else None
        evidence = event.data.get("evidence")
        if isinstance(evidence, list):
            node.evidence = evidence
        delay = event.data.get("delay_ms")
        node.put_off = (event.at, delay) if node.status is Status.CORRECTIVE and isinstance(delay, int) else None

    def _reconcile(self, event: Event) -> Iterator[str]:
        """Take in that it is being found out what an attempt did, which moves nothing."""
        node = self._node(event)
        if node is None:
            yield f"the plan has no node {event.node}"
        elif (node.status, node.attempt) != (Status.RUNNING, event.attempt):
            yield f"it finds out about attempt {event.attempt} of node {event.node}, which is {node.status}"

    def _plan(self, event: Event) -> Iterator[str]:
        node, sha256 = self._node(event), _text(event.data.get("plan_sha256"))
        if node is None:
            yield f"the plan has no node {event.node}"
        elif event.data.get("phase") == PlanPhase.PREPARATION:
            node.preparation_sha256 = sha256
        else:
            node.plan_sha256 = sha256

    def _claim(self, event: Event) -> Iterator[str]:
        generation, host = event.data.get("generation"), _text(event.data.get("host"))
        if event.kind is EventKind.RUN_CLAIMED:
            if generation != self.claim.generation + 1:
                yield f"claim {generation} follows claim {self.claim.generation}"
            self.claim = ToldClaim(
                generation=generation if isinstance(generation, int) else self.claim.generation + 1,
                host=host,
                token_sha256=_text(event.data.get("token_sha256")),
                released=False,
            )
            return
        if (generation, host, self.claim.released) != (self.claim.generation, self.claim.host, False):
            yield f"it releases a claim {generation} of {host} that is not in force"
        self.claim.released = True

    def _of_run(self, event: Event) -> Iterator[str]:
        try:
            self.status = RunStatus(str(event.data.get("status")))
        except ValueError:
            yield "it names no such status"
            return
        self.started_at = self.started_at or event.at
        if self.status not in RUN_FINAL:  # its summary goes when it is reopened
            self.end = None
        if event.kind is EventKind.RUN_FINALIZED:
            counts = event.data.get("counts")
            told = counts if isinstance(counts, dict) else {}
            self.end = ToldEnd(at=event.at, status=self.status, counts=told)

    def _grant(self, event: Event) -> Iterator[str]:
        node, data = self._node(event), event.data
        match data.get("action"), data.get("allowed"), data.get("plan_sha256"), data.get("rule"):
            case str(action), bool(allowed), (str() | None) as plan_sha256, str(rule) if (
                node is not None and action in _ACTIONS and (plan_sha256 is not None or action in REOPENS)
            ):  # a node that failed before it had a plan is tried again all the same
                self.grants.append(
                    ToldGrant(
                        seq=event.seq, at=event.at, node=event.node or "", action=action, allowed=allowed,
                        plan_sha256=plan_sha256, rule=rule, principal=event.principal,
                        node_attempt=node.attempt, node_plan=node.frozen_sha256, receipt=_text(data.get("receipt")),
                        revision=_number(data.get("revision")), input_sha256=_text(data.get("input_sha256")),
                    )
                )  # fmt: skip
                if allowed:
                    self._usable.setdefault(event.node or "", set()).add(GrantAction(action))
                if action == GrantAction.CORRECT:
                    yield from self._correct(event, node)
            case _:
                yield "it does not say what is granted"

    @staticmethod
    def _correct(event: Event, node: ToldNode) -> Iterator[str]:
        """Take in another input of a node, for which it has no plan yet."""
        if (node.revision + 1, True) != (event.data.get("revision"), event.data.get("allowed")):
            yield f"revision {event.data.get('revision')} of node {event.node} follows revision {node.revision}"
        if node.status not in transitions.CORRECTABLE:
            yield f"it corrects node {event.node}, which is {node.status}"
        node.revision += 1
        node.preparation_sha256 = node.plan_sha256 = None

    def _spending(self, event: Event) -> Iterator[str]:
        if event.node is not None and self._node(event) is None:
            yield f"the plan has no node {event.node}"
            return
        try:
            entry = Entry.from_data(event.node, event.attempt, event.data)
            self.ledgers[event.node] = apply(self.ledgers.get(event.node) or Ledger(node=event.node), entry)
        except InconsistentError as error:
            yield f"of its spending it says that {error}"
        except ValueError:
            yield "it does not say what was reserved or spent"

    def _receipt(self, event: Event) -> Iterator[str]:
        data = event.data
        name, state = _text(data.get("receipt_id")), _text(data.get("state"))
        if name is None or state is None:
            yield "it does not say what became of which receipt"
            return
        before = self.receipts.get(name)
        terms = tuple(data.get(each) for each in RECEIPT_TERMS)
        opens = state == "open"
        if opens != (before is None) or (before is not None and (before.state, before.terms) != ("open", terms)):
            yield f"receipt {name} cannot become {state}: it was {before.state if before else 'never made'}"
        request_id = _text(data.get("request_id"))
        self.receipts[name] = ToldReceipt(
            seq=event.seq, node=event.node, terms=terms, state=state, request_id=request_id
        )

    def _answer(self, event: Event) -> Iterator[str]:
        request_id, kind = _text(event.data.get("request_id")), _text(event.data.get("request"))
        if request_id is None or kind is None:
            yield "it does not say which request it answers"
        elif request_id in self.answers:
            yield f"request {request_id} was answered before, by event {self.answers[request_id].seq}"
        else:
            self.answers[request_id] = ToldAnswer(
                seq=event.seq, kind=kind, principal=event.principal, generation=self.claim.generation
            )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
