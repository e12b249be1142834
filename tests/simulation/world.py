"""A run in a world of chance: a store that commits late, executors that fail, hang, die and lie, people who interfere.

Messages come in any order, and old ones now and then once more.
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
    AskProbe,
    Dispatch,
    EndLeftovers,
    ForgetPlanner,
    GiveBack,
    Integrate,
    Judge,
    LookAtLease,
    PublicationAllowed,
    Reconcile,
    SetTimer,
    TakePulse,
    WithdrawAsk,
)
from actors.messages import (
    Admitted,
    Begin,
    Due,
    LeaseSeen,
    NotAdmitted,
    PlannerAnswered,
    Probed,
    RequestsArrived,
    Returned,
    SchedulingMessage,
)
from actors.scheduling.decide import decide
from actors.scheduling.state import load
from hostres.errors import Code
from store.clock import Stamp, instant
from store.contracts import Request, RequestKind
from store.lifecycle import RUN_FINAL, Status
from store.requests import cancel_id
from store.transactions import Transaction
from tests.actors.support import HUMAN, RUN_ID, Model, rule
from tests.simulation.cancels import Cancels
from tests.simulation.checks import check, check_begun, check_end
from tests.simulation.executors import Executors
from tests.simulation.failures import Failures
from tests.simulation.graphs import PORTS, random_graph, random_limits
from tests.simulation.people import People
from tests.simulation.surroundings import Machine
from tests.simulation.workers import Workers
from tests.store.stores import AnyStore

MOST_STEPS = 4000
REFUSALS = (Code.INVALID_CLAIMS, Code.CONFLICT, Code.UNSAFE_STATE, Code.UNAVAILABLE, Code.INTERNAL)
"""What the machine may answer to an ask that it does not admit."""
REPEATABLE = (Returned, PlannerAnswered, NotAdmitted)
"""Messages of which an old one may come again: it is told by its number that it is old."""


class World:
    """Everything around one run.

    Attributes:
        steps: How much has happened.
        kill_at: Besides all that happens by chance, the host is killed at this step.

    """

    def __init__(self, seed: int, store: AnyStore | None = None, *, kill_at: int | None = None) -> None:
        self.kill_at = kill_at
        self.random = random.Random(seed)
        self.model = Model(random_graph(self.random), limits=random_limits(self.random), store=store)
        self.planned = {node.key: node for node in self.model.plan.nodes}
        self.machine = Machine()
        self.inbox: list[SchedulingMessage] = []
        self.executors = Executors(self.random, self.planned, self.machine, self.inbox.append)
        self.workers = Workers(self)
        self.people = People(self)
        self.cancels = Cancels(self)
        self.failures = Failures(self)
        self.finished: set[str] = set()
        self.clock_ms = 0
        self.steps = 0
        self.requests = 0
        self.full = False
        self.take_over()

    def play(self) -> None:
        """Let things happen until the run has ended; then check that nothing is left over."""
        calm_after = self.random.randint(5, 80)
        while not self.over():
            self.steps += 1
            assert self.steps < MOST_STEPS, f"the run never ends: {self.statuses()}"
            troubled = self.steps < calm_after
            self.full = self.full and troubled
            if self.steps == self.kill_at:
                self.take_over()
            elif troubled and self.random.random() < 0.12:
                self.people.interfere()
            elif not self.step():
                if self.state.left:
                    self.take_over()
                elif not self.people.answer_all() and not self.step(timers=True):
                    assert self.hanging(), f"nothing can happen any more: {self.statuses()}"
                    self.take_over()  # a person ends the program in which it hangs
        while self.inbox:
            self.deliver(self.inbox[0])
        check_end(self)

    def over(self) -> bool:
        """Say whether the run has ended, durably, and its host is done with it."""
        return self.state.left and not self.uncommitted and self.model.status in RUN_FINAL

    def hanging(self) -> bool:
        """Say whether the host waits for work that was cancelled and is deaf to that, which is told as it is."""
        works = self.executors.works
        return any(work.hangs == "deaf" and work.reason == "cancel" and not work.orphan for work in works)

    def statuses(self) -> dict[str, str]:
        """Return where the nodes stand in memory."""
        return {key: node.status.value for key, node in self.state.nodes.items()}

    # --- the host -------------------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Let a new host claim the run: memory is what the store holds, and old work is nobody's."""
        self.executors.lose_host()
        self.failures.lose_host()
        for lease in getattr(self, "leases", {}).values():
            self.machine.release(lease)
        self.machine.asks.clear()
        self.leases: dict[tuple[str, int], int] = {}
        self.timers: list[SetTimer] = []
        self.inbox.clear()
        self.delivered: list[SchedulingMessage] = []
        self.leftovers: list[EndLeftovers] = []
        self.uncommitted: deque[tuple[Transaction, list[Action]]] = deque()
        self.state = load(
            self.model.claim(),
            jobs=self.random.randint(1, 4),
            release_at_rest=self.random.random() < 0.5,
            ports=PORTS,
        )
        for node in self.state.nodes.values():
            if node.worker is not None:
                node.leased_s = 0.0 if (node.key, node.record.attempt) in self.workers.silent else 60.0
        self.full = self.random.randrange(8) == 0
        self.send(Begin(requests=self.model.waiting))

    def send(self, *messages: SchedulingMessage) -> None:
        """Deliver messages together; what follows waits for the commit as in the shell."""
        self.clock_ms += self.random.choice([1, 1, 500])
        stamp = Stamp(at=instant(self.clock_ms), boot_ns=self.clock_ms)
        failing = self.failures.among(messages)
        decision = decide(self.state, stamp, *messages, full=self.full)
        if decision.transaction is not None:
            self.uncommitted.append((decision.transaction, list(decision.after)))
            self.failures.hold(decision.transaction, failing)
        elif self.uncommitted:
            self.uncommitted[-1][1].extend(decision.after)
        self.perform(decision.now)
        if not self.uncommitted:
            self.perform(decision.after)
        check(self)
        self.finished |= {key for key, record in self.model.records.items() if record.status is Status.COMPLETED}

    def commit(self) -> None:
        """Make some of what waits durable, and let its host speak."""
        for _ in range(self.random.randint(1, len(self.uncommitted))):
            transaction, after = self.uncommitted.popleft()
            self.model.apply(transaction)
            self.workers.note(transaction)
            self.failures.note(transaction)
            self.cancels.note(transaction)
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
                case Integrate():
                    record = self.model.records[action.node]
                    assert record.status is Status.VERIFYING, "integrated before its result was durable"
                    assert record.output_sha256 is not None
                    self.executors.integrations.append(action)
                case AskPlanner():
                    assert self.model.records[action.node].status is Status.PREPARING, "asked before it was durable"
                    self.executors.planners[action.node, action.number] = action
                case ForgetPlanner():
                    self.executors.planners.pop((action.node, action.number), None)
                case Abort():
                    self.executors.stop(action)
                case SetTimer():
                    self.timers.append(action)
                case TakePulse():
                    self.inbox.append(self.executors.pulse(action))
                case AskProbe():
                    said = self.random.choice([True, False, None])
                    self.inbox.append(Probed(node=action.node, attempt=action.attempt, running=said))
                case Judge():
                    self.inbox.append(rule(action))
                case EndLeftovers():
                    self.leftovers.append(action)
                case LookAtLease():
                    silent = (action.node, action.attempt) in self.workers.silent
                    left_s = 0.0 if silent else self.random.choice([0.0, 60.0])
                    self.inbox.append(LeaseSeen(node=action.node, attempt=action.attempt, left_s=left_s))
                case AnswerPublication():
                    allowed = isinstance(action.answer, PublicationAllowed)
                    action.reply_to.gate = "allowed" if allowed else "refused"  # type: ignore[attr-defined]
                case _:
                    pass

    def begin_work(self, action: Dispatch | Reconcile) -> None:
        """Start an attempt or its reconciliation with the lease of its ask."""
        lease = None if action.ask is None else self.leases.pop((action.node, action.ask))
        check_begun(self, action, lease)
        self.executors.begin(action.node, action.attempt, lease, reconciling=isinstance(action, Reconcile))

    # --- what happens ---------------------------------------------------------------------------------------------

    def step(self, *, timers: bool = False) -> bool:
        """Let one thing happen; False if nothing can."""
        happenings: list[Callable[[], None]] = [partial(self.deliver, message) for message in self.inbox]
        happenings += [partial(self.admit, key) for key in self.machine.fitting()]
        happenings += [partial(self.end_leftovers, asked) for asked in self.leftovers]
        happenings += self.executors.happenings()
        happenings += self.workers.happenings()
        if self.uncommitted:
            happenings += [self.commit] * 3
        due = timers or (self.timers and self.random.random() < 0.04)
        happenings += [partial(self.fire, timer) for timer in self.timers if due or timer.timer.kind == "retry"]
        if not happenings:
            return False
        if self.random.random() < 0.02:
            happenings = self.executors.awakenings() or happenings
        if self.delivered and self.random.random() < 0.02:
            happenings = [partial(self.repeat, self.random.choice(self.delivered))]
        self.random.choice(happenings)()
        return True

    def deliver(self, message: SchedulingMessage) -> None:
        together = {message.node: message, **self.returned()} if isinstance(message, Returned) else {None: message}
        for each in together.values():
            self.inbox.remove(each)
            if isinstance(each, REPEATABLE):
                self.delivered.append(each)
        self.send(*together.values())

    def returned(self) -> dict[str, Returned]:
        """Draw what has returned of some nodes, one attempt each: what waits in the inbox may be taken together."""
        waiting = [message for message in self.inbox if isinstance(message, Returned)]
        return {message.node: message for message in waiting if self.random.random() < 0.5}

    def repeat(self, message: SchedulingMessage) -> None:
        """Deliver once more what was delivered already; no node may move by it, but what is ready is always looked at."""
        before = {key: node.record for key, node in self.state.nodes.items() if node.status is not Status.READY}
        self.send(message)
        assert before == {key: self.state.nodes[key].record for key in before}, f"moved by an old {message}"

    def admit(self, key: tuple[str, int]) -> None:
        if self.random.random() < 0.05:
            del self.machine.asks[key]
            code = self.random.choice(REFUSALS)
            self.inbox.append(NotAdmitted(node=key[0], number=key[1], code=code, message="m", todo="t"))
            return
        self.leases[key] = self.machine.admit(key)
        ticket = self.leases[key]
        self.inbox.append(Admitted(node=key[0], number=key[1], ticket=ticket, admitted_boot_ns=self.clock_ms))

    def end_leftovers(self, asked: EndLeftovers) -> None:
        self.leftovers.remove(asked)
        self.send(self.executors.end_leftovers(asked))

    def fire(self, timer: SetTimer) -> None:
        self.timers.remove(timer)
        if timer.timer.kind == "wait":  # a person looks who holds the machine, and ends what nobody owns
            for work in [work for work in self.executors.works if work.orphan]:
                self.executors.remove(work)
        self.clock_ms += int(timer.seconds * 1000)
        self.send(Due(timer=timer.timer))

    # --- what is asked of the run ---------------------------------------------------------------------------------

    def ask(self, kind: RequestKind, node: str | None, principal: str = HUMAN, **data) -> None:
        """Post a request, which the store keeps until the host has consumed it."""
        if self.state.left:
            return
        self.requests += 1
        request = Request(
            request_id=cancel_id(RUN_ID, node) if kind is RequestKind.CANCEL else f"request-{self.requests}",
            run_id=RUN_ID,
            kind=kind,
            node=node,
            plan_sha256=self.state.nodes[node].record.frozen_sha256
            if node and kind is not RequestKind.BUDGET
            else None,
            principal=principal,
            data=data,
            at="2026-01-01T00:00:00.000Z",
        )
        if self.model.post(request):
            self.send(RequestsArrived(requests=(request,)))
