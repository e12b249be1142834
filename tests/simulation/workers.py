"""Workers of other processes in a world of chance: they bring results, give work back, fall silent and come too late."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from store.contracts import RequestKind
from store.lifecycle import Status
from store.transactions import Transaction

if TYPE_CHECKING:
    from tests.simulation.world import World


class Workers:
    """Everybody outside who works on the run.

    Args:
        world: Where they ask for work.

    Attributes:
        held: The attempt that somebody has, by node.
        lost: What was taken from somebody.
        silent: Whose worker says nothing any more.

    """

    def __init__(self, world: "World") -> None:
        self.world = world
        self.random = world.random
        self.held: dict[str, int] = {}
        self.lost: list[tuple[str, int]] = []
        self.silent: set[tuple[str, int]] = set()

    def happenings(self) -> list[Callable[[], None]]:
        """Return what could happen next."""
        state = self.world.state
        if state.left:
            return []
        happenings: list[Callable[[], None]] = [partial(self.act, node, attempt) for node, attempt in self.held.items()]
        held_back = state.shares.lanes._lane_of if state.shares is not None else {}
        if any(
            node.family.is_external and node.status is Status.READY and node.key not in held_back
            for node in state.nodes.values()
        ):
            happenings.append(self.ask)
        return happenings

    def note(self, transaction: Transaction) -> None:
        """Take in what a durable transaction says of the workers: each has one attempt, and nobody has another's."""
        for key in transaction.unleased:
            self.lost.append((key, self.held.pop(key)))
        for lease in transaction.leases:
            assert lease.node not in self.held, "two workers have one piece of work"
            assert lease.node not in self.world.finished, "completed work is given out again"
            self.held[lease.node] = lease.attempt

    def ask(self) -> None:
        """Ask for work, as a worker that may have some already."""
        self.world.ask(RequestKind.LEASE_WORK, None, worker=f"w{self.random.randint(0, 3)}", seconds=60.0)

    def act(self, node: str, attempt: int) -> None:
        """Bring a result, give the work back, say nothing any more, or come too late."""
        match self.random.randint(0, 9):
            case 0:
                self.world.ask(RequestKind.GIVE_BACK_WORK, node, attempt=attempt)
            case 1:
                self.silent.add((node, attempt))
            case 2 if self.lost:
                late, superseded = self.random.choice(self.lost)
                self.world.ask(RequestKind.SUBMIT_WORK, late, attempt=superseded, result={"status": "success"})
            case _ if (node, attempt) not in self.silent:
                status = self.random.choice(["success", "success", "success", "retry", "failed", "blocked"])
                self.world.ask(RequestKind.SUBMIT_WORK, node, attempt=attempt, result={"status": status})
            case _:
                due = [timer for timer in self.world.timers if (timer.timer.kind, timer.timer.node) == ("lease", node)]
                if due:
                    self.world.fire(due[0])
