"""What has been cancelled in a world of chance: nothing of it begins any more, unless a person asks for just that."""

from typing import TYPE_CHECKING

from actors.actions import Dispatch
from store.contracts import EventKind, RequestKind
from store.lifecycle import FINAL
from store.transactions import Transaction

if TYPE_CHECKING:
    from tests.simulation.world import World

ASKS_FOR_IT = {RequestKind.RETRY, RequestKind.CORRECT, RequestKind.REPLAY}
"""What a person asks who wants a node to run though it was cancelled; whoever settles one says what it did."""


class Cancels:
    """The nodes that have durably been cancelled, at once or as soon as it is known what they did."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._nodes: set[str] = set()

    def note(self, transaction: Transaction) -> None:
        """Take in what a transaction has made durable."""
        for event in transaction.events:
            if event.kind is not EventKind.REQUEST:
                continue
            if event.data["request"] == RequestKind.CANCEL:
                self._nodes |= self._reached(event.node)
            elif event.data["request"] in ASKS_FOR_IT:
                self._nodes.discard(str(event.node))
        for lease in transaction.leases:
            assert lease.node not in self._nodes - {*transaction.unleased}, "it was cancelled, and a worker has it"

    def check(self, action: Dispatch) -> None:
        """No attempt begins of what was cancelled."""
        assert action.node not in self._nodes, "it was cancelled, and runs again"

    def _reached(self, key: str | None) -> set[str]:
        """Return what a cancel reaches: a run, or a node and all that depends on it, but for what has ended."""
        state = self._world.state
        reached = state.nodes.values() if key is None else [state.nodes[key], *state.dependents_of(state.nodes[key])]
        return {node.key for node in reached if self._world.model.records[node.key].status not in FINAL}
