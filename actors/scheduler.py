"""The shell around the pure core: one actor a claimed run.

It decides, adopts, hands the writes to the run store, and speaks only when the commit is durable.
"""

import logging
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, get_args

from actors.actions import (
    Abort,
    Action,
    Address,
    AnswerPublication,
    AnswerSpending,
    AskMachine,
    AskPlanner,
    AskProbe,
    CancelTimer,
    Dispatch,
    EndLeftovers,
    ForgetPlanner,
    GiveBack,
    Integrate,
    Judge,
    LookAtLease,
    NodeChanged,
    Reconcile,
    RunChanged,
    RunLeft,
    SetTimer,
    TakePulse,
    WithdrawAsk,
)
from actors.attempts import Attempts
from actors.commit_answer import CommitAnswer
from actors.errands import Errands
from actors.executor import Executor
from actors.host_messages import (
    Adopt,
    ChangeTimers,
    Commit,
    Died,
    FenceLost,
    FollowRequests,
    ForgetRequests,
    LeaseUnwanted,
    LookForLease,
    RunLost,
    StopTimers,
    Vacated,
    WantLease,
    WantRuling,
)
from actors.messages import (
    Admitted,
    Begin,
    CommitRefused,
    Committed,
    MachineAnswer,
    PlannerAnswered,
    Progress,
    Returned,
    SchedulingMessage,
    Vacate,
)
from actors.operations import Previous
from actors.outcomes import Failed
from actors.pulse import Pulse
from actors.scheduling.decide import decide
from actors.scheduling.state import RunState, load
from actors.scheduling.stopping import GRACE_S, OVERDUE_AFTER_S
from actors.scheduling.turn import Decision
from actors.services import Services
from actors.shell import Shell, hand_over, tell
from hostres.errors import HostlerError, describe
from hostres.lease import Lease
from store.policy import FailureCode
from store.room import shortage
from store.transactions import Claimed

log = logging.getLogger(__name__)

Asked = tuple[str, int]
"""Node, and which of its questions to the machine."""
Working = tuple[str, int, bool]
"""Node, attempt, and whether it is the reconciliation of that attempt."""


MOST_TOGETHER: Final = 64
"""So many nodes at most are decided about in one transaction, lest the others wait long."""
VACATE_S: Final = OVERDUE_AFTER_S
"""How long the work of a scheduler that goes may take to end."""

Word = (
    NodeChanged
    | RunChanged
    | AskMachine
    | WithdrawAsk
    | GiveBack
    | Judge
    | LookAtLease
    | AnswerPublication
    | AnswerSpending
    | RunLeft
)
"""What is said to others, or done in passing."""
Work = Dispatch | Reconcile | Integrate | AskPlanner | ForgetPlanner | Abort | EndLeftovers | TakePulse | AskProbe


