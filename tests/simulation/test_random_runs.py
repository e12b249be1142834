"""Random graphs, outcomes, operators and crashes, one message at a time; every run ends or rests with a reason."""

import random

import pytest

from actors.actions import (
    Abort,
    AskMachine,
    AskPlanner,
    Dispatch,
    EndLeftovers,
    ForgetPlanner,
    Judge,
    Reconcile,
    SetTimer,
    WithdrawAsk,
)
from actors.messages import (
    Aborted,
    Admitted,
    Drain,
    Due,
    Exact,
    Failed,
    Finding,
    Found,
    LeftoversEnded,
    PlannerAnswered,
    Prepared,
    Returned,
)
from actors.scheduling.operators import as_value
from actors.scheduling.state import Port
from store.contracts import Effect, FailureCode, OperationExecutor, Policy, PreparationKind, RequestKind, Resume, Retry
from store.lifecycle import FINAL, RESTING, RUN_FINAL, RUN_RESTING, Status, run_status
from tests.actors.support import Drive, Model, code, gate, planned, rule

SEEDS = 400
OPERATIONS = tuple(OperationExecutor(operation=f"test.op{index}", version=1) for index in range(4))
PORTS = {
    ("test.op1", 1): frozenset({Port.PLAN}),
    ("test.op2", 1): frozenset({Port.PREPARE, Port.RECONCILE}),
    ("test.op3", 1): frozenset(Port),
}


