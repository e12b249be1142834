"""A run for the pure core, driven message by message, with a model of the store behind it."""

from collections.abc import Mapping, Sequence
from typing import Any

from actors.actions import Action, AskMachine, Dispatch, Judge, RunLeft
from actors.messages import Admitted, Begin, Judged, RequestsArrived, Returned, SchedulingMessage
from actors.outcomes import Failed, Outcome
from actors.scheduling.decide import decide
from actors.scheduling.operators import as_value
from actors.scheduling.state import NO_PORTS, Port, Ports, RunState, load
from store.approvals import judge
from store.clock import Stamp
from store.contracts import Grant, NodeRecord, Request, RequestKind, RunRecord
from store.lifecycle import RunStatus, Status
from store.plans import ComputeExecutor, GateExecutor, GraphPlan, OperationExecutor, PlannedNode, RunLimits
from store.policy import Effect, FailureCode, Policy, Resume
from store.records import graph_plan_sha256
from store.requests import cancel_id
from store.rules import DEFAULT_RULES, Rule
from store.transactions import Claimed, Transaction
from tests.store.model import MemoryStore, Seen
from tests.store.stores import AnyStore

RUN_ID = "run_01jzzzzzzzzzzzzzzzzzzzzzzz"
HUMAN = "human:ann"
NO_LIMITS = RunLimits()


def planned(
    key: str, *after: str, policy: Policy | None = None, executor: Any = None, input: Any = None
) -> PlannedNode:
    return PlannedNode(
        key=key,
        executor=executor or OperationExecutor(operation="test.work", version=1),
        input={} if input is None else input,
        dependencies=tuple(sorted(after)),
        policy=policy or Policy(),
    )


def paid(key: str, *after: str) -> PlannedNode:
    policy = Policy(effect=Effect.PAID_CLOUD, resume=Resume.AMBIGUOUS_AFTER_DISPATCH)
    return planned(key, *after, policy=policy)


def gate(key: str, *after: str) -> PlannedNode:
    return planned(key, *after, executor=GateExecutor(gate="merge"))


def code(key: str, *after: str) -> PlannedNode:
    policy = Policy(effect=Effect.TRUSTED_CODE, resume=Resume.EXPLICIT_CODE_REPLAY)
    return planned(key, *after, policy=policy, executor=ComputeExecutor(compute="f"))


def writing(key: str, *after: str, **policy: Any) -> PlannedNode:
    return planned(key, *after, policy=Policy(effect=Effect.LOCAL_DERIVED_WRITE, **policy))


def claiming(key: str, *after: str, **claims: int) -> PlannedNode:
    return writing(key, *after, claims=claims or {"ffmpeg": 1})


class _OneMoment:
    def now(self) -> Stamp:
        return Stamp(at="2026-01-01T00:00:00.000Z", boot_ns=1)


class Model:
    """One run in a store, the model of one if none is given, and all transactions that were made."""

    def __init__(
        self,
        nodes: Sequence[PlannedNode],
        outputs: Any = None,
        *,
        limits: RunLimits = NO_LIMITS,
        store: AnyStore | None = None,
    ) -> None:
        self.plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=tuple(nodes), outputs=outputs, limits=limits)
        self.record = RunRecord(
            run_id=RUN_ID,
            workflow="w",
            workflow_version=1,
            plan_sha256=graph_plan_sha256(self.plan),
            folder="/films",
            created_at="2026-01-01T00:00:00.000Z",
            principal=HUMAN,
        )
        self.store: AnyStore = store or MemoryStore(_OneMoment())
        self.host: str | None = None
        self.store.create(self.record, self.plan)
        self.asked = 0
        self.generation = 0
        self.transactions: list[Transaction] = []

    def claim(self) -> Claimed:
        if self.host is not None:
            self.store.kill(self.host)
        self.generation += 1
        self.host = self.store.host()
        return self.store.claim(RUN_ID, self.host)

    def apply(self, transaction: Transaction) -> None:
        refused = self.store.write([transaction])
        assert refused == [None], (refused, transaction)
        self.transactions.append(transaction)

    def post(self, request: Request) -> bool:
        return self.store.post(request)

    @property
    def seen(self) -> Seen:
        return self.store.seen(RUN_ID)

    @property
    def records(self) -> dict[str, NodeRecord]:
        return {record.key: record for record in self.seen.nodes}

    @property
    def outputs(self) -> Mapping[str, Any]:
        return self.seen.outputs

    @property
    def grants(self) -> tuple[Grant, ...]:
        return self.seen.grants

    @property
    def status(self) -> RunStatus:
        return self.seen.status

    @property
    def waiting(self) -> tuple[Request, ...]:
        return tuple(self.store.requests([RUN_ID]))

    def events(self, kind: str, node: str | None = None) -> list[Mapping[str, Any]]:
        return [
            event.data
            for transaction in self.transactions
            for event in transaction.events
            if event.kind == kind and (node is None or event.node == node)
        ]


