"""What is around a simulated host: the machine with its capacity, and the work that attempts do in the world."""

from collections import Counter
from dataclasses import dataclass, field

from actors.actions import AskMachine
from store.plans import PlannedNode
from store.policy import Resume

RECOVERABLE = (Resume.VERIFIED_RECEIPT, Resume.RECOVERABLE_TRANSACTION)
Key = tuple[str, int]


class Machine:
    """Admits claims whole, never above its capacity."""

    def __init__(self, capacity: int = 2) -> None:
        self.capacity = capacity
        self.asks: dict[Key, AskMachine] = {}
        self.held: dict[int, int] = {}
        self.leases = 0

    def fitting(self) -> list[Key]:
        """Return the asks that could be admitted now."""
        free = self.capacity - sum(self.held.values())
        return [key for key, ask in self.asks.items() if sum(ask.claims.values()) <= free]

    def admit(self, key: Key) -> int:
        """Admit an ask and return its lease."""
        ask = self.asks.pop(key)
        self.leases += 1
        self.held[self.leases] = sum(ask.claims.values())
        assert sum(self.held.values()) <= self.capacity
        return self.leases

    def release(self, lease: int | None) -> None:
        """Take a lease back."""
        if lease is not None:
            del self.held[lease]


@dataclass(eq=False)
class Work:
    """What one attempt, or its reconciliation, does.

    Attributes:
        lease: What it holds on the machine.
        reason: Why it was asked to stop.
        gate: Whether it asked to be let through to its outside write, and the answer: allowed or refused.
        did: Whether it has had its effect.
        orphan: Whether its host is gone, or has given up on it.
        hangs: Whether it does not go on: until it is asked to stop (`idle`), or whatever is asked (`deaf`).

    """

    planned: PlannedNode
    attempt: int
    reconciling: bool
    lease: int | None
    reason: str | None = None
    gate: str | None = None
    did: bool = False
    orphan: bool = False
    hangs: str | None = None

    @property
    def node(self) -> str:
        """The node's key."""
        return self.planned.key

    @property
    def resume(self) -> Resume:
        """The node's resume class."""
        return self.planned.policy.resume

    @property
    def gated(self) -> bool:
        """Whether its effect comes only after its gate."""
        return self.resume in RECOVERABLE

    def stuck(self) -> bool:
        """Say whether it does nothing by itself now."""
        return self.hangs == "deaf" or (self.hangs == "idle" and self.reason is None)

    def may_act(self) -> bool:
        """Say whether it could have its effect now."""
        return not self.did and not self.reconciling and not self.stuck() and (not self.gated or self.gate == "allowed")


@dataclass
class Effects:
    """What has happened in the world, by node.

    Attributes:
        happened: How often.
        leave: How often trusted code may run: once, and once more each time that a person says so.

    """

    happened: Counter[str] = field(default_factory=Counter)
    leave: Counter[str] = field(default_factory=Counter)

    def act(self, work: Work) -> None:
        """Let an attempt have its effect; what cannot be repeated must never happen twice."""
        work.did = True
        self.happened[work.node] += 1
        if work.resume is Resume.EXPLICIT_CODE_REPLAY:
            assert self.happened[work.node] <= 1 + self.leave[work.node], f"{work.node} ran again without a person"
        elif work.resume is not Resume.DETERMINISTIC:
            assert self.happened[work.node] == 1, f"the effect of {work.node} happened twice"
