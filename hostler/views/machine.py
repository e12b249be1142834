"""The machine as lines for people: what is in use, who has it, who waits and why."""

import os
import pwd
from collections.abc import Iterator, Mapping, Sequence

from hostler.views.terminal import duration, harmless
from hostres.affinity import CPU, machine_cpus
from hostres.claims import describe
from hostres.rows import REVOKED, WAITING, Row, Top

INDENT = " " * 7


def machine_lines(top: Top) -> list[str]:
    """Return the machine as lines; none of them can command a terminal."""
    wanted = {resource for row in top.tickets if row.state != REVOKED for resource in row.claims}
    busy = [name for name in top.capacity if top.used.get(name) or name in wanted]
    busy += sorted(name for name, used in top.used.items() if used and name not in top.capacity)
    idle = [f"{name} {units}" for name, units in top.capacity.items() if name not in busy]
    width = max((len(name) for name in busy), default=0)
    lines = [f"{'RESOURCE':{max(width, 8)}}  {'USED':>8}  {'CAPACITY':>8}"] if busy else []
    lines += [f"{name:{max(width, 8)}}  {top.used.get(name, 0):>8}  {top.capacity.get(name, 0):>8}" for name in busy]
    if idle:
        lines.append(f"idle: {', '.join(idle)}")
    lines.append("")
    if not top.tickets:
        lines.append("nothing is admitted and nothing waits")
    for row in top.tickets:
        lines.extend(_row(row, top.capacity))
    if top.turnaround_s is not None:
        lines += ["", f"a turn takes {duration(top.turnaround_s)} on average, from asking to release"]
    return [harmless(line.rstrip()) for line in lines]


def _row(row: Row, capacity: Mapping[str, int]) -> Iterator[str]:
    name = f" ({row.name})" if row.name else ""
    inside = f", inside ticket {row.inside}" if row.inside is not None else ""
    user = "" if row.owner == os.geteuid() else f" of {user_name(row.owner)}"
    state = f"{row.state} (stopped)" if row.stopped else row.state
    yield (
        f"{row.ticket:>6} {state:8} {describe(row.claims)}{name}{inside}, for {duration(row.for_s)},"
        f" asked by pid {row.pid}{user}"
    )
    if row.cpus is not None:
        yield f"{INDENT}{cpus_text(row.cpus, capacity)}"
    if row.state != WAITING:
        held = "still held open" if row.state == REVOKED else "held"
        for process in row.processes:
            yield f"{INDENT}{held} by pid {process.pid}: {process.command}"
    if row.patient:
        yield f"{INDENT}has waited for so long that what it needs is kept for it"
    for why in row.blocked_by:
        yield f"{INDENT}waits for {why}"


def cpus_text(cpus: Sequence[int], capacity: Mapping[str, int]) -> str:
    """Return which CPUs a ticket has of its own, or why it has none."""
    if cpus:
        return f"on {'CPU' if len(cpus) == 1 else 'CPUs'} {', '.join(map(str, cpus))}"
    if capacity.get(CPU, 0) > machine_cpus():
        return f"on any CPU: the capacity of {capacity[CPU]} is more than the machine's {machine_cpus()}"
    return "on any CPU: too few of those it may use were free of others'"


def user_name(number: int) -> str:
    """Return how a user is called."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user id {number}"
