"""When each step of several runs waited and ran, from their events, and whether the machine's limits held.

Times are boot_ns of the events: one clock for every process of the machine. A step holds its claims from
`admitted_boot_ns` to `released_boot_ns`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BAR = 36
SECOND = 1_000_000_000
ENDED = frozenset({"completed", "failed", "cancelled", "incompatible"})

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One attempt of a node.

    Attributes:
        run: What the run is called here.
        key: The node.
        queued_ns: When it began to wait for the machine.
        admitted_ns: When the machine let it.
        released_ns: When the machine had its units back; None if no event tells.
        claims: Resource → units.

    """

    run: str
    key: str
    queued_ns: int
    admitted_ns: int
    released_ns: int | None
    claims: Mapping[str, int]


def steps_of(run: str, events: Iterable[Event]) -> list[Step]:
    """Return the steps that ran, in the order in which they were admitted."""
    queued: dict[str, int] = {}
    running: dict[tuple[str, int], Event] = {}
    released: dict[tuple[str, int], int] = {}
    ended: dict[tuple[str, int], int] = {}
    began: dict[tuple[str, int], int] = {}
    for event in events:
        node, data = event.get("node"), event["data"]
        attempt = (node, event.get("attempt") or 0)
        if event["kind"] in ("node-status", "node-running"):
            passed = {data.get("status"), *data.get("via", ())}
            if "queued" in passed:
                queued[node] = event["boot_ns"]
            if event["kind"] == "node-running":
                running[attempt] = event
                began[attempt] = queued.pop(node, event["boot_ns"])
            if data.get("status") in ENDED:
                ended[attempt] = event["boot_ns"]
        elif event["kind"] == "lease-released":
            released[attempt] = data["released_boot_ns"]
    found = []
    for attempt, event in running.items():
        claims = event["data"].get("claims") or {}
        admitted_ns = event["data"].get("admitted_boot_ns") or event["boot_ns"]
        found.append(
            Step(
                run=run,
                key=attempt[0],
                queued_ns=min(began[attempt], admitted_ns),
                admitted_ns=admitted_ns,
                released_ns=released.get(attempt) if claims else ended.get(attempt),
                claims=claims,
            )
        )
    return sorted(found, key=lambda step: step.admitted_ns)


def most_at_once(steps: Iterable[Step]) -> dict[str, int]:
    """Return for each resource the most units that were held at any moment, by all steps together."""
    changes = []
    for step in steps:
        for resource, units in step.claims.items():
            changes.append((step.admitted_ns, units, resource))
            if step.released_ns is not None:
                changes.append((step.released_ns, -units, resource))
    held: dict[str, int] = {}
    most: dict[str, int] = {}
    for _, units, resource in sorted(changes):  # at the same nanosecond a release comes before an admission
        held[resource] = held.get(resource, 0) + units
        most[resource] = max(most.get(resource, 0), held[resource])
    return dict(sorted(most.items()))


def problems(steps: Sequence[Step], capacity: Mapping[str, int]) -> list[str]:
    """Return what does not hold: units beyond the capacity, a claim whose end no event tells."""
    found = [
        f"no event tells when {step.run}/{step.key} gave its units back"
        for step in steps
        if step.claims and step.released_ns is None
    ]
    for resource, most in most_at_once(steps).items():
        allowed = capacity.get(resource, 0)
        if most > allowed:
            found.append(f"{most} {resource} were held at once where the machine has {allowed}")
    return found


def whisper_sentence(steps: Sequence[Step], capacity: Mapping[str, int]) -> str:
    """Say how many whispers ran at once."""
    most = most_at_once(steps).get("whisper", 0)
    if most == 0:
        return "no step needed whisper"
    if most == 1:
        return "whisper never ran twice at once"
    return f"{most} whispers ran at once, where this machine allows {capacity.get('whisper', 0)}"


def table(steps: Sequence[Step], capacity: Mapping[str, int]) -> list[str]:
    """Return the table, one line a step; steps of one name stand together, in the order in which they first ran."""
    if not steps:
        return ["no step ran"]
    zero = min(step.queued_ns for step in steps)
    end = max(step.released_ns or step.admitted_ns for step in steps)
    first: dict[str, int] = {}
    for step in steps:
        first[step.key] = min(first.get(step.key, step.admitted_ns), step.admitted_ns)
    width = max(len("step"), *(len(f"{step.run}/{step.key}") for step in steps))
    scale = f"0 s{_seconds(end - zero):>{BAR - 3}}"
    lines = [f"{'step':{width}}   waited from    for   ran from    for   {scale}"]
    for step in sorted(steps, key=lambda each: (first[each.key], each.key, each.admitted_ns)):
        stop = end if step.released_ns is None else step.released_ns
        bar = _bar(step.queued_ns - zero, step.admitted_ns - zero, stop - zero, end - zero)
        lines.append(
            f"{f'{step.run}/{step.key}':{width}}   {_seconds(step.queued_ns - zero):>11} "
            f"{_seconds(step.admitted_ns - step.queued_ns):>6}   {_seconds(step.admitted_ns - zero):>8} "
            f"{_seconds(stop - step.admitted_ns):>6}   {bar}"
        )
    held = ", ".join(f"{name} {most} of {capacity.get(name, 0)}" for name, most in most_at_once(steps).items())
    return [*lines, "", f". waits for the machine   # runs   most units at once: {held}"]


def _bar(queued: int, admitted: int, stop: int, whole: int) -> str:
    def column(time: int) -> int:
        return min(BAR - 1, time * BAR // max(1, whole))

    waits, runs, ends = column(queued), column(admitted), max(column(stop), column(admitted) + 1)
    return (" " * waits + "." * (runs - waits) + "#" * (ends - runs)).rstrip()


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / SECOND:.1f} s"
