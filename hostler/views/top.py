"""The live screen of the machine: a frozen value in, lines that fit the screen out. Pure."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.text import Text

from hostler.views.machine import cpus_text, user_name
from hostler.views.terminal import amount, duration, harmless
from hostler.views.top_state import Look, Machine, Mode, Worker, ordered, question, selected, step_of
from hostres.claims import describe
from hostres.procfs import STOPPED
from hostres.rows import ADMITTED, REVOKED, WAITING, Row

CELL: Final = 38
"""Columns that a resource takes at least, with its bar."""
BAR: Final = 12
INDENT: Final = " " * 9
DEEPEST: Final = 8
"""Processes deeper in their tree are not moved further to the right."""

STYLES: Final[Mapping[str, str]] = {ADMITTED: "green", WAITING: "cyan", REVOKED: "red"}
KEYS: Final = "q quit  ↑↓ select  s sort: {sort}  t processes  c take back  ? help"
HELP: Final = (
    ("↑ ↓  k j", "select a ticket; PgUp, PgDn, Home and End move further, Esc lets go"),
    ("s", "sort the holders by the next of ticket, age, cpu, memory"),
    ("N T P M", "sort by ticket, age, cpu, memory"),
    ("t", "show or hide the processes"),
    ("c", "take back the selected ticket, if it is yours; you are asked first"),
    ("q", "quit, as Ctrl-C does; Ctrl-Z leaves for a while, fg comes back"),
)
NOTES: Final = (
    "Holders stand first, then who waits, in the order in which they go.",
    "A CPU % of 100 is one whole CPU. Memory that processes share counts for each.",
    "A program that holds several tickets counts for none of them (shared).",
)


def screen(machine: Machine, look: Look, *, width: int, height: int) -> list[Text]:
    """Return the lines of the screen, none wider and not more than it has.

    Args:
        machine: The machine.
        look: How somebody looks at it.
        width: Columns.
        height: Rows.

    """
    head = [*_title(machine, width), *_bars(machine, width, most=max(1, height // 4))]
    if look.mode is Mode.HELP:
        body, start, end = _help(), 0, 0
    else:
        body, start, end = _tickets(machine, look, width)
        head += [Text(), _columns(width)] if machine.top.tickets else [Text()]
    foot = _foot(machine, look, width)
    room = height - len(head) - len(foot)
    if room < 1:  # what is asked and what is selected comes before all else
        head = head[: max(0, height - len(foot) - 1)]
        room = height - len(head) - len(foot)
    shown = _window(body, start, end, room) if room > 0 else []
    filled = [*head, *shown, *[Text()] * (room - len(shown)), *foot][:height]
    return [_fitted(line, width) for line in filled]


def _fitted(line: Text, width: int) -> Text:
    line.no_wrap, line.overflow = True, "crop"
    line.truncate(width, overflow="ellipsis")
    return line


def _title(machine: Machine, width: int) -> list[Text]:
    states = [row.state for row in machine.top.tickets]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STYLES if state in states) or "idle"
    turn = machine.top.turnaround_s
    tickets = Text.assemble(("hostler top", "bold"), f"  {counts}")
    if turn is not None:
        tickets.append(f"  a turn takes {duration(turn)}", style="dim")
    load = Text(f"load {' '.join(f'{one:.2f}' for one in machine.load)} of {machine.cpus} CPUs")
    if machine.memory_mb is not None:
        used, total = machine.memory_mb
        load.append(f"  memory {amount(used << 20)} of {amount(total << 20)}")
    if tickets.cell_len + load.cell_len + 2 > width:
        return [tickets, load]
    return [Text.assemble(tickets, " " * (width - tickets.cell_len - load.cell_len), load)]


def _bars(machine: Machine, width: int, most: int) -> list[Text]:
    """Return the resources that anybody has or wants as bars, the others in one line."""
    top = machine.top
    wanted: dict[str, int] = {}
    for row in top.tickets:
        if row.state == WAITING and row.inside is None:
            for name, units in row.claims.items():
                wanted[name] = wanted.get(name, 0) + units
    busy = [name for name in {**top.capacity, **top.used} if top.used.get(name) or name in wanted]
    beside = max(1, width // CELL)
    cell = width // beside
    longest = min(max(map(len, busy), default=0), 16)
    cells = [
        _bar(name, top.used.get(name, 0), top.capacity.get(name, 0), wanted.get(name, 0), longest) for name in busy
    ]
    lines = []
    for at in range(0, len(cells), beside):
        line = Text()
        for one in cells[at : at + beside]:
            one.truncate(cell - 1, overflow="ellipsis", pad=True)
            line.append_text(one).append(" ")
        lines.append(line)
    if len(lines) > most:
        hidden = len(cells) - (most - 1) * beside
        lines = [*lines[: most - 1], Text(f"… and {hidden} more resources in use", style="dim")]
    idle = [f"{harmless(name)} {units}" for name, units in top.capacity.items() if name not in busy]
    return [*lines, Text(f"idle: {', '.join(idle)}", style="dim")] if idle else lines


def _bar(name: str, used: int, capacity: int, wanted: int, longest: int) -> Text:
    full = BAR if used >= capacity else min(BAR - 1, -(-used * BAR // capacity)) if used else 0
    style = "red" if used > capacity else "yellow" if used == capacity else "green"
    shown = harmless(name)[:longest].ljust(longest)
    line = Text.assemble(f"{shown} ", ("█" * full, style), ("░" * (BAR - full), "dim"), f" {used}/{capacity}")
    return line.append(f" +{wanted} wanted", style="cyan") if wanted else line


def _columns(width: int) -> Text:
    return Text(_cells("TICKET", "STATE", "FOR", "CPU %", "MEMORY", width) + "CLAIMS", style="bold")


def _cells(ticket: str, state: str, lasts: str, cpu: str, memory: str, width: int) -> str:
    """Return what stands before the claims; the narrower, the less."""
    text = f"  {ticket:>6} {state:8} "
    if width >= 48:
        text += f"{lasts:>9} "
    if width >= 60:
        text += f"{cpu:>5} "
    if width >= 70:
        text += f"{memory:>7} "
    return text


def _tickets(machine: Machine, look: Look, width: int) -> tuple[list[Text], int, int]:
    """Return the lines of all tickets, and where those of the selected one begin and end."""
    body: list[Text] = []
    start = end = 0
    for row in ordered(machine, look.sort):
        before = len(body)
        body += _row(machine, look, row, width)
        if row.ticket == look.selected:
            start, end = before, len(body)
    if not body:
        body = [Text("nothing is admitted and nothing waits", style="dim")]
    return body, start, end


def _row(machine: Machine, look: Look, row: Row, width: int) -> Iterator[Text]:
    cpu, memory = machine.cpu_of(row), machine.memory_of(row)
    cells = _cells(
        str(row.ticket),
        "stopped" if row.stopped else row.state,
        duration(row.for_s),
        "" if cpu is None else f"{cpu * 100:.0f}",
        "" if memory is None else amount(memory),
        width,
    )
    line = Text(cells)
    line.stylize("yellow" if row.stopped else STYLES[row.state], 9, 18)
    line.append(harmless(describe(row.claims)))
    if row.priority:
        line.append(f"  priority {row.priority}", style="dim")
    if row.name:
        line.append(f"  {harmless(row.name)}", style="bold")
    if row.inside is not None:
        line.append(f"  inside ticket {row.inside}", style="dim")
    if row.owner != machine.user:
        line.append(f"  of {user_name(row.owner)}", style="magenta")
    if row.ticket == look.selected:
        line = Text.assemble("▸", line[1:])
        line.stylize("reverse", 0, len(cells))
    yield line
    for note in _notes(row, machine.top.capacity):
        for part in textwrap.wrap(harmless(note), max(width - len(INDENT), len(INDENT)), subsequent_indent="  "):
            yield Text(f"{INDENT}{part}", style="cyan" if row.state == WAITING else "dim")
    if look.processes:
        yield from _processes(machine.workers.get(row.ticket, ()), width)


def _notes(row: Row, capacity: Mapping[str, int]) -> Iterator[str]:
    if row.cpus:
        yield cpus_text(row.cpus, capacity)
    if row.patient:
        yield "has waited for so long that what it needs is kept for it"
    for why in row.blocked_by:
        yield f"waits for {why}"
    if row.state == WAITING and row.stopped:
        yield f"is passed over until it goes on: kill -CONT {row.pid}"


def _processes(workers: Sequence[Worker], width: int) -> Iterator[Text]:
    for worker in workers:
        member, process = worker.member, worker.member.process
        branch = f"{'  ' * min(member.depth, DEEPEST)}└ " if member.depth else ""
        line = Text(_cells("", "", "", f"{member.cpu * 100:.0f}", amount(process.resident_bytes), width), style="dim")
        line.append(f"{branch}{process.pid} ")
        if process.state in STOPPED:
            line.append("stopped ", style="yellow")
        if member.shared:
            line.append("shared ", style="magenta")
        yield line.append(_program(worker.command))


def _program(command: str) -> str:
    """Return a command line without the folder of its program, which would take the room of all that tells more."""
    program, space, rest = command.partition(" ")
    return harmless(f"{program.rpartition('/')[2] or program}{space}{rest}")


def _window(body: list[Text], start: int, end: int, room: int) -> list[Text]:
    """Return as many lines as there is room for, those of the selected ticket among them."""
    if len(body) <= room:
        return body
    first = min(max(0, min(start - room // 3, start)), len(body) - room)
    if end - first > room:
        first = min(start, len(body) - room)
    above, below = first, len(body) - first - room
    shown = list(body[first : first + room])
    if below and room > 1:
        shown[-1] = Text(f"  … {below + 1} more lines below", style="dim")
    if above and room > 3 and first < start:
        shown[0] = Text(f"  … {above + 1} more lines above", style="dim")
    return shown


def _help() -> list[Text]:
    return [
        Text(),
        *(Text.assemble((f"  {keys:10}", "bold"), what) for keys, what in HELP),
        Text(),
        *(Text(f"  {note}", style="dim") for note in NOTES),
    ]


def _foot(machine: Machine, look: Look, width: int) -> list[Text]:
    row = selected(look, machine)
    if look.mode is Mode.CONFIRM and row is not None:
        step = step_of(row)
        instead = f"to cancel the node instead: {harmless(step)}" if step else ""
        return [
            *(Text(line, style="dim") for line in textwrap.wrap(instead, width)),
            *(Text(line, style="bold yellow") for line in textwrap.wrap(harmless(question(row)), width)),
        ]
    keys = "any key goes back" if look.mode is Mode.HELP else KEYS.format(sort=look.sort)
    said = [Text(harmless(look.said), style="yellow")] if look.said else []
    return [*said, Text(keys, style="dim")]
