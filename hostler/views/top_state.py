"""The live screen of the machine as values: what is shown, how one looks at it, and what a key makes of that. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from hostres.claims import describe
from hostres.rows import ADMITTED, REVOKED, WAITING, Row, Top
from hostres.usage import Member

RUN_PREFIX: Final = "run_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that works under a ticket.

    Attributes:
        member: Its place in the tree, and what it uses.
        command: Its command line.

    """

    member: Member
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine at one moment, as the screen shows it.

    Attributes:
        top: Capacities and tickets.
        cpus: How many CPUs there are.
        load: The load averages of 1, 5 and 15 minutes.
        memory_mb: Memory in use and in all, mebibytes; None if the system does not say.
        workers: Ticket → the processes that work under it, parents first.
        user: The number of the user who looks.

    """

    top: Top
    cpus: int
    load: tuple[float, float, float]
    memory_mb: tuple[int, int] | None = None
    workers: Mapping[int, Sequence[Worker]] = field(default_factory=dict)
    user: int = 0

    def cpu_of(self, row: Row) -> float | None:
        """Return the CPUs that what works under a ticket alone keeps busy; None if nothing does."""
        own = [worker.member.cpu for worker in self.workers.get(row.ticket, ()) if not worker.member.shared]
        return sum(own) if own else None

    def memory_of(self, row: Row) -> int | None:
        """Return the bytes of memory in use by what works under a ticket alone; None if nothing does."""
        own = [worker.member.process for worker in self.workers.get(row.ticket, ()) if not worker.member.shared]
        return sum(process.resident_bytes for process in own) if own else None


class Sort(StrEnum):
    """In which order the holders stand; waiters stand in the order in which they go."""

    TICKET = "ticket"
    AGE = "age"
    CPU = "cpu"
    MEMORY = "memory"


class Mode(StrEnum):
    """What the screen is about."""

    LIST = "list"
    HELP = "help"
    CONFIRM = "confirm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How somebody looks at the machine.

    Attributes:
        selected: The ticket that the cursor is on.
        processes: Whether the processes of each ticket are shown.
        said: What the last key came to, one line.

    """

    sort: Sort = Sort.TICKET
    selected: int | None = None
    processes: bool = True
    mode: Mode = Mode.LIST
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quit:
    """The person has seen enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeBack:
    """The person has confirmed that a ticket of theirs is to be taken back."""

    row: Row


Order = Quit | TakeBack | None


def ordered(machine: Machine, sort: Sort) -> list[Row]:
    """Return the tickets as they stand on the screen: holders, then waiters as they go, then those taken back."""

    def amount(row: Row) -> float:
        match sort:
            case Sort.AGE:
                return row.for_s
            case Sort.CPU:
                return machine.cpu_of(row) or 0.0
            case Sort.MEMORY:
                return machine.memory_of(row) or 0
            case _:
                return 0.0

    rows = machine.top.tickets
    holders = sorted((row for row in rows if row.state == ADMITTED), key=lambda row: (-amount(row), row.ticket))
    waiters = sorted((row for row in rows if row.state == WAITING), key=lambda row: row.turn)
    return [*holders, *waiters, *(row for row in rows if row.state == REVOKED)]


SORTS: Final[Mapping[str, Sort]] = {"N": Sort.TICKET, "T": Sort.AGE, "P": Sort.CPU, "M": Sort.MEMORY}
STEPS: Final[Mapping[str, int]] = {"up": -1, "k": -1, "down": 1, "j": 1, "page-up": -10, "page-down": 10}


def pressed(look: Look, key: str, machine: Machine) -> tuple[Look, Order]:
    """Return how somebody looks after a key, and what they want done.

    Args:
        look: How they looked before.
        key: A letter, or the name of a key as `keys_of` gives it.
        machine: What they saw.

    """
    look = replace(look, said="")
    if look.mode is Mode.CONFIRM:
        return _answered(look, key, machine)
    if key in ("q", "Q"):
        return look, Quit()
    if look.mode is Mode.HELP:
        return replace(look, mode=Mode.LIST), None
    return _looked(look, key, machine), None


def _looked(look: Look, key: str, machine: Machine) -> Look:
    rows = ordered(machine, look.sort)
    match key:
        case "?" | "h":
            return replace(look, mode=Mode.HELP)
        case "s":
            sorts = list(Sort)
            return replace(look, sort=sorts[(sorts.index(look.sort) + 1) % len(sorts)])
        case "t":
            return replace(look, processes=not look.processes)
        case "escape":
            return replace(look, selected=None)
        case "c":
            return _asked(look, rows, machine)
        case _ if key in SORTS:
            return replace(look, sort=SORTS[key])
        case _ if key in STEPS or key in ("home", "end"):
            return replace(look, selected=_moved(look.selected, [row.ticket for row in rows], key))
        case _:
            return look


def selected(look: Look, machine: Machine) -> Row | None:
    """Return the ticket that the cursor is on, while it is there."""
    return next((row for row in machine.top.tickets if row.ticket == look.selected), None)


def refusal(row: Row, machine: Machine) -> str:
    """Return why a ticket is not this person's to take back; nothing if it is."""
    if row.owner != machine.user:
        return f"ticket {row.ticket} is another user's; only its owner takes it back here"
    return f"ticket {row.ticket} is taken back already" if row.state == REVOKED else ""


def question(row: Row) -> str:
    """Return what to ask before a ticket is taken back."""
    if row.state == WAITING:
        then = "it waits no longer"
    else:
        count = len(row.processes)
        then = "its units are free at once, and what works under it is not ended"
        then += f" ({count} process{'es' if count != 1 else ''})" if count else ""
    return f"take back ticket {row.ticket} ({describe(row.claims)})? {then}. [y/N]"


def step_of(row: Row) -> str | None:
    """Return the command that cancels the node whose ticket it is; None if it is no node's."""
    run_id, space, node = row.name.partition(" ")
    return f"hostler cancel {run_id} --node {node}" if space and run_id.startswith(RUN_PREFIX) else None


def _asked(look: Look, rows: Sequence[Row], machine: Machine) -> Look:
    row = selected(look, machine)
    if row is None:
        return replace(look, said="select a ticket first, with ↑ and ↓" if rows else "there is no ticket")
    refused = refusal(row, machine)
    return replace(look, said=refused) if refused else replace(look, mode=Mode.CONFIRM)


def _answered(look: Look, key: str, machine: Machine) -> tuple[Look, Order]:
    row = selected(look, machine)
    look = replace(look, mode=Mode.LIST)
    if row is None:
        return replace(look, said=f"ticket {look.selected} has gone by itself"), None
    if key in ("y", "Y"):
        return look, TakeBack(row=row)
    return replace(look, said="nothing was taken back"), None


def _moved(before: int | None, tickets: Sequence[int], key: str) -> int | None:
    if not tickets:
        return None
    if key in ("home", "end"):
        return tickets[0 if key == "home" else -1]
    if before not in tickets:
        return tickets[-1 if STEPS[key] < 0 else 0]
    return tickets[min(max(tickets.index(before) + STEPS[key], 0), len(tickets) - 1)]
