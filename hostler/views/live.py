"""The live view of a run: what is known of it in, lines that fit the terminal out. Pure."""

import functools
from collections.abc import Iterable, Mapping
from typing import Final

from rich.cells import cell_len
from rich.text import Text

from hostler.views.board import Board, Line, Usage
from hostler.views.columns import CPU, LEFT, MEMORY, PERCENT, SPEED, TIME, Columns, fit, shortened
from hostler.views.terminal import amount, duration, harmless
from hostler.views.tree import clipped
from store.lifecycle import FINAL, RUN_FINAL, RUN_RESTING, Status

FEWEST: Final = 12
"""A text of fewer columns tells nothing."""
GAP: Final = "  "
SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TURNS_PER_S: Final = 5
TOTAL_BAR: Final = 20

_MARKS: Final = {
    Status.COMPLETED: ("✔", "green"),
    Status.FAILED: ("✘", "red"),
    Status.INCOMPATIBLE: ("✘", "red"),
    Status.CANCELLED: ("■", "yellow"),
    Status.SKIPPED: ("↷", "dim"),
    Status.QUEUED: ("…", "cyan"),
    Status.PREPARING: ("…", "cyan"),
    Status.CORRECTIVE: ("↻", "yellow"),
    Status.APPROVAL_REQUIRED: ("?", "magenta"),
    Status.BLOCKED: ("!", "magenta"),
    Status.AMBIGUOUS: ("!", "magenta"),
    Status.AMBIGUOUS_CODE: ("!", "magenta"),
    Status.READY: ("·", ""),
    Status.PENDING: ("·", "dim"),
}
_HEADINGS: Final = ("running", "resting", "pending", "completed", "failed", "skipped", "cancelled")
"""Of the totals: what goes on first."""