class Drive:
    """The core under test with the actors played by the test."""

    def __init__(
        self,
        model: Model,
        *,
        jobs: int = 8,
        release_at_rest: bool = False,
        ports: Ports = NO_PORTS,
        rules: Sequence[Rule] = DEFAULT_RULES,
    ) -> None:
        self.model = model
        known = {
            (node.executor.operation, node.executor.version): frozenset[Port]()
            for node in model.plan.nodes
            if isinstance(node.executor, OperationExecutor)
        }
        self.state: RunState = load(
            model.claim(), jobs=jobs, release_at_rest=release_at_rest, ports={**known, **ports}, rules=rules
        )
        self.now: list[Action] = []
        self.after: list[Action] = []
        self.clock = 0

    def send(self, *messages: SchedulingMessage, full: bool = False) -> list[Action]:
        """Deliver *messages* together, commit at once, and return what the core wants done."""
        self.clock += 1
        at = f"2026-01-01T00:{self.clock // 60:02d}:{self.clock % 60:02d}.000Z"
        stamp = Stamp(at=at, boot_ns=self.clock)
        decision = decide(self.state, stamp, *messages, full=full)
        if decision.transaction is not None:
            self.model.apply(decision.transaction)
        self.now += decision.now
        self.after += decision.after
        return [*decision.now, *decision.after]

    def begin(self) -> list[Action]:
        return self.send(Begin(requests=self.model.waiting))

    def returned(
        self, node: str, outcome: Outcome | None = None, *, attempt: int | None = None, full: bool = False
    ) -> list[Action]:
        number = self.state.nodes[node].record.attempt if attempt is None else attempt
        outcome = outcome or as_value({"by": node})
        return self.send(Returned(node=node, attempt=number, outcome=outcome, release=None), full=full)

    def failed(self, node: str, code: FailureCode = FailureCode.SUBPROCESS) -> list[Action]:
        return self.returned(node, Failed(code=code, message="it broke", todo="mend it"))

    def admitted(self, node: str, ticket: int = 1) -> list[Action]:
        number = self.state.nodes[node].asks
        return self.send(Admitted(node=node, number=number, ticket=ticket, admitted_boot_ns=self.clock))

    def request(self, kind: RequestKind, node: str | None = None, **fields: Any) -> list[Action]:
        """Post a request, let authority judge it, and deliver its ruling; return what else is wanted."""
        self.model.asked += 1
        request = Request(
            request_id=cancel_id(RUN_ID, node) if kind is RequestKind.CANCEL else f"request-{self.model.asked}",
            run_id=RUN_ID,
            kind=kind,
            node=node,
            principal=fields.pop("principal", HUMAN),
            at="2026-01-01T00:00:00.000Z",
            **fields,
        )
        if not self.model.post(request):
            return []  # the first one stands
        actions = self.send(RequestsArrived(requests=(request,)))
        for case in kinds(actions, Judge):
            actions += self.send(rule(case, self.state.rules))
        return [action for action in actions if not isinstance(action, Judge)]

    def approve(self, node: str, **fields: Any) -> list[Action]:
        return self.request(
            RequestKind.APPROVE, node, plan_sha256=self.state.nodes[node].record.frozen_sha256, **fields
        )

    def status(self, node: str) -> Status:
        return self.state.nodes[node].status

    def statuses(self) -> dict[str, str]:
        return {key: node.status.value for key, node in self.state.nodes.items()}

    def crash(self, **options: Any) -> "Drive":
        """Lose all memory; a new owner finds what the store holds."""
        return Drive(self.model, **options)


def rule(case: Judge, rules: Sequence[Rule] = DEFAULT_RULES) -> Judged:
    return Judged(request=case.request, ruling=judge(case.request, case.standing, rules=rules))


def kinds(actions: Sequence[Action], kind: type) -> list[Any]:
    return [action for action in actions if isinstance(action, kind)]


def dispatched(actions: Sequence[Action]) -> list[str]:
    return [action.node for action in kinds(actions, Dispatch)]


def asked(actions: Sequence[Action]) -> list[str]:
    return [action.node for action in kinds(actions, AskMachine)]


def left(actions: Sequence[Action]) -> RunLeft | None:
    found = kinds(actions, RunLeft)
    return found[0] if found else None