class World:
    """Plays machine, executors and people, at random from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = Model(self.graph())
        self.finished: set[str] = set()
        self.effects: dict[str, int] = {}
        self.take_over()

    def graph(self):
        nodes = []
        for index in range(self.random.randint(1, 14)):
            key = f"n{index:02d}"
            after = [node.key for node in nodes if self.random.random() < 0.25]
            match self.random.randint(0, 9):
                case 0:
                    nodes.append(gate(key, *after))
                case 1:
                    nodes.append(code(key, *after))
                case _:
                    nodes.append(planned(key, *after, policy=self.policy(), executor=self.random.choice(OPERATIONS)))
        return nodes

    def policy(self) -> Policy:
        retry = Retry(
            attempts=self.random.randint(1, 3),
            delays=self.random.choice([(), (5.0,)]),
            exhausted=self.random.choice(["fail", "block"]),
        )
        return Policy(
            effect=self.random.choice(list(Effect)[:6]),
            resume=self.random.choice(list(Resume)[:5]),
            preparation=self.random.choice([(), (), (PreparationKind.CAMERA,), (PreparationKind.LOCAL_MEDIA,)]),
            claims=self.random.choice([{}, {"ffmpeg": 1}]),
            cancellable=self.random.random() < 0.7,
            retry=retry,
        )

    def take_over(self) -> None:
        self.drive = Drive(
            self.model, jobs=self.random.randint(1, 4), release_at_rest=self.random.random() < 0.5, ports=PORTS
        )
        self.asks: dict[tuple[str, int], AskMachine] = {}
        self.working: dict[tuple[str, int, bool], str | None] = {}
        self.planners: dict[tuple[str, int], AskPlanner] = {}
        self.timers: list[SetTimer] = []
        self.pending: list = []
        self.hear(self.drive.begin())

    def hear(self, actions) -> None:
        for action in actions:
            match action:
                case AskMachine():
                    self.asks[action.node, action.attempt] = action
                case WithdrawAsk():
                    self.asks.pop((action.node, action.attempt), None)
                case Dispatch():
                    assert self.drive.state.nodes[action.node].status is Status.RUNNING
                    assert self.model.records[action.node].attempt == action.attempt
                    assert action.node not in self.finished, "a completed node ran again"
                    self.working[action.node, action.attempt, False] = None
                    self.effects[action.node] = self.effects.get(action.node, 0) + 1
                case Reconcile():
                    record = self.model.records[action.node]
                    assert (record.status, record.attempt) == (Status.RUNNING, action.attempt)
                    assert (action.node, action.attempt, True) not in self.working, "two reconciliations at once"
                    self.working[action.node, action.attempt, True] = None
                case AskPlanner():
                    assert self.model.records[action.node].status is Status.PREPARING
                    self.planners[action.node, action.number] = action
                case ForgetPlanner():
                    self.planners.pop((action.node, action.number), None)
                case Abort():
                    if (action.node, action.attempt, action.reconciling) in self.working:
                        self.working[action.node, action.attempt, action.reconciling] = action.reason
                case SetTimer():
                    self.timers.append(action)
                case Judge():
                    self.pending.append(rule(action))
                case EndLeftovers():
                    self.pending.append(LeftoversEnded(nodes=action.nodes, ended={}, remaining={}))
        self.check()

    def check(self) -> None:
        state = self.drive.state
        active = sum(
            node.status in {Status.PREPARING, Status.QUEUED, Status.RUNNING}
            for node in state.nodes.values()
            if not node.recovering and node.key not in state.deferred
        )
        recovering = sum(node.recovering for node in state.nodes.values())
        assert state.active == active + recovering
        found_out = sum(node.reconciling for node in state.nodes.values())
        assert active <= max(state.jobs, 0) or recovering or found_out
        assert {key: node.record for key, node in state.nodes.items()} == self.model.records
        assert state.status is run_status(state.tally, started=state.started) is self.model.status
        assert sum(state.tally.values()) == len(state.nodes)
        self.finished |= {key for key, node in state.nodes.items() if node.status is Status.COMPLETED}

    def planner_says(self, ask: AskPlanner):
        if self.random.random() < 0.2:
            return Failed(code=self.random.choice(list(FailureCode)), message="m", todo="t", dispatched=False)
        if ask.preparation is None:
            return Prepared(descriptors={"n": 1}, max_input_bytes=None, max_seconds=self.random.choice([None, 9.0]))
        return Exact(input={"exact": True}, keys=())

    def outcome(self, reason: str | None, *, reconciles: bool):
        if reconciles and self.random.random() < 0.4:
            return Found(finding=self.random.choice(list(Finding)), message="m")
        if reason is not None and self.random.random() < 0.8:
            return Aborted(reason=reason, left=("x",) if self.random.random() < 0.05 else ())
        if self.random.random() < 0.75:
            return as_value({"n": self.random.randint(0, 9)})
        return Failed(code=self.random.choice(list(FailureCode)), message="m", todo="t")

    def step(self) -> bool:
        """Let one thing happen; False when nothing can."""
        choices = []
        choices += [("deliver", message) for message in self.pending]
        choices += [("admit", key) for key in self.asks]
        choices += [("return", key) for key in self.working]
        choices += [("plan", key) for key in self.planners]
        choices += [("timer", timer) for timer in self.timers if timer.timer.kind == "retry"]
        if not choices:
            return False
        if self.random.random() < 0.05:
            choices = [("timer", timer) for timer in self.timers] or choices
        kind, what = self.random.choice(choices)
        match kind:
            case "deliver":
                self.pending.remove(what)
                self.hear(self.drive.send(what))
            case "admit":
                del self.asks[what]
                self.hear(self.drive.send(Admitted(node=what[0], attempt=what[1], ticket=1, admitted_boot_ns=1)))
            case "return":
                outcome = self.outcome(self.working.pop(what), reconciles=what[2])
                message = Returned(node=what[0], attempt=what[1], outcome=outcome, release=None, reconciling=what[2])
                self.hear(self.drive.send(message))
            case "plan":
                answer = self.planner_says(self.planners.pop(what))
                self.hear(self.drive.send(PlannerAnswered(node=what[0], number=what[1], answer=answer)))
            case "timer":
                self.timers.remove(what)
                self.hear(self.drive.send(Due(timer=what.timer)))
        return True

    def interfere(self) -> None:
        state = self.drive.state
        match self.random.randint(0, 5):
            case 0:
                self.take_over()
            case 1:
                self.hear(self.drive.send(Drain(grace_s=1)))
            case 2:
                self.hear(self.drive.request(RequestKind.CANCEL, self.random.choice([None, *state.nodes])))
            case _:
                kind = self.random.choice(list(RequestKind))
                node = self.random.choice(list(state.nodes))
                plan = state.nodes[node].record.frozen_sha256
                if not state.left and kind is not RequestKind.CANCEL:
                    self.hear(self.drive.request(kind, node, plan_sha256=plan, data={"outcome": "failed"}))

    def answer_people(self) -> bool:
        """Let people answer everything that rests."""
        state = self.drive.state
        answered = False
        for key, node in list(state.nodes.items()):
            if node.status not in RESTING:
                continue
            kind = {
                Status.APPROVAL_REQUIRED: self.random.choice([RequestKind.APPROVE, RequestKind.DENY]),
                Status.AMBIGUOUS: RequestKind.SETTLE,
                Status.AMBIGUOUS_CODE: RequestKind.REPLAY,
                Status.BLOCKED: RequestKind.RETRY,
            }[node.status]
            plan = node.record.frozen_sha256
            self.hear(self.drive.request(kind, key, plan_sha256=plan, data={"outcome": "failed"}))
            answered = True
        return answered

    def play(self) -> None:
        for _ in range(self.random.randint(5, 60)):
            if self.random.random() < 0.1:
                self.interfere()
            elif not self.step() and self.drive.state.left:
                self.take_over()
        for _ in range(2000):
            if self.step():
                continue
            if self.drive.state.left:
                if self.drive.state.status in RUN_FINAL:
                    return
                self.take_over()
                if not self.step() and self.drive.state.status in RUN_RESTING:
                    self.drive = self.drive.crash(jobs=2, release_at_rest=False, ports=PORTS)
                    self.hear(self.drive.begin())
            if not self.step() and not self.answer_people() and self.drive.state.status in RUN_FINAL:
                return
        raise AssertionError(f"the run never ended: {self.drive.statuses()}")


@pytest.mark.parametrize("block", range(8))
def test_every_run_ends_whatever_happens(block):
    for seed in range(block * SEEDS // 8, (block + 1) * SEEDS // 8):
        world = World(seed)
        try:
            world.play()
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        assert all(node.status in FINAL for node in world.drive.state.nodes.values()), seed
        for transaction in world.model.transactions:
            assert transaction.fence.generation <= world.model.generation
