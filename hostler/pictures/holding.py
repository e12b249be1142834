"""How much of each resource a run held when. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """What one node held of one resource.

    Attributes:
        units: How much.
        start_s: Since when, seconds since the run was created.
        end_s: Until when; later than that.
        known: False where only the processes of a dead host may have held it.

    """

    node: str
    resource: str
    units: int
    start_s: float
    end_s: float
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A stretch of time in which a run held the same.

    Attributes:
        units: What it held.
        perhaps: What the processes of a dead host may have held besides.
        nodes: Who held it, sorted.

    """

    start_s: float
    end_s: float
    units: int
    perhaps: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """One resource over time.

    Attributes:
        capacity: Units that the machine has now; None if that is not known.
        steps: In order, only where something was held, neighbours different.
        most: The largest sum of what was held and may have been.

    """

    resource: str
    capacity: int | None
    steps: tuple[Step, ...]
    most: int


def bands(holds: Iterable[Hold], capacity: Mapping[str, int]) -> tuple[Band, ...]:
    """Sum up what was held, resource by resource, in the order of their names.

    Args:
        holds: In any order.
        capacity: Units of each resource that the machine has.

    """
    by_resource: dict[str, list[Hold]] = {}
    for hold in holds:
        by_resource.setdefault(hold.resource, []).append(hold)
    return tuple(
        Band(
            resource=resource,
            capacity=capacity.get(resource),
            steps=(found := steps(held)),
            most=max((step.units + step.perhaps for step in found), default=0),
        )
        for resource, held in sorted(by_resource.items())
    )


def steps(holds: Iterable[Hold]) -> tuple[Step, ...]:
    """Sum up what was held of one resource, in O(n log n) but for the names of those who hold at the same time."""
    changes: dict[float, list[tuple[Hold, bool]]] = {}
    for hold in holds:
        changes.setdefault(hold.start_s, []).append((hold, True))
        changes.setdefault(hold.end_s, []).append((hold, False))
    held: list[Hold] = []
    found: list[Step] = []
    since_s = 0.0
    for at_s in sorted(changes):
        if held:
            step = Step(
                start_s=since_s,
                end_s=at_s,
                units=sum(hold.units for hold in held if hold.known),
                perhaps=sum(hold.units for hold in held if not hold.known),
                nodes=tuple(sorted({hold.node for hold in held})),
            )
            found.append(step)
        for hold, begins in changes[at_s]:
            if begins:
                held.append(hold)
            else:
                held.remove(hold)
        since_s = at_s
    return tuple(found)
