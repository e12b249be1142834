"""People in a world of chance: they kill the host, ask for what makes no sense, and answer what rests."""

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from actors.actions import TimerName
from actors.messages import Drain, Due
from actors.scheduling.spending import retry_misfit, shortages
from store.contracts import RequestKind
from store.evidence import awaits_approval, is_judged_again
from store.lifecycle import RESTING, Status
from store.plans import PlannedNode
from tests.actors.support import HUMAN
from tests.simulation.graphs import OWNERS

if TYPE_CHECKING:
    from tests.simulation.world import World

AGENT = "agent:night"
UNKNOWN = {Status.AMBIGUOUS, Status.AMBIGUOUS_CODE}


def may_recover(planned: Mapping[str, PlannedNode], key: str, principal: str) -> bool:
    """Say whether *principal* is a person, or owns the parent of the node."""
    terms = planned[key].terms
    above = planned[terms.parent].terms if terms is not None and terms.parent is not None else None
    owner = above.owner.id if above is not None and above.owner is not None else None
    return principal == HUMAN or principal == f"agent:{owner}"


class People:
    """Everybody who has a say in the run.

    Args:
        world: Where they ask.

    """

    def __init__(self, world: "World") -> None:
        self.world = world
        self.random = world.random
        self.executors = world.executors

    def interfere(self) -> None:
        """Kill the host, stop it, or ask something of the run that may make no sense."""
        match self.random.randint(0, 8):
            case 0 | 1:
                self.world.take_over()
            case 2:
                self.world.send(Drain(grace_s=1))
            case 7:
                self.world.full = not self.world.full
                name = TimerName(kind="other", node=self.random.choice(list(self.world.state.nodes)))
                self.world.send(Due(timer=name))
            case 3:
                self.world.ask(RequestKind.CANCEL, self.random.choice([None, *self.world.state.nodes]))
            case 4:
                running = [key for key, node in self.world.state.nodes.items() if node.status is Status.RUNNING]
                key = self.random.choice(running or list(self.world.state.nodes))
                # trusted code that had just failed by itself is made again by their word
                self.executors.effects.leave[key] += 1
                self.world.ask(RequestKind.RECOVER, key)
            case _:
                self.answer(self.random.choice(list(self.world.state.nodes)))

    def answer_all(self) -> bool:
        """Let people answer everything that rests; they look first, and tell the truth."""
        resting = [key for key, node in self.world.state.nodes.items() if node.status in RESTING]
        return bool([key for key in resting if self.answer(key)]) or self.raise_budgets()

    def raise_budgets(self) -> bool:
        """Let a person add what the nodes that no budget lets go need."""
        short = {misfit.holder: misfit for _, misfit in shortages(self.world.state)}
        for holder, misfit in short.items():
            self.world.ask(
                RequestKind.BUDGET,
                holder,
                add={misfit.counter: misfit.missing if Decimal(misfit.missing) % 1 else int(misfit.missing)},
            )
        return bool(short)

    def answer(self, key: str) -> bool:
        world, effects = self.world, self.executors.effects
        node = world.state.nodes[key]
        status = node.status
        if status in UNKNOWN:
            for work in [work for work in self.executors.works if work.node == key]:
                if not work.orphan:
                    self.executors.end(work)  # whoever says what an attempt did has ended what is left of it
                if work in self.executors.works:
                    self.executors.remove(work)
        happened = effects.happened[key] > 0
        match status:
            case Status.APPROVAL_REQUIRED:
                if self.random.random() < 0.5:
                    self.give_receipt(key)
                else:
                    world.ask(self.random.choice([RequestKind.APPROVE, RequestKind.APPROVE, RequestKind.DENY]), key)
            case Status.AMBIGUOUS:
                outcome = "completed" if happened else self.random.choice(["failed", "retry"])
                world.ask(RequestKind.SETTLE, key, outcome=outcome, value={"settled": True})
            case Status.AMBIGUOUS_CODE:
                effects.leave[key] += 1
                world.ask(RequestKind.REPLAY, key)
            case Status.BLOCKED if awaits_approval(node.record):
                world.ask(self.random.choice([RequestKind.APPROVE, RequestKind.APPROVE, RequestKind.DENY]), key)
            case Status.BLOCKED if is_judged_again(node.record) and self.random.random() < 0.8:
                effects.leave[key] += 1
                effects.happened[key] = 0  # what it did is given up with its result
                world.ask(RequestKind.RETRY, key, anew=True)
            case Status.BLOCKED | Status.FAILED:
                principal = self.random.choice([HUMAN, HUMAN, *(f"agent:{owner}" for owner in OWNERS)])
                misfit = retry_misfit(world.state, node)
                if misfit is not None:
                    world.ask(RequestKind.BUDGET, misfit.holder, add={"retries": 1})
                recovers = may_recover(world.planned, key, principal)
                effects.leave[key] += recovers
                given_up = node.record.output_sha256 is not None and recovers
                if self.random.random() < 0.6:
                    if given_up and status is Status.FAILED:  # a result that a person did not approve
                        effects.happened[key] = 0
                    world.ask(RequestKind.RETRY, key, principal)
                else:
                    number = node.record.revision - (self.random.random() < 0.1)
                    if given_up:
                        effects.happened[key] = 0
                    world.ask(RequestKind.CORRECT, key, principal, input={"n": world.requests}, revision=number)
            case _:
                return False
        return True

    def give_receipt(self, key: str) -> None:
        """Let a person give leave, and an agent use it, once or more often, unless it was taken back before."""
        name = f"receipt-{self.world.requests}"
        self.world.ask(RequestKind.RECEIPT, key, receipt=name, subject=AGENT, action="approve", lasts_ms=3_600_000)
        while self.world.inbox and self.random.random() < 0.9:  # who uses it has mostly waited for it
            self.world.deliver(self.world.inbox[0])
        if self.random.random() < 0.2:
            self.world.ask(RequestKind.REVOKE, None, receipt=name)
        for _ in range(self.random.randint(1, 3)):
            self.world.ask(RequestKind.APPROVE, key, principal=AGENT, receipt=name)
