"""What does the work in a world of chance: executors that fail, hang, die and lie, planners, and who moves a branch.

What executors say may be wrong in every way that can be told from the truth: only who denies having reached the world,
and did reach it, could not be found out by anybody.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial

from actors.actions import Abort, AskPlanner, EndLeftovers, Integrate, TakePulse
from actors.messages import (
    IntegrationEnded,
    LeftoversEnded,
    LogCut,
    PlannerAnswered,
    PublicationWanted,
    PulseTaken,
    Returned,
    SchedulingMessage,
    SpendingReported,
)
from actors.outcomes import Aborted, Exact, Failed, Finding, Found, Integrated, NotIntegrated, Outcome, Prepared, Value
from actors.scheduling.operators import as_value
from store.amounts import Usage
from store.plans import PlannedNode
from store.policy import FailureCode, Resume
from tests.simulation.graphs import APPROVAL
from tests.simulation.surroundings import RECOVERABLE, Effects, Machine, Work


class Executors:
    """All that runs for the run, of this host and of dead ones.

    Args:
        chance: Decides how everything goes.
        planned: The nodes, by key.
        machine: Takes back what an attempt held.
        tell: Takes what the host is told.

    Attributes:
        works: What runs.
        moved: The attempts whose branch was moved.

    """

    def __init__(
        self,
        chance: random.Random,
        planned: Mapping[str, PlannedNode],
        machine: Machine,
        tell: Callable[[SchedulingMessage], None],
    ) -> None:
        self.random = chance
        self.planned = planned
        self.machine = machine
        self.tell = tell
        self.effects = Effects()
        self.works: list[Work] = []
        self.moved: set[tuple[str, int]] = set()
        self.planners: dict[tuple[str, int], AskPlanner] = {}
        self.integrations: list[Integrate] = []

    def lose_host(self) -> None:
        """Go on without the host that has died: what is asked for by it alone is forgotten."""
        for work in self.works:
            work.orphan = True
        for action in self.integrations:
            if action.begin and self.random.random() < 0.5:  # killed after the move, before it could tell
                self.moved.add((action.node, action.attempt))
        self.planners.clear()
        self.integrations.clear()

    def begin(self, node: str, attempt: int, lease: int | None, *, reconciling: bool) -> None:
        """Start an attempt or its reconciliation."""
        hangs = self.random.choices([None, "idle", "deaf"], [90, 6, 4])[0]
        self.works.append(Work(self.planned[node], attempt, reconciling, lease, hangs=hangs))

    def stop(self, action: Abort) -> None:
        """Ask an attempt or its reconciliation to stop."""
        aborted = (action.node, action.attempt, action.reconciling)
        for work in self.works:
            if (work.node, work.attempt, work.reconciling) == aborted and not work.orphan:
                work.reason = action.reason

    def happenings(self) -> list[Callable[[], None]]:
        """Return what could happen next."""
        happenings: list[Callable[[], None]] = [partial(self.plan, key) for key in self.planners]
        happenings += [partial(self.integrate, action) for action in self.integrations]
        happenings += [partial(self.work, work) for work in self.works if not work.orphan and not work.stuck()]
        happenings += [partial(self.act, work) for work in self.works if work.orphan and work.may_act()]
        return happenings

    def awakenings(self) -> list[Callable[[], None]]:
        """Return what could happen if work that hangs were to go on."""
        return [partial(self.wake, work) for work in self.works if work.hangs]

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

    def end_leftovers(self, asked: EndLeftovers) -> LeftoversEnded:
        """End what dead hosts left of these nodes; now and then something cannot be ended."""
        remaining = {}
        for work in [work for work in self.works if work.orphan and work.node in asked.nodes]:
            if self.random.random() < 0.03:
                remaining[work.node] = "it does not end"
            else:
                self.remove(work)
        return LeftoversEnded(nodes=asked.nodes, ended={}, remaining=remaining)

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
        self.tell(PlannerAnswered(node=key[0], number=key[1], answer=answer))

    def integrate(self, action: Integrate) -> None:
        """Move the branch, once; or find it in the way, or that whoever may not begin has nothing to finish."""
        self.integrations.remove(action)
        done = (action.node, action.attempt) in self.moved
        answer: Integrated | NotIntegrated = NotIntegrated(reason="conflict", message="m", todo="t", paths=("x",))
        if done or (action.begin and self.random.random() < 0.7):
            self.moved.add((action.node, action.attempt))
            answer = Integrated(commit="c" * 40)
        self.tell(IntegrationEnded(node=action.node, attempt=action.attempt, answer=answer))

    def work(self, work: Work) -> None:
        """Let an attempt go on: to its gate, to its effect, or to its end."""
        if work.gated and not work.reconciling and work.gate is None and self.random.random() < 0.7:
            work.gate = "asked"
            self.tell(PublicationWanted(node=work.node, attempt=work.attempt, reply_to=work))  # type: ignore[arg-type]
        elif work.may_act() and self.random.random() < 0.6:
            self.act(work)
        elif self.random.random() < 0.05:
            usage = Usage(cost=Decimal("0.01"))
            said = SpendingReported(node=work.node, attempt=work.attempt, usage=usage, reply_to=work)  # type: ignore[arg-type]
            self.tell(said)
        elif self.random.random() < 0.02:
            self.tell(LogCut(node=work.node, attempt=work.attempt, stream="stdout", missing=1, why="full"))
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
        self.tell(
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

    def wake(self, work: Work) -> None:
        """Let work that hung go on, perhaps long after its host has given up on it."""
        work.hangs = None