class Scheduler(Shell):
    """Owns one claimed run."""

    def __init__(self, *, claimed: Claimed, adopt: Adopt, services: Services, parent: Address) -> None:
        super().__init__(name=f"scheduler {claimed.record.run_id}", parent=parent)
        self._claimed: Claimed | None = claimed
        self._run_id = claimed.record.run_id
        self._adopt = adopt
        self._services = services
        self._commits = 0
        self._outbox: deque[tuple[int, list[Action]]] = deque()
        self._leases: dict[Asked, Lease] = {}
        self._executors: dict[Working, Executor] = {}
        self._pulses: dict[tuple[str, int], Pulse] = {}
        self._errands = Errands(record=claimed.record, adopt=adopt, services=services, scheduler=self.actor_ref)
        self._vacating = False
        self._full: HostlerError | None = None

    def setup(self) -> None:
        """Load the run and take it up."""
        claimed = self._claimed
        if claimed is None:
            raise AssertionError
        self._claimed = None  # its values live on in the state alone
        self._state: RunState = load(
            claimed,
            jobs=self._adopt.jobs,
            release_at_rest=self._adopt.release_at_rest,
            rules=self._services.rules,
            ports={name: operation.ports for name, operation in self._adopt.operations.items()},
            lacking=self._adopt.lacking,
        )
        self._attempts = Attempts(
            state=self._state, adopt=self._adopt, services=self._services, scheduler=self.actor_ref
        )
        self._services.store.tell(FollowRequests(run_id=self._run_id, fence=claimed.fence, reply_to=self.actor_ref))
        self._decide(Begin(requests=claimed.requests))

    def handle(self, message: Any) -> None:
        """Take one message."""
        match message:
            case Committed(number=number):
                self._release_outbox(number)
            case Progress():
                self._report(message)
            case MachineAnswer(answer=said, lease=lease):
                if isinstance(said, Admitted):
                    self._leases[said.node, said.number] = lease
                self._decide(said)
            case Returned():
                self._returned(message)
            case PlannerAnswered():
                self._errands.planner_answered(message.node, message.number)
                self._decide(message)
            case Died():
                self._executor_died(message)
            case Vacate():
                self._vacating = True
                self.stop()
            case CommitRefused(error=error):
                self._parent_tell(RunLost(run_id=self._run_id, error=error))
                self.stop()
            case FenceLost(error=error):
                if not self._state.left:
                    self._parent_tell(RunLost(run_id=self._run_id, error=error))
                    self.stop()
            case _ if isinstance(message, get_args(SchedulingMessage)):
                self._decide(message)
            case _:
                super().handle(message)

    def teardown(self) -> None:
        """Leave nothing behind: stop what still runs, close what was admitted and never used."""
        tell(self._services.store, ForgetRequests(run_id=self._run_id, reply_to=self.actor_ref))
        tell(self._services.timer, StopTimers(owner=self.actor_urn))
        for (node, attempt, reconciling), executor in self._executors.items():
            executor.tell(Abort(node=node, attempt=attempt, reason="drain", grace_s=GRACE_S, reconciling=reconciling))
        self._errands.abort()
        if self._broken or self._vacating:
            self._vacate()
        for lease in self._leases.values():
            lease.release()

    def _vacate(self) -> None:
        """Say when all work of this scheduler has ended: before that nobody may do any of it again."""
        run_id, urn, parent = self._run_id, self.actor_urn, self._parent
        working = {node: executor for (node, _, _), executor in self._executors.items()}

        def wait() -> None:
            deadline = time.monotonic() + VACATE_S
            hung = [
                node for node, executor in working.items() if not executor.wait(max(0.0, deadline - time.monotonic()))
            ]
            if parent is not None:
                tell(parent, Vacated(run_id=run_id, urn=urn, hung=tuple(hung)))

        self._services.threads.start_or_do(wait)

    def _returned(self, first: Returned) -> None:
        """Decide about all that has returned by now in one transaction, an attempt of each node."""
        nodes = {first.node}

        def fits(said: Any) -> bool:
            fit = isinstance(said, Returned) and said.node not in nodes
            if fit:
                nodes.add(said.node)
            return fit

        messages = [first, *self.actor_inbox.take(fits, MOST_TOGETHER - 1)]
        for message in messages:
            self._executors.pop((message.node, message.attempt, message.reconciling), None)
            self._forget_pulse(message.node, message.attempt)
        self._decide(*messages)

    def _decide(self, *messages: SchedulingMessage) -> None:
        if self._adopt.jobs:  # nothing may begin whose end could not be recorded
            self._full = shortage(self._services.home)
        decision = decide(self._state, self._services.clock.now(), *messages, full=self._full is not None)
        if decision.transaction is not None:
            if self._is_alone(decision):
                self._commit_here(decision)
                return
            self._commits += 1
            self._outbox.append((self._commits, list(decision.after)))
            self._hand_in(self._commit(decision, self.actor_ref))
        elif self._outbox:  # nothing may overtake what waits for the disk
            self._outbox[-1][1].extend(decision.after)
        self._perform_all(decision.now)
        if decision.transaction is None and not self._outbox:
            self._perform_all(decision.after)

    def _is_alone(self, decision: Decision) -> bool:
        """Say whether nothing else can come up before the commit of *decision* is durable."""
        return (
            not (self._outbox or self._executors)
            and self.actor_inbox.empty()
            and all(isinstance(action, CancelTimer) for action in decision.now)
        )

    def _commit(self, decision: Decision, reply_to: Address) -> Commit:
        assert decision.transaction is not None
        return Commit(
            number=self._commits,
            transaction=decision.transaction,
            reply_to=reply_to,
            awaited=not all(isinstance(action, NodeChanged) for action in decision.after),
        )

    def _hand_in(self, commit: Commit) -> None:
        """Let the store have a commit; to lay one by that nobody waits for, its thread need not wake."""
        if commit.awaited:
            self._services.store.tell(commit)
        else:
            hand_over(self._services.store, commit)

    def _commit_here(self, decision: Decision) -> None:
        """Have the store commit on this thread if it is idle: there is nothing else to do meanwhile."""
        self._perform_all(decision.now)
        self._commits += 1
        self._outbox.append((self._commits, list(decision.after)))
        answer = CommitAnswer(self.actor_ref)
        hand_over(self._services.store, self._commit(decision, answer))
        said = answer.taken()
        if said is not None:
            self.handle(said)

    def _release_outbox(self, number: int) -> None:
        released: list[Action] = []
        while self._outbox and self._outbox[0][0] <= number:
            released += self._outbox.popleft()[1]
        self._perform_all(released)

    def _perform_all(self, actions: Iterable[Action]) -> None:
        """Perform what a decision or a commit lets out; what it changes of timers is one message."""
        timers: list[SetTimer | CancelTimer] = []
        for action in actions:
            if isinstance(action, SetTimer | CancelTimer):
                timers.append(action)
            else:
                self._perform(action)
        if timers:
            self._services.timer.tell(
                ChangeTimers(owner=self.actor_urn, changes=tuple(timers), reply_to=self.actor_ref)
            )

    def _perform(self, action: Word | Work) -> None:
        services = self._services
        match action:
            case NodeChanged() | RunChanged():
                self._report(action)
            case AskMachine():
                services.machine.tell(WantLease(run_id=self._run_id, ask=action, reply_to=self.actor_ref))
            case WithdrawAsk():
                services.machine.tell(LeaseUnwanted(run_id=self._run_id, node=action.node, number=action.number))
            case GiveBack():
                lease = self._leases.pop((action.node, action.number), None)
                if lease is not None:
                    lease.release()
            case Judge():
                services.authorization.tell(WantRuling(judge=action, reply_to=self.actor_ref))
            case LookAtLease():
                services.store.tell(LookForLease(run_id=self._run_id, lease=action, reply_to=self.actor_ref))
            case AnswerPublication() | AnswerSpending():
                tell(action.reply_to, action.answer)
            case RunLeft(drained=True) if self._full is not None:
                self._parent_tell(RunLost(run_id=self._run_id, error=self._full))
            case RunLeft():
                self._parent_tell(action)
            case _:
                self._work(action)

    def _work(self, action: Work) -> None:
        """Start or stop what runs on helper threads."""
        match action:
            case Dispatch():
                self._dispatch(action)
            case Reconcile():
                self._dispatch(action, Previous(attempt=action.attempt, gate_passed=action.gate_passed))
            case Integrate():
                self._errands.integrate(action)
            case AskPlanner():
                self._errands.ask_planner(action, self._state.nodes[action.node].planned.executor)
            case ForgetPlanner():
                self._errands.forget_planner(action)
            case Abort():
                executor = self._executors.get((action.node, action.attempt, action.reconciling))
                if executor is not None:
                    executor.tell(action)
            case EndLeftovers():
                self._errands.end_leftovers(action.nodes)
            case TakePulse():
                self._take_pulse(action)
            case AskProbe():
                self._errands.ask_probe(action, self._state.nodes[action.node].planned.executor)

    def _take_pulse(self, action: TakePulse) -> None:
        pulse = self._pulses.get((action.node, action.attempt))
        if pulse is not None:
            running = (action.node, action.attempt, False) in self._executors
            self.actor_ref.tell(pulse.taken(action, running=running))

    def _forget_pulse(self, node: str, attempt: int) -> None:
        """Nobody looks at an attempt any more that has ended."""
        if self._pulses.pop((node, attempt), None) is not None:  # else nobody has asked a probe either
            self._errands.forget_probe(node, attempt)

    def _dispatch(self, action: Dispatch | Reconcile, previous: Previous | None = None) -> None:
        lease = None if action.ask is None else self._leases.pop((action.node, action.ask))
        pulse = None
        if action.plan.policy.heartbeat is not None and previous is None:
            pulse = self._pulses[action.node, action.attempt] = Pulse()
        executor = self._attempts.executor(action, lease=lease, pulse=pulse, previous=previous)
        self._executors[action.node, action.attempt, previous is not None] = executor
        executor.start()

    def _executor_died(self, message: Died) -> None:
        """Treat a broken executor as a fault of its node: the others go on."""
        for (node, attempt, reconciling), executor in list(self._executors.items()):
            if executor.urn == message.urn:
                del self._executors[node, attempt, reconciling]
                outcome = Failed(
                    code=FailureCode.INTERNAL,
                    message=f"its executor broke: {describe(message.error)}",
                    todo="report this",
                )
                self._decide(
                    Returned(node=node, attempt=attempt, outcome=outcome, release=None, reconciling=reconciling)
                )

    def _report(self, change: NodeChanged | RunChanged | Progress) -> None:
        try:
            self._adopt.subscriber(change)
        except Exception:
            log.exception("a subscriber of %s failed", self._run_id)

    def _parent_tell(self, message: RunLeft | RunLost) -> None:
        if self._parent is not None:
            tell(self._parent, message)
