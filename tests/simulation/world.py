"""A run in a world of chance: a store that commits late, executors that fail, hang, die and lie, people who interfere.

Messages come in any order, and old ones now and then once more. What executors say may be wrong in every way that can
be told from the truth: only who denies having reached the world, and did reach it, could not be found out by anybody.

One seed decides everything, so whatever goes wrong can be played again. After a crash only what was committed is
left, and the work of the dead host goes on until somebody ends it.
"""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
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
    TimerName,
    WithdrawAsk,
)
from actors.messages import (
    Admitted,
    Begin,
    Drain,
    Due,
    IntegrationEnded,
    LeaseSeen,
    LeftoversEnded,
    LogCut,
    NotAdmitted,
    PlannerAnswered,
    Probed,
    PublicationWanted,
    PulseTaken,
    RequestsArrived,
    Returned,
    SchedulingMessage,
    SpendingReported,
)
from actors.outcomes import Aborted, Exact, Failed, Finding, Found, Integrated, NotIntegrated, Outcome, Prepared, Value
from actors.scheduling.decide import decide
from actors.scheduling.operators import as_value
from actors.scheduling.shares import OCCUPYING
from actors.scheduling.spending import retry_misfit, shortages
from actors.scheduling.state import Port, load
from hostler.views.waiting import waiting_on
from hostres.errors import Code
from store.amounts import Usage
from store.budgets import Books, Entry, fold
from store.clock import Stamp, instant
from store.contracts import EventKind, GrantAction, NodeRecord, Request, RequestKind
from store.evidence import awaits_approval, is_judged_again
from store.ledgers import HOLDING
from store.lifecycle import FINAL, RESTING, RUN_FINAL, RUN_RESTING, RunStatus, Status, run_status
from store.plans import OperationExecutor
from store.policy import FailureCode, Resume
from store.receipts import ReceiptState
from store.requests import cancel_id
from store.revisions import revisions
from store.transactions import Transaction
from store.values import canonical
from tests.actors.support import HUMAN, RUN_ID, Model, rule
from tests.simulation.graphs import APPROVAL, OWNERS, PORTS, random_graph, random_limits
from tests.simulation.surroundings import RECOVERABLE, Effects, Machine, Work
from tests.store.stores import AnyStore

UNKNOWN = {Status.AMBIGUOUS, Status.AMBIGUOUS_CODE}
MOST_STEPS = 4000
REFUSALS = (Code.INVALID_CLAIMS, Code.CONFLICT, Code.UNSAFE_STATE, Code.UNAVAILABLE, Code.INTERNAL)
"""What the machine may answer to an ask that it does not admit."""
REPEATABLE = (Returned, PlannerAnswered, NotAdmitted)
"""Messages of which an old one may come again: it is told by its number that it is old."""

ASKS_FOR_A_TRY = {RequestKind.RETRY, RequestKind.CORRECT, RequestKind.RECOVER, RequestKind.REPLAY, RequestKind.SETTLE}
"""What a person asks after which failures are counted anew."""

