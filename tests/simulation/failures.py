"""Which attempts have failed in a world of chance: so often is one tried again by itself, whoever finds out what it did."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from actors.actions import Dispatch
from actors.messages import Returned, SchedulingMessage
from actors.outcomes import Aborted, Failed
from store.contracts import EventKind, RequestKind
from store.lifecycle import Status
from store.transactions import Transaction

if TYPE_CHECKING:
    from tests.simulation.world import World

ASKS_FOR_A_TRY = {RequestKind.RETRY, RequestKind.CORRECT, RequestKind.RECOVER, RequestKind.REPLAY, RequestKind.SETTLE}
"""What a person asks after which failures are counted anew."""


class Failures:
    """The attempts that have durably failed, and after which of them a person has asked for another try."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._failed: set[tuple[str, int]] = set()
        self._asked_at: dict[str, int] = {}
        self._failing: dict[int, set[tuple[str, int]]] = {}

    def lose_host(self) -> None:
        """Forget what was not durable yet."""
        self._failing.clear()

    def among(self, messages: Iterable[SchedulingMessage]) -> set[tuple[str, int]]:
        """Return the attempts of which these messages say that they failed, and that count."""
        return {(one.node, one.attempt) for one in messages if isinstance(one, Returned) and self._is_failure(one)}

    def hold(self, transaction: Transaction, failing: set[tuple[str, int]]) -> None:
        """Take in what has failed once a transaction is durable."""
        self._failing[id(transaction)] = failing

    def note(self, transaction: Transaction) -> None:
        """Take in what a transaction has made durable."""
        self._failed |= self._failing.pop(id(transaction))
        for event in transaction.events:
            if event.kind is EventKind.REQUEST and event.node is not None and event.data["request"] in ASKS_FOR_A_TRY:
                self._asked_at[event.node] = self._world.model.records[event.node].attempt

    def check(self, action: Dispatch) -> None:
        """As often as its policy says, an attempt that fails is made again by itself."""
        asked_at = self._asked_at.get(action.node, 0)
        failures = [
            attempt for key, attempt in self._failed if key == action.node and asked_at < attempt < action.attempt
        ]
        assert len(failures) < action.plan.policy.retry.attempts, "it is tried again for ever"

    def _is_failure(self, message: Returned) -> bool:
        """Say whether an attempt that counts has failed, which no drain and no cancel is."""
        state = self._world.state
        node = state.nodes[message.node]
        counts = (node.status, node.record.attempt) == (Status.RUNNING, message.attempt)
        if not counts or state.left or message.reconciling or node.recovering or node.reconciling:
            return False
        outcome = message.outcome
        failed = isinstance(outcome, Failed) or (
            isinstance(outcome, Aborted) and outcome.reason in {"timeout", "stall"}
        )
        return failed and node.key not in state.deferred