def screen(board: Board, *, width: int, height: int, now_s: float) -> list[Text]:
    """Return the lines that show a run, none wider and not more than there are.

    Args:
        board: What is known of the run.
        width: Columns.
        height: Rows.
        now_s: Monotonic seconds.

    """
    asks = _asks(board, width, height)
    room = max(height - len(asks) - 2, 1)  # the title above, the totals below
    shown = board.most_telling(room)
    branches = board.tree.branches([line.key for line in shown])
    longest = max((len(line.key) for line in shown), default=1)
    columns = fit(
        width,
        key=longest,
        name=min(max((len(branch) + len(key) for key, branch in branches), default=1), longest + width // 6),
        status=max((len(_said(line)) for line in shown), default=0),
        runs=max((cell_len(harmless(line.runs)) for line in shown), default=0),
        usage=bool(board.looked.usage),
        measured=board.measured,
    )
    rows = [_row(board, board.lines[key], branch, columns, now_s) for key, branch in branches]
    lines = [_title(board, now_s), *rows, *asks, _foot(board, len(board.lines) - len(shown), width)]
    return [_fitted(line, width) for line in lines[-height:]]


def _fitted(line: Text, width: int) -> Text:
    line.no_wrap, line.overflow = True, "crop"
    line.rstrip()
    line.truncate(width, overflow="ellipsis")
    return line


@functools.lru_cache(maxsize=4)
def _shortened(keys: tuple[str, ...], width: int) -> Mapping[str, str]:
    return shortened(keys, width)


def _title(board: Board, now_s: float) -> Text:
    title = Text.assemble((board.run_id, "bold"), GAP)
    if board.status in RUN_FINAL | RUN_RESTING:  # how long it took is told at the end
        title.append(f"{board.status}")
    elif board.ends_s is not None:
        title.append(f"stopping, {duration(board.ends_s - now_s)} left", style="yellow")
    else:
        title.append(f"{board.status}  {duration(now_s - board.started_s + board.ran_before_s)}")
    title.append(f"{GAP}{board.workflow}", style="dim")
    return title


def _asks(board: Board, width: int, height: int) -> list[Text]:
    """Return what waits for a person and what they type for it, in few lines; none where no node would be seen."""
    waiting = board.asks()
    approvals = [one for one in waiting if one.reason is Status.APPROVAL_REQUIRED]
    told = []
    if len(approvals) == 1:
        told.append(f"{approvals[0].node} waits for you: hostler approve {board.run_id} {approvals[0].node}")
    elif approvals:
        told.append(f"{len(approvals)} nodes wait for you: hostler approve {board.run_id}")
    told += [
        f"{one.node} waits for you: {harmless(one.message)}: {one.command}"
        for one in waiting
        if one.reason is not Status.APPROVAL_REQUIRED
    ]
    rows = [row for line in told for row in _folded(line, width)]
    if len(told) > 1 and len(rows) > height // 3:
        rows = _folded(f"{len(waiting)} nodes wait for you: hostler show {board.run_id}", width)
    return [Text(row, style="magenta") for row in rows] if len(rows) <= height - 3 else []


def _folded(text: str, width: int) -> list[str]:
    """Return a text in lines, whole words where they fit, so that a command can still be copied."""
    rows = [""]
    for word in text.split(" "):
        longer = f"{rows[-1]} {word}" if rows[-1] else word
        if len(longer) <= width or not rows[-1]:
            rows[-1] = longer
        else:
            rows.append(word)
    return [row[at : at + width] for row in rows for at in range(0, max(len(row), 1), max(width, 1))]


def _foot(board: Board, left_out: int, width: int) -> Text:
    totals, number = board.totals(), len(board.lines)
    over = sum(line.status in FINAL for line in board.lines.values())
    foot = Text(style="dim")
    told = " · ".join(f"{totals[name]} {name}" for name in _HEADINGS if totals[name])
    hidden = f" ({left_out} not shown)" if left_out else ""
    counts = f"{over}/{number}{GAP}{told}{hidden}"
    if number > 1 and width >= TOTAL_BAR + len(counts) + len(GAP):
        foot.append_text(_bar(over / number, TOTAL_BAR, "green")).append(GAP)
    foot.append(counts if number > 1 else told)
    used = board.usage()
    if used is not None:
        told = f"{used.cpus:.1f} cpu{GAP}{amount(used.memory_bytes)}"
        if foot.cell_len + len(GAP) + len(told) <= width:
            foot.append(" " * (width - foot.cell_len - len(told)) + told)
    return foot


def _bar(fraction: float, columns: int, style: str) -> Text:
    done = int(fraction * columns)
    return Text.assemble(("━" * done, style), ("─" * (columns - done), "dim"))


def _said(line: Line) -> str:
    if line.record.cancelling and line.moving:
        return "cancelling"
    return line.status.value


def _row(board: Board, line: Line, branch: str, columns: Columns, now_s: float) -> Text:
    mark, style = _MARKS.get(line.status, ("·", ""))
    if line.moving:
        mark, style = SPINNER[int(now_s * TURNS_PER_S) % len(SPINNER)], "cyan"
    row = Text.assemble((mark, style), " ").append_text(_name(board, line, branch, columns))
    if columns.status:
        row.append(f" {_said(line).ljust(columns.status)}", style=style)
    if columns.time:
        row.append(f" {_time_text(line, now_s).rjust(TIME)}", style="" if line.moving else "dim")
    rest = _rest(board, line, columns, style, now_s)
    if rest:
        rest.truncate(columns.rest, overflow="ellipsis")
        row.append(" ").append_text(rest)
    return row


def _name(board: Board, line: Line, branch: str, columns: Columns) -> Text:
    """Return the key behind its branches, as wide as its column."""
    if not columns.tree:
        return Text(_shortened(tuple(board.lines), columns.key)[line.key].ljust(columns.key), style=_emphasis(line))
    shown = clipped(branch, columns.key - len(line.key))
    return Text.assemble((shown, "dim"), (line.key.ljust(columns.key - len(shown)), _emphasis(line)))


def _emphasis(line: Line) -> str:
    if line.moving:
        return "bold"
    return "dim" if line.status in (Status.PENDING, Status.SKIPPED) else ""


def _rest(board: Board, line: Line, columns: Columns, style: str, now_s: float) -> Text:
    """Return what is told of a node after its time: progress and what it uses, else why it does not move."""
    said = [] if columns.status else [(_said(line), style)]
    if line.moving:
        return _movement(line, board.looked.usage.get(line.key), columns, said)
    why, how = _why(board, line, now_s)
    if why:
        said.append((why, how))
    elif columns.runs:
        said.append((harmless(line.runs), "dim"))
    return _words(said)


def _why(board: Board, line: Line, now_s: float) -> tuple[str, str]:
    """Return why a node does not move, and how that is written; nothing if there is nothing to say."""
    failure = line.record.failure
    match line.status:
        case Status.PENDING:
            missing = [key for key in line.after if board.lines[key].status is not Status.COMPLETED]
            return (f"after {', '.join(missing)}" if missing else "", "dim")
        case Status.QUEUED:
            return (board.looked.held.get(line.key, "waits for the machine"), "cyan")
        case Status.READY if line.outside:
            return ("waits for a worker to take it", "cyan")
        case Status.COMPLETED:
            return ("", "")
        case _ if failure is not None:
            again = f"tried again in {duration(line.due_s - now_s)}: " if line.due_s is not None else ""
            how = "yellow" if line.status is Status.CORRECTIVE else "red"
            return (harmless(f"{again}{failure.code}: {failure.message}"), how)
        case _:
            return ("", "")


def _movement(line: Line, usage: Usage | None, columns: Columns, said: list[tuple[str, str]]) -> Text:
    """Return how far a node is and what it uses; a bar says by itself that it runs."""
    words = line.text or ("a worker has it" if line.outside else "")
    if not words and columns.runs and line.fraction is None:
        words = line.runs
    if words:
        said = [*said, (harmless(words), "dim")]
    if usage is not None and usage.stopped:
        told = Text(f"stopped by somebody: kill -CONT {' '.join(map(str, usage.stopped))}", style="yellow")
        said = []
    elif line.fraction is not None and columns.percent:
        told = _progress(line, line.fraction, columns)
        said = said[-1:] if words else []
    else:
        told, said = _words(said), []
    if columns.usage and usage is not None:
        if columns.progress:
            told.truncate(max(columns.progress, told.cell_len if usage.stopped else 0), overflow="ellipsis", pad=True)
            told.append(" ").append_text(_used(usage))
        else:
            told = _used(usage).append(GAP).append_text(told) if told else _used(usage)
    if said and columns.rest - told.cell_len - len(GAP) >= FEWEST:
        told.append(GAP).append_text(_words(said))
    return told


def _words(said: Iterable[tuple[str, str]]) -> Text:
    return Text(GAP).join(Text(text, style=style) for text, style in said)


def _progress(line: Line, fraction: float, columns: Columns) -> Text:
    parts = [_bar(fraction, columns.bar, "cyan")] if columns.bar else []
    parts.append(Text(f"{int(fraction * 100)} %".rjust(PERCENT)))
    if columns.speed:
        parts.append(Text((f"{line.speed:.1f}×" if line.speed is not None else "").rjust(SPEED), style="dim"))
    if columns.left:
        parts.append(Text((f"{duration(line.left_s)} left" if line.left_s is not None else "").rjust(LEFT)))
    return Text(" ").join(parts)


def _used(usage: Usage) -> Text:
    return Text(f"{usage.cpus:.1f} cpu".rjust(CPU) + " " + amount(usage.memory_bytes).rjust(MEMORY), style="dim")


def _time_text(line: Line, now_s: float) -> str:
    if line.since_s is not None and (line.moving or line.status is Status.QUEUED):
        return duration(now_s - line.since_s)
    if line.status is Status.COMPLETED and line.took_s is not None:
        return duration(line.took_s)
    return ""