AGENT = "agent:night"


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
        self.effects = Effects()
        self.works: list[Work] = []
        self.finished: set[str] = set()
        self.moved: set[tuple[str, int]] = set()
        self.clock_ms = 0
        self.steps = 0
        self.requests = 0
        self.held: dict[str, int] = {}
        self.lost: list[tuple[str, int]] = []
        self.failed: set[tuple[str, int]] = set()
        self.asked_at: dict[str, int] = {}
        self.silent: set[tuple[str, int]] = set()
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
                self.interfere()
            elif not self.step():
                if self.state.left:
                    self.take_over()
                elif not self.answer_people() and not self.step(timers=True):
                    assert self.hanging(), f"nothing can happen any more: {self.statuses()}"
                    self.take_over()  # a person ends the program in which it hangs
        self.check_end()

    def over(self) -> bool:
        """Say whether the run has ended, durably, and its host is done with it."""
        return self.state.left and not self.uncommitted and self.model.status in RUN_FINAL

    def hanging(self) -> bool:
        """Say whether the host waits for work that was cancelled and is deaf to that, which is told as it is."""
        return any(work.hangs == "deaf" and work.reason == "cancel" and not work.orphan for work in self.works)

    def statuses(self) -> dict[str, str]:
        """Return where the nodes stand in memory."""
        return {key: node.status.value for key, node in self.state.nodes.items()}

    # --- the host -------------------------------------------------------------------------------------------------

    def take_over(self) -> None:
        """Let a new host claim the run: memory is what the store holds, and old work is nobody's."""
        for work in self.works:
            work.orphan = True
        for action in getattr(self, "integrations", ()):
            if action.begin and self.random.random() < 0.5:  # killed after the move, before it could tell
                self.moved.add((action.node, action.attempt))
        for lease in getattr(self, "leases", {}).values():
            self.machine.release(lease)
        self.machine.asks.clear()
        self.leases: dict[tuple[str, int], int] = {}
        self.planners: dict[tuple[str, int], AskPlanner] = {}
        self.timers: list[SetTimer] = []
        self.inbox: list[SchedulingMessage] = []
        self.delivered: list[SchedulingMessage] = []
        self.leftovers: list[EndLeftovers] = []
        self.integrations: list[Integrate] = []
        self.uncommitted: deque[tuple[Transaction, list[Action]]] = deque()
        self.failing: dict[int, set[tuple[str, int]]] = {}
        self.state = load(
            self.model.claim(),
            jobs=self.random.randint(1, 4),
            release_at_rest=self.random.random() < 0.5,
            ports=PORTS,
        )
        for node in self.state.nodes.values():
            if node.worker is not None:
                node.leased_s = 0.0 if (node.key, node.record.attempt) in self.silent else 60.0
        self.full = self.random.randrange(8) == 0
        self.send(Begin(requests=self.model.waiting))

    def send(self, *messages: SchedulingMessage) -> None:
        """Deliver messages together; what follows waits for the commit as in the shell."""
        self.clock_ms += self.random.choice([1, 1, 500])
        stamp = Stamp(at=instant(self.clock_ms), boot_ns=self.clock_ms)
        failing = {(one.node, one.attempt) for one in messages if isinstance(one, Returned) and self.is_failure(one)}
        decision = decide(self.state, stamp, *messages, full=self.full)
        if decision.transaction is not None:
            self.uncommitted.append((decision.transaction, list(decision.after)))
            self.failing[id(decision.transaction)] = failing
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
            self.note_leases(transaction)
            self.note_failures(transaction)
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
                    self.integrations.append(action)
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
                case TakePulse():
                    self.inbox.append(self.pulse(action))
                case AskProbe():
                    said = self.random.choice([True, False, None])
                    self.inbox.append(Probed(node=action.node, attempt=action.attempt, running=said))
                case Judge():
                    self.inbox.append(rule(action))
                case EndLeftovers():
                    self.leftovers.append(action)
                case LookAtLease():
                    left_s = 0.0 if (action.node, action.attempt) in self.silent else self.random.choice([0.0, 60.0])
                    self.inbox.append(LeaseSeen(node=action.node, attempt=action.attempt, left_s=left_s))
                case AnswerPublication():
                    allowed = isinstance(action.answer, PublicationAllowed)
                    action.reply_to.gate = "allowed" if allowed else "refused"  # type: ignore[attr-defined]
                case _:
                    pass

    def begin_work(self, action: Dispatch | Reconcile) -> None:
        """Start an attempt or its reconciliation, whose intent must be durable if anybody could notice it."""
        node, record = self.state.nodes[action.node], self.model.records[action.node]
        assert not node.family.is_external, "what workers do was started here"
        lease = None if action.ask is None else self.leases.pop((action.node, action.ask))
        reconciling = isinstance(action, Reconcile)
        if reconciling or node.family.noticeable:
            assert (record.status, record.attempt) == (Status.RUNNING, action.attempt), "started before it was durable"
        assert action.node not in self.finished, "a completed node ran again"
        if node.family.noticeable and isinstance(action, Dispatch):
            self.check_input(action)
            self.check_tries(action)
        assert (lease is not None) is bool(action.plan.policy.claims or action.plan.keys), "claims without a lease"
        if node.family.noticeable:
            assert not [work for work in self.works if work.node == action.node], "it runs beside what is left of it"
        hangs = self.random.choices([None, "idle", "deaf"], [90, 6, 4])[0]
        self.works.append(Work(self.planned[action.node], action.attempt, reconciling, lease, hangs=hangs))

    def is_failure(self, message: Returned) -> bool:
        """Say whether an attempt that counts has failed, which no drain and no cancel is."""
        node = self.state.nodes[message.node]
        counts = (node.status, node.record.attempt) == (Status.RUNNING, message.attempt)
        if not counts or self.state.left or message.reconciling or node.recovering or node.reconciling:
            return False
        outcome = message.outcome
        failed = isinstance(outcome, Failed) or (
            isinstance(outcome, Aborted) and outcome.reason in {"timeout", "stall"}
        )
        return failed and node.key not in self.state.deferred

    def note_failures(self, transaction: Transaction) -> None:
        """Take in which attempts have durably failed, and after which a person has asked for another try."""
        self.failed |= self.failing.pop(id(transaction))
        for event in transaction.events:
            if event.kind is EventKind.REQUEST and event.node is not None and event.data["request"] in ASKS_FOR_A_TRY:
                self.asked_at[event.node] = self.model.records[event.node].attempt

    def check_tries(self, action: Dispatch) -> None:
        """Whoever found out what an attempt did: as often as its policy says, one that fails is made again by itself."""
        asked_at = self.asked_at.get(action.node, 0)
        failures = [
            attempt for key, attempt in self.failed if key == action.node and asked_at < attempt < action.attempt
        ]
        assert len(failures) < action.plan.policy.retry.attempts, "it is tried again for ever"

    def check_input(self, action: Dispatch) -> None:
        """A node does what it was given last: by its plan, or by whoever corrected it."""
        assert action.given in (None, canonical(action.plan.input)), "it is given other bytes than its plan's"
        planned, made = self.planned[action.node], revisions(self.model.grants).get(action.node)
        assert action.plan.revision == (0 if made is None else made.number), "it follows another revision"
        executor = planned.executor
        if isinstance(executor, OperationExecutor) and Port.PLAN in PORTS[executor.operation, executor.version]:
            return  # its planner says what exactly
        assert action.plan.input == (planned.input if made is None else made.input), "it was given another input"

    # --- what happens ---------------------------------------------------------------------------------------------

    def step(self, *, timers: bool = False) -> bool:
        """Let one thing happen; False if nothing can."""
        happenings: list[Callable[[], None]] = [partial(self.deliver, message) for message in self.inbox]
        happenings += [partial(self.admit, key) for key in self.machine.fitting()]
        happenings += [partial(self.end_leftovers, asked) for asked in self.leftovers]
        happenings += [partial(self.plan, key) for key in self.planners]
        happenings += [partial(self.integrate, action) for action in self.integrations]
        happenings += [partial(self.work, work) for work in self.works if not work.orphan and not work.stuck()]
        happenings += [partial(self.act, work) for work in self.works if work.orphan and work.may_act()]
        if not self.state.left:
            happenings += [partial(self.worker_acts, node, attempt) for node, attempt in self.held.items()]
            held_back = self.state.shares.lanes._lane_of if self.state.shares is not None else {}
            if any(
                node.family.is_external and node.status is Status.READY and node.key not in held_back
                for node in self.state.nodes.values()
            ):
                happenings.append(self.worker_asks)
        if self.uncommitted:
            happenings += [self.commit] * 3
        due = timers or (self.timers and self.random.random() < 0.04)
        happenings += [partial(self.fire, timer) for timer in self.timers if due or timer.timer.kind == "retry"]
        if not happenings:
            return False
        if self.random.random() < 0.02:
            happenings = [partial(self.wake, work) for work in self.works if work.hangs] or happenings
        if self.delivered and self.random.random() < 0.02:
            happenings = [partial(self.repeat, self.random.choice(self.delivered))]
        self.random.choice(happenings)()
        return True

    def wake(self, work: Work) -> None:
        """Let work that hung go on, perhaps long after its host has given up on it."""
        work.hangs = None

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
        """Deliver once more what was delivered already; no node may move by it."""
        before = {key: node.record for key, node in self.state.nodes.items()}
        self.send(message)
        assert before == {key: node.record for key, node in self.state.nodes.items()}, f"moved by an old {message}"

    def pulse(self, asked: TakePulse) -> PulseTaken:
        """Say what was seen of an attempt: it beats, is silent, never beat, or the host was held up."""
        assert self.planned[asked.node].policy.heartbeat is not None, "looked at what never said that it beats"
        return PulseTaken(
            node=asked.node,
            attempt=asked.attempt,
            beats=self.random.choice([0, 0, 3]),
            silent_s=self.random.choice([0.0, 4.0, 9.999, 10.0, 30.0]),
            late_s=self.random.choice([0.0, 0.0, 60.0]),
            running=self.random.random() < 0.7,
        )

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

    def integrate(self, action: Integrate) -> None:
        """Move the branch, once; or find it in the way, or that whoever may not begin has nothing to finish."""
        self.integrations.remove(action)
        done = (action.node, action.attempt) in self.moved
        answer: Integrated | NotIntegrated = NotIntegrated(reason="conflict", message="m", todo="t", paths=("x",))
        if done or (action.begin and self.random.random() < 0.7):
            self.moved.add((action.node, action.attempt))
            answer = Integrated(commit="c" * 40)
        self.inbox.append(IntegrationEnded(node=action.node, attempt=action.attempt, answer=answer))

    def work(self, work: Work) -> None:
        """Let an attempt go on: to its gate, to its effect, or to its end."""
        if work.gated and not work.reconciling and work.gate is None and self.random.random() < 0.7:
            work.gate = "asked"
            self.inbox.append(PublicationWanted(node=work.node, attempt=work.attempt, reply_to=work))  # type: ignore[arg-type]
        elif work.may_act() and self.random.random() < 0.6:
            self.act(work)
        elif self.random.random() < 0.05:
            usage = Usage(cost=Decimal("0.01"))
            said = SpendingReported(node=work.node, attempt=work.attempt, usage=usage, reply_to=work)  # type: ignore[arg-type]
            self.inbox.append(said)
        elif self.random.random() < 0.02:
            self.inbox.append(LogCut(node=work.node, attempt=work.attempt, stream="stdout", missing=1, why="full"))
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
        """Return how an attempt ends; it may claim an effect that it did not have, but denies none as undispatched."""
        if work.reason is not None and self.random.random() < 0.8:
            return Aborted(reason=work.reason, left=("x",) if self.random.random() < 0.05 else ())
        honest = work.did or work.resume is Resume.DETERMINISTIC
        if self.random.random() < (0.75 if honest else 0.05):
            return replace(self.value(work, {"n": self.random.randint(0, 9)}), usage=self.usage())
        dispatched = work.did or self.random.random() < 0.8
        code, retryable, usage = self.random.choice(list(FailureCode)), self.random.random() < 0.5, self.usage()
        return Failed(code=code, message="m", todo="t", dispatched=dispatched, retryable=retryable, usage=usage)

    def usage(self) -> Usage | None:
        """Return what an attempt says that it spent; most say nothing."""
        return Usage(tokens=self.random.randint(0, 3), cost=Decimal("0.1")) if self.random.random() < 0.1 else None

    def value(self, work: Work, value: object) -> Value:
        """Return a value with evidence: mostly what is due, now and then too little or too much."""
        terms = work.planned.terms
        due = tuple(each for each in terms.evidence if each != APPROVAL) if terms is not None else ()
        brought = self.random.choice([due, due, due, (), (*due, APPROVAL)]) if terms is not None else ()
        made = as_value(value)  # type: ignore[arg-type]
        return Value(value=made.value, data=made.data, sha256=made.sha256, evidence=brought)

    def found(self, work: Work) -> Outcome:
        """Return what a reconciliation finds: the truth, or nothing."""
        if work.reason is not None and self.random.random() < 0.8:
            return Aborted(reason=work.reason)
        if self.random.random() < 0.15:
            return Failed(code=FailureCode.UNAVAILABLE, message="m", todo="t")
        if self.effects.happened[work.node]:
            return self.value(work, {"found": True})
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

    # --- workers outside ------------------------------------------------------------------------------------------

    def note_leases(self, transaction: Transaction) -> None:
        """Take in what a durable transaction says of the workers: each has one attempt, and nobody has another's."""
        for key in transaction.unleased:
            self.lost.append((key, self.held.pop(key)))
        for lease in transaction.leases:
            assert lease.node not in self.held, "two workers have one piece of work"
            assert lease.node not in self.finished, "completed work is given out again"
            self.held[lease.node] = lease.attempt

    def worker_asks(self) -> None:
        """Ask for work, as a worker that may have some already."""
        self.ask(RequestKind.LEASE_WORK, None, worker=f"w{self.random.randint(0, 3)}", seconds=60.0)

    def worker_acts(self, node: str, attempt: int) -> None:
        """Bring a result, give the work back, say nothing any more, or come too late."""
        match self.random.randint(0, 9):
            case 0:
                self.ask(RequestKind.GIVE_BACK_WORK, node, attempt=attempt)
            case 1:
                self.silent.add((node, attempt))
            case 2 if self.lost:
                late, superseded = self.random.choice(self.lost)
                self.ask(RequestKind.SUBMIT_WORK, late, attempt=superseded, result={"status": "success"})
            case _ if (node, attempt) not in self.silent:
                status = self.random.choice(["success", "success", "success", "retry", "failed", "blocked"])
                self.ask(RequestKind.SUBMIT_WORK, node, attempt=attempt, result={"status": status})
            case _:
                due = [timer for timer in self.timers if (timer.timer.kind, timer.timer.node) == ("lease", node)]
                if due:
                    self.fire(due[0])

    # --- people ---------------------------------------------------------------------------------------------------

    def interfere(self) -> None:
        """Kill the host, stop it, or ask something of the run that may make no sense."""
        match self.random.randint(0, 8):
            case 0 | 1:
                self.take_over()
            case 2:
                self.send(Drain(grace_s=1))
            case 7:
                self.full = not self.full
                self.send(Due(timer=TimerName(kind="other", node=self.random.choice(list(self.state.nodes)))))
            case 3:
                self.ask(RequestKind.CANCEL, self.random.choice([None, *self.state.nodes]))
            case 4:
                running = [key for key, node in self.state.nodes.items() if node.status is Status.RUNNING]
                key = self.random.choice(running or list(self.state.nodes))
                self.effects.leave[key] += 1  # trusted code that had just failed by itself is made again by their word
                self.ask(RequestKind.RECOVER, key)
            case _:
                self.answer(self.random.choice(list(self.state.nodes)))

    def answer_people(self) -> bool:
        """Let people answer everything that rests; they look first, and tell the truth."""
        resting = [key for key, node in self.state.nodes.items() if node.status in RESTING]
        return bool([key for key in resting if self.answer(key)]) or self.raise_budgets()

    def raise_budgets(self) -> bool:
        """Let a person add what the nodes that no budget lets go need."""
        short = {misfit.holder: misfit for _, misfit in shortages(self.state)}
        for holder, misfit in short.items():
            self.ask(
                RequestKind.BUDGET,
                holder,
                add={misfit.counter: misfit.missing if Decimal(misfit.missing) % 1 else int(misfit.missing)},
            )
        return bool(short)

    def answer(self, key: str) -> bool:
        status = self.state.nodes[key].status
        if status in UNKNOWN:
            for work in [work for work in self.works if work.node == key]:
                if not work.orphan:
                    self.end(work)  # whoever says what an attempt did has ended what is left of it
                if work in self.works:
                    self.remove(work)
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
            case Status.BLOCKED if awaits_approval(self.state.nodes[key].record):
                self.ask(self.random.choice([RequestKind.APPROVE, RequestKind.APPROVE, RequestKind.DENY]), key)
            case Status.BLOCKED if is_judged_again(self.state.nodes[key].record) and self.random.random() < 0.8:
                self.effects.leave[key] += 1
                self.effects.happened[key] = 0  # what it did is given up with its result
                self.ask(RequestKind.RETRY, key, anew=True)
            case Status.BLOCKED | Status.FAILED:
                principal = self.random.choice([HUMAN, HUMAN, *(f"agent:{owner}" for owner in OWNERS)])
                misfit = retry_misfit(self.state, self.state.nodes[key])
                if misfit is not None:
                    self.ask(RequestKind.BUDGET, misfit.holder, add={"retries": 1})
                self.effects.leave[key] += self.may_recover(key, principal)
                given_up = self.state.nodes[key].record.output_sha256 is not None and self.may_recover(key, principal)
                if self.random.random() < 0.6:
                    if given_up and status is Status.FAILED:  # a result that a person did not approve
                        self.effects.happened[key] = 0
                    self.ask(RequestKind.RETRY, key, principal)
                else:
                    number = self.state.nodes[key].record.revision - (self.random.random() < 0.1)
                    if given_up:
                        self.effects.happened[key] = 0
                    self.ask(RequestKind.CORRECT, key, principal, input={"n": self.requests}, revision=number)
            case _:
                return False
        return True

    def may_recover(self, key: str, principal: str) -> bool:
        """Say whether *principal* is a person, or owns the parent of the node."""
        terms = self.planned[key].terms
        above = self.planned[terms.parent].terms if terms is not None and terms.parent is not None else None
        owner = above.owner.id if above is not None and above.owner is not None else None
        return principal == HUMAN or principal == f"agent:{owner}"

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

    # --- what must hold -------------------------------------------------------------------------------------------

    def check(self) -> None:
        state = self.state
        working = {Status.PREPARING, Status.QUEUED, Status.RUNNING}
        nodes = state.nodes.values()
        active = [
            node
            for node in nodes
            if (node.status in working and node.worker is None and node.key not in state.deferred)
            or node.clearing
            or node.integrating
            or (node.status is Status.VERIFYING and node.recovering)
        ]
        assert state.active == len(active)
        leased = [node for node in nodes if node.worker is not None]
        assert state.leased == len(leased)
        assert all(node.family.is_external and node.status is Status.RUNNING for node in leased)
        excused = any(node.recovering or node.reconciling or node.integrating for node in nodes)
        assert len(active) <= state.jobs or excused, "more at once than jobs"
        most = state.plan.limits.active
        assert most is None or len(active) + len(leased) <= most or excused, "more at once than the limits allow"
        short = 0 if state.shares is None else state.shares.short
        assert state.status is run_status(state.tally, started=state.started, short=short)
        self.check_shares()
        assert sum(state.tally.values()) == len(state.nodes)
        assert all((node.key, node.status) == (node.record.key, node.record.status) for node in nodes)
        if not self.uncommitted:
            assert {node.key: node.record for node in nodes} == self.model.records
            assert state.status is self.model.status
            assert {node.key: node.record.attempt for node in leased} == self.held
            if state.status in RUN_RESTING:
                self.check_reasons()
            used = [one.receipt_id for one in state.receipts.values() if one.state is ReceiptState.USED]
            granted = [grant.receipt_id for grant in self.model.grants if grant.receipt_id is not None]
            assert sorted(used) == sorted(granted), "a receipt is used once, and with the grant that it gives"
        self.finished |= {key for key, record in self.model.records.items() if record.status is Status.COMPLETED}

    def check_evidence(self, record: NodeRecord) -> None:
        """A completed node has shown what was due, and a person approved what a person must."""
        planned = self.planned[record.key]
        terms = planned.terms
        grants = [grant for grant in self.model.grants if grant.node == record.key and grant.allowed]
        settled = any(grant.action is GrantAction.SETTLE for grant in grants)
        if record.status is not Status.COMPLETED or settled:
            return
        if planned.workspace is not None:
            assert (record.key, record.attempt) in self.moved, "completed, and nobody moved its branch"
        if terms is None:
            return
        assert set(record.evidence) == set(terms.evidence)
        if APPROVAL in terms.evidence:
            actions = {(grant.action, grant.attempt or 0) for grant in grants}
            assert actions & {(GrantAction.EVIDENCE, record.attempt), (GrantAction.GATE, 0)}, "nobody approved it"

    def check_shares(self) -> None:
        """Nothing overshoots but by what was said to be spent, and who is active for whom keeps within the caps."""
        state = self.state
        if state.shares is None:
            return
        books, limits = state.shares.books, state.plan.limits
        again = Books(state.plan, books.ledgers.values())
        for holder in (None, *state.nodes):
            for counter in ("tokens", "cost", "tasks", "retries"):
                left = books.left(holder, counter)
                assert left == again.left(holder, counter)
                counted = counter in ("tasks", "retries")
                assert not counted or left is None or left >= 0, "more started than the budget allows"
        reserving = Counter(node.status for node in state.nodes.values() if node.status in HOLDING)
        at_least = reserving.total() - reserving[Status.VERIFYING]  # what is verified again has settled before
        assert at_least <= books.reservations <= reserving.total() if books.limited else books.reservations == 0
        for cap, of in ((limits.per_owner, "owner"), (limits.per_parent, "parent")):
            active = Counter(
                getattr(node.planned.terms, of)
                for node in state.nodes.values()
                if node.planned.terms is not None
                and node.status in OCCUPYING - {Status.VERIFYING}  # what is judged again starts nothing
                and node.key not in state.deferred
            )
            del active[None]
            excused = any(node.recovering or node.reconciling for node in state.nodes.values())
            assert cap is None or excused or all(number <= cap for number in active.values())
        if not self.uncommitted:
            assert {one.node: one for one in self.model.seen.ledgers} == books.ledgers

    def check_reasons(self) -> None:
        """A run that rests names every node that keeps it so, why, and what to type."""
        waiting = waiting_on(RUN_ID, self.model.plan, self.model.records.values())
        assert {each.node for each in waiting} == {
            key for key, record in self.model.records.items() if record.status in RESTING
        }
        exhausted = self.state.status is RunStatus.BUDGET_EXHAUSTED  # of which ready nodes are the reason
        assert exhausted or self.state.status.value in {each.reason.value for each in waiting}
        for each in waiting:
            assert each.message
            assert each.command.startswith(f"hostler {each.command.split()[1]} {RUN_ID} {each.node}")
            blocked = self.model.records[each.node]
            assert blocked.status is not Status.BLOCKED or blocked.failure is not None

    def check_end(self) -> None:
        """Nothing is held once all messages have arrived, and every node has ended with a reason."""
        while self.inbox:
            self.deliver(self.inbox[0])
        assert not self.leases, "a lease was never used and never given back"
        assert not self.machine.asks, "the machine is still asked"
        assert not self.held, "somebody still has work of a run that has ended"
        assert set(self.machine.held) == {work.lease for work in self.works if work.lease is not None}
        for record in self.model.records.values():
            assert record.status in FINAL
            assert record.status is not Status.FAILED or record.failure is not None
            self.check_evidence(record)
        spending = [
            Entry.from_data(event.node, event.attempt, event.data)
            for transaction in self.model.transactions
            for event in transaction.events
            if event.kind is EventKind.SPENDING
        ]
        assert fold(spending) == {one.node: one for one in self.model.seen.ledgers}
        assert all(one.reserved is None for one in self.model.seen.ledgers), "something is reserved for ever"
        for grant in self.model.grants:
            assert self.may_recover(grant.node, grant.principal), "a stranger was obeyed"
        for transaction in self.model.transactions:
            assert transaction.fence.generation <= self.model.generation
