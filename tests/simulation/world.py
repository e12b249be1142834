"""A run in a world of chance: a store that commits late, executors that fail, hang, die and lie, people who interfere.

One seed decides everything, so whatever goes wrong can be played again. After a crash only what was committed is
left, and the work of the dead host goes on until somebody ends it.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from actors.actions import (
    Abort,
    Action,
    AnswerPublication,
    AskMachine,
    AskPlanner,
    Dispatch,
    EndLeftovers,
    ForgetPlanner,
    GiveBack,
    Judge,
    PublicationAllowed,
    Reconcile,
    SetTimer,
    WithdrawAsk,
)
from actors.messages import (
    Admitted,
    Begin,
    Drain,
    Due,
    LeftoversEnded,
    PlannerAnswered,
    PublicationWanted,
    RequestsArrived,
    Returned,
    SchedulingMessage,
)
from actors.outcomes import Aborted, Exact, Failed, Finding, Found, Outcome, Prepared
from actors.scheduling.decide import decide
from actors.scheduling.operators import as_value
from actors.scheduling.state import load
from store.clock import Stamp, instant
from store.contracts import Request, RequestKind
from store.lifecycle import FINAL, RESTING, RUN_FINAL, Status, run_status
from store.policy import FailureCode, Resume
from store.receipts import ReceiptState
from store.requests import cancel_id
from store.transactions import Transaction
from tests.actors.support import HUMAN, RUN_ID, Model, rule
from tests.simulation.graphs import PORTS, random_graph, random_limits
from tests.simulation.surroundings import RECOVERABLE, Effects, Machine, Work
from tests.store.stores import AnyStore

UNKNOWN = {Status.AMBIGUOUS, Status.AMBIGUOUS_CODE}
MOST_STEPS = 4000

AGENT = "agent:night"


class World:
    """Everything around one run.

    Attributes:
        steps: How much has happened.

    """

    def __init__(self, seed: int, store: AnyStore | None = None) -> None:
        self.random = random.Random(seed)
        self.model = Model(random_graph(self.random), limits=random_limits(self.random), store=store)
        self.planned = {node.key: node for node in self.model.plan.nodes}
        self.machine = Machine()
        self.effects = Effects()
        self.works: list[Work] = []
        self.finished: set[str] = set()
        self.clock_ms = 0
        self.steps = 0
        self.requests = 0
        self.take_over()

    def play(self) -> None:
        """Let things happen until the run has ended; then check that nothing is left over."""
        calm_after = self.random.randint(5, 80)
        while not self.over():
            self.steps += 1
            assert self.steps < MOST_STEPS, f"the run never ends: {self.statuses()}"
            troubled = self.steps < calm_after
            if troubled and self.random.random() < 0.12:
                self.interfere()
            elif not self.step():
                if self.state.left:
                    self.take_over()
                elif not self.answer_people() and not self.step(timers=True):
                    raise AssertionError(f"nothing can happen any more: {self.statuses()}")
        self.check_end()

    def over(self) -> bool:
        """Say whether the run has ended, durably, and its host is done with it."""
        return self.state.left and not self.uncommitted and self.model.status in RUN_FINAL

    def statuses(self) -> dict[str, str]:
        """Return where the nodes stand in memory."""
        return {key: node.status.value for key, node in self.state.nodes.items()}

    # --- the host -------------------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Let a new host claim the run: memory is what the store holds, and old work is nobody's."""
        for work in self.works:
            work.orphan = True
        for lease in getattr(self, "leases", {}).values():
            self.machine.release(lease)
        self.machine.asks.clear()
        self.leases: dict[tuple[str, int], int] = {}
        self.planners: dict[tuple[str, int], AskPlanner] = {}
        self.timers: list[SetTimer] = []
        self.inbox: list[SchedulingMessage] = []
        self.leftovers: list[EndLeftovers] = []
        self.uncommitted: deque[tuple[Transaction, list[Action]]] = deque()
        self.state = load(
            self.model.claim(),
            jobs=self.random.randint(1, 4),
            release_at_rest=self.random.random() < 0.5,
            ports=PORTS,
        )
        self.send(Begin(requests=self.model.waiting))

    def send(self, message: SchedulingMessage) -> None:
        """Deliver a message; what follows waits for the commit as in the shell."""
        self.clock_ms += self.random.choice([1, 1, 500])
        decision = decide(self.state, message, Stamp(at=instant(self.clock_ms), boot_ns=self.clock_ms))
        if decision.transaction is not None:
            self.uncommitted.append((decision.transaction, list(decision.after)))
        elif self.uncommitted:
            self.uncommitted[-1][1].extend(decision.after)
        self.perform(decision.now)
        if not self.uncommitted:
            self.perform(decision.after)
        self.check()

    def commit(self) -> None:
        """Make some of what waits durable, and let its host speak."""
        for _ in range(self.random.randint(1, len(self.uncommitted))):
            transaction, after = self.uncommitted.popleft()
            self.model.apply(transaction)
            self.perform(after)

    def perform(self, actions: Iterable[Action]) -> None:
        for action in actions:
            match action:
                case AskMachine():
                    self.machine.asks[action.node, action.number] = action
                case WithdrawAsk():
                    self.machine.asks.pop((action.node, action.number), None)
                case GiveBack():
                    self.machine.release(self.leases.pop((action.node, action.number), None))
                case Dispatch() | Reconcile():
                    self.begin_work(action)
                case AskPlanner():
                    assert self.model.records[action.node].status is Status.PREPARING, "asked before it was durable"
                    self.planners[action.node, action.number] = action
                case ForgetPlanner():
                    self.planners.pop((action.node, action.number), None)
                case Abort():
                    for work in self.works:
                        if (work.node, work.attempt, work.reconciling) == (
                            action.node,
                            action.attempt,
                            action.reconciling,
                        ) and not work.orphan:
                            work.reason = action.reason
                case SetTimer():
                    self.timers.append(action)
                case Judge():
                    self.inbox.append(rule(action))
                case EndLeftovers():
                    self.leftovers.append(action)
                case AnswerPublication():
                    allowed = isinstance(action.answer, PublicationAllowed)
                    action.reply_to.gate = "allowed" if allowed else "refused"  # type: ignore[attr-defined]
                case _:
                    pass

    def begin_work(self, action: Dispatch | Reconcile) -> None:
        """Start an attempt or its reconciliation, whose intent must be durable if anybody could notice it."""
        node, record = self.state.nodes[action.node], self.model.records[action.node]
        lease = None if action.ask is None else self.leases.pop((action.node, action.ask))
        reconciling = isinstance(action, Reconcile)
        if reconciling or node.noticeable:
            assert (record.status, record.attempt) == (Status.RUNNING, action.attempt), "started before it was durable"
        assert action.node not in self.finished, "a completed node ran again"
        assert (lease is not None) is bool(action.plan.policy.claims or action.plan.keys), "claims without a lease"
        if node.noticeable:
            assert not [work for work in self.works if work.node == action.node], "it runs beside what is left of it"
        self.works.append(Work(self.planned[action.node], action.attempt, reconciling, lease))

    # --- what happens ---------------------------------------------------------------------------------------------

    def step(self, *, timers: bool = False) -> bool:
        """Let one thing happen; False if nothing can."""
        happenings: list[Callable[[], None]] = [partial(self.deliver, message) for message in self.inbox]
        happenings += [partial(self.admit, key) for key in self.machine.fitting()]
        happenings += [partial(self.end_leftovers, asked) for asked in self.leftovers]
        happenings += [partial(self.plan, key) for key in self.planners]
        happenings += [partial(self.work, work) for work in self.works if not work.orphan]
        happenings += [partial(self.act, work) for work in self.works if work.orphan and work.may_act()]
        if self.uncommitted:
            happenings += [self.commit] * 3
        due = timers or (self.timers and self.random.random() < 0.04)
        happenings += [partial(self.fire, timer) for timer in self.timers if due or timer.timer.kind == "retry"]
        if not happenings:
            return False
        self.random.choice(happenings)()
        return True

    def deliver(self, message: SchedulingMessage) -> None:
        self.inbox.remove(message)
        self.send(message)

    def admit(self, key: tuple[str, int]) -> None:
        self.leases[key] = self.machine.admit(key)
        ticket = self.leases[key]
        self.inbox.append(Admitted(node=key[0], number=key[1], ticket=ticket, admitted_boot_ns=self.clock_ms))

    def end_leftovers(self, asked: EndLeftovers) -> None:
        """End what dead hosts left of these nodes; now and then something cannot be ended."""
        self.leftovers.remove(asked)
        remaining = {}
        for work in [work for work in self.works if work.orphan and work.node in asked.nodes]:
            if self.random.random() < 0.03:
                remaining[work.node] = "it does not end"
            else:
                self.remove(work)
        self.send(LeftoversEnded(nodes=asked.nodes, ended={}, remaining=remaining))

    def plan(self, key: tuple[str, int]) -> None:
        question = self.planners.pop(key)
        answer: Prepared | Exact | Failed
        if self.random.random() < 0.2:
            code = self.random.choice(list(FailureCode))
            answer = Failed(code=code, message="m", todo="t", dispatched=False)
        elif question.preparation is None:
            seconds = self.random.choice([None, 9.0])
            answer = Prepared(descriptors={"n": 1}, max_input_bytes=None, max_seconds=seconds)
        else:
            answer = Exact(input={"exact": True}, keys=())
        self.inbox.append(PlannerAnswered(node=key[0], number=key[1], answer=answer))

    def work(self, work: Work) -> None:
        """Let an attempt go on: to its gate, to its effect, or to its end."""
        if work.gated and not work.reconciling and work.gate is None and self.random.random() < 0.7:
            work.gate = "asked"
            self.inbox.append(PublicationWanted(node=work.node, attempt=work.attempt, reply_to=work))  # type: ignore[arg-type]
        elif work.may_act() and self.random.random() < 0.6:
            self.act(work)
        else:
            self.end(work)

    def act(self, work: Work) -> None:
        self.effects.act(work)

    def end(self, work: Work) -> None:
        outcome = self.found(work) if work.reconciling else self.outcome(work)
        if isinstance(outcome, Aborted) and outcome.left:
            work.orphan = True
        else:
            self.remove(work)
        self.inbox.append(
            Returned(node=work.node, attempt=work.attempt, outcome=outcome, release=None, reconciling=work.reconciling)
        )

    def outcome(self, work: Work) -> Outcome:
        """Return how an attempt ends; it never claims an effect that it did not have, nor denies one as undispatched."""
        if work.reason is not None and self.random.random() < 0.8:
            return Aborted(reason=work.reason, left=("x",) if self.random.random() < 0.05 else ())
        if (work.did or work.resume is Resume.DETERMINISTIC) and self.random.random() < 0.75:
            return as_value({"n": self.random.randint(0, 9)})
        dispatched = work.did or self.random.random() < 0.8
        return Failed(code=self.random.choice(list(FailureCode)), message="m", todo="t", dispatched=dispatched)

    def found(self, work: Work) -> Outcome:
        """Return what a reconciliation finds: the truth, or nothing."""
        if work.reason is not None and self.random.random() < 0.8:
            return Aborted(reason=work.reason)
        if self.random.random() < 0.15:
            return Failed(code=FailureCode.UNAVAILABLE, message="m", todo="t")
        if self.effects.happened[work.node]:
            return as_value({"found": True})
        finding = Finding.RETRY if work.resume in RECOVERABLE else Finding.AMBIGUOUS
        return Found(finding=self.random.choice([finding, finding, Finding.INCOMPATIBLE]), message="m")

    def remove(self, work: Work) -> None:
        self.works.remove(work)
        self.machine.release(work.lease)

    def fire(self, timer: SetTimer) -> None:
        self.timers.remove(timer)
        if timer.timer.kind == "wait":  # a person looks who holds the machine, and ends what nobody owns
            for work in [work for work in self.works if work.orphan]:
                self.remove(work)
        self.clock_ms += int(timer.seconds * 1000)
        self.send(Due(timer=timer.timer))

    # --- people ---------------------------------------------------------------------------------------------------

    def interfere(self) -> None:
        """Kill the host, stop it, or ask something of the run that may make no sense."""
        match self.random.randint(0, 6):
            case 0 | 1:
                self.take_over()
            case 2:
                self.send(Drain(grace_s=1))
            case 3:
                self.ask(RequestKind.CANCEL, self.random.choice([None, *self.state.nodes]))
            case _:
                self.answer(self.random.choice(list(self.state.nodes)))

    def answer_people(self) -> bool:
        """Let people answer everything that rests; they look first, and tell the truth."""
        resting = [key for key, node in self.state.nodes.items() if node.status in RESTING]
        return bool([key for key in resting if self.answer(key)])

    def answer(self, key: str) -> bool:
        status = self.state.nodes[key].status
        if status in UNKNOWN:
            for work in [work for work in self.works if work.node == key and work.orphan]:
                self.remove(work)  # whoever says what an attempt did has ended what is left of it
        happened = self.effects.happened[key] > 0
        match status:
            case Status.APPROVAL_REQUIRED:
                if self.random.random() < 0.5:
                    self.give_receipt(key)
                else:
                    self.ask(self.random.choice([RequestKind.APPROVE, RequestKind.APPROVE, RequestKind.DENY]), key)
            case Status.AMBIGUOUS:
                outcome = "completed" if happened else self.random.choice(["failed", "retry"])
                self.ask(RequestKind.SETTLE, key, outcome=outcome, value={"settled": True})
            case Status.AMBIGUOUS_CODE:
                self.effects.leave[key] += 1
                self.ask(RequestKind.REPLAY, key)
            case Status.BLOCKED | Status.FAILED:
                self.effects.leave[key] += 1
                self.ask(RequestKind.RETRY, key)
            case _:
                return False
        return True

    def give_receipt(self, key: str) -> None:
        """Let a person give leave, and an agent use it, once or more often, unless it was taken back before."""
        name = f"receipt-{self.requests}"
        self.ask(RequestKind.RECEIPT, key, receipt=name, subject=AGENT, action="approve", lasts_ms=3_600_000)
        while self.inbox and self.random.random() < 0.9:  # who uses it has mostly waited for it
            self.deliver(self.inbox[0])
        if self.random.random() < 0.2:
            self.ask(RequestKind.REVOKE, None, receipt=name)
        for _ in range(self.random.randint(1, 3)):
            self.ask(RequestKind.APPROVE, key, principal=AGENT, receipt=name)

    def ask(self, kind: RequestKind, node: str | None, *, principal: str = HUMAN, **data) -> None:
        """Post a request, which the store keeps until the host has consumed it."""
        if self.state.left:
            return
        self.requests += 1
        request = Request(
            request_id=cancel_id(RUN_ID, node) if kind is RequestKind.CANCEL else f"request-{self.requests}",
            run_id=RUN_ID,
            kind=kind,
            node=node,
            plan_sha256=self.state.nodes[node].record.frozen_sha256 if node else None,
            principal=principal,
            data=data,
            at="2026-01-01T00:00:00.000Z",
        )
        if self.model.post(request):
            self.send(RequestsArrived(requests=(request,)))

    # --- what must hold -------------------------------------------------------------------------------------------

    def check(self) -> None:
        state = self.state
        working = {Status.PREPARING, Status.QUEUED, Status.RUNNING}
        nodes = state.nodes.values()
        active = [
            node for node in nodes if (node.status in working and node.key not in state.deferred) or node.clearing
        ]
        assert state.active == len(active)
        excused = any(node.recovering or node.reconciling for node in nodes)
        assert len(active) <= state.jobs or excused, "more at once than jobs"
        assert state.status is run_status(state.tally, started=state.started)
        assert sum(state.tally.values()) == len(state.nodes)
        if not self.uncommitted:
            assert {node.key: node.record for node in nodes} == self.model.records
            assert state.status is self.model.status
            used = [one.receipt_id for one in state.receipts.values() if one.state is ReceiptState.USED]
            granted = [grant.receipt_id for grant in self.model.grants if grant.receipt_id is not None]
            assert sorted(used) == sorted(granted), "a receipt is used once, and with the grant that it gives"
            assert not [one for one in self.model.grants if one.principal != HUMAN], "only people give leave"
        self.finished |= {key for key, record in self.model.records.items() if record.status is Status.COMPLETED}

    def check_end(self) -> None:
        """Nothing is held once all messages have arrived, and every node has ended with a reason."""
        while self.inbox:
            self.deliver(self.inbox[0])
        assert not self.leases, "a lease was never used and never given back"
        assert not self.machine.asks, "the machine is still asked"
        assert set(self.machine.held) == {work.lease for work in self.works if work.lease is not None}
        for record in self.model.records.values():
            assert record.status in FINAL
            assert record.status is not Status.FAILED or record.failure is not None
        for transaction in self.model.transactions:
            assert transaction.fence.generation <= self.model.generation
