"""The live view of a run on a terminal: a table that rewrites itself."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from actors.host_messages import Report
from hostler.views.board import Board, Line
from hostler.views.columns import LEFT, PERCENT, SPEED, TIME, Columns, fit, shortened
from hostler.views.terminal import duration, harmless
from store.lifecycle import RUN_FINAL, RUN_RESTING, Status

REFRESH_PER_SECOND: Final = 8
HEAD_ROWS: Final = 3  # the title above the table, the totals and what is left out below it

FEWEST: Final = 4
"""A text of fewer columns tells nothing."""

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
_SAID: Final = {Status.QUEUED: "waits for the machine", Status.PENDING: "waits for others"}


class LiveView:
    """Keeps the table on the terminal while it is entered, and leaves its last state there."""

    def __init__(self, board: Board, console: Console) -> None:
        self._board = board
        self._console = console
        self._spinner = Spinner("dots", style="cyan")
        self._short: dict[int, Mapping[str, str]] = {}
        self._live = Live(
            console=console,
            get_renderable=lambda: self.render(time.monotonic()),
            refresh_per_second=REFRESH_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Draw the last state and give the terminal back."""
        self._live.stop()

    def apply(self, change: Report, now_s: float) -> None:
        """Take in a change; the next refresh shows it.

        Args:
            change: What the host told.
            now_s: Monotonic seconds.

        """
        self._board.apply(change, now_s)

    def say(self, text: str) -> None:
        """Tell the reader something above the table."""
        self._console.print(Text(text))

    def render(self, now_s: float) -> Group:
        """Return what the terminal shows.

        Args:
            now_s: Monotonic seconds.

        """
        board, width = self._board, self._console.width
        asks = Text(_asks(board), style="magenta", overflow="fold")
        asks_rows = len(asks.wrap(self._console, width)) if asks else 0
        room = max(self._console.height - HEAD_ROWS - 1 - asks_rows, 1)
        shown = board.most_telling(room)
        columns = fit(
            width,
            key=max((len(line.key) for line in shown), default=1),
            status=max((len(_said(line)) for line in shown), default=0),
            runs=max((cell_len(harmless(line.runs)) for line in shown), default=0),
        )
        keys = self._shortened(columns.key)
        rows = [self._row(line, keys[line.key], columns, now_s) for line in shown]
        left_out = len(board.lines) - len(shown)
        totals = " · ".join(f"{number} {name}" for name, number in sorted(board.totals().items()) if number)
        foot = f"{totals}{f' ({left_out} not shown)' if left_out else ''}"
        return Group(
            _title(board, now_s),
            *rows,
            *([asks] if asks else []),
            Text(foot, style="dim", no_wrap=True, overflow="ellipsis"),
        )

    def _shortened(self, width: int) -> Mapping[str, str]:
        if width not in self._short:
            self._short = {width: shortened(self._board.lines, width)}
        return self._short[width]

    def _row(self, line: Line, key: str, columns: Columns, now_s: float) -> Text:
        mark, style = _MARKS.get(line.status, ("·", ""))
        spinning = self._spinner.render(now_s)
        row = Text(no_wrap=True, overflow="crop")
        row.append_text(spinning if line.moving and isinstance(spinning, Text) else Text(mark, style=style))
        row.append(f" {key.ljust(columns.key)}")
        if columns.status:
            row.append(f" {_said(line).ljust(columns.status)}", style=style)
        if columns.time:
            row.append(f" {_time_text(line, now_s).rjust(TIME)}")
        rest = _rest(line, columns)
        if rest:
            rest.truncate(columns.rest, overflow="ellipsis")
            row.append(" ")
            row.append_text(rest)
        return row


def _title(board: Board, now_s: float) -> Text:
    parts = [f"  {board.status}"]
    if board.status not in RUN_FINAL | RUN_RESTING:  # how long it took is told at the end
        parts.append(f"  {duration(now_s - board.started_s + board.ran_before_s)}")
    title = Text.assemble((board.run_id, "bold"), *parts, f"  {board.workflow}")
    title.no_wrap, title.overflow = True, "ellipsis"
    return title


def _asks(board: Board) -> str:
    waiting = [line.key for line in board.lines.values() if line.status is Status.APPROVAL_REQUIRED]
    if not waiting:
        return ""
    if len(waiting) == 1:
        return f"{waiting[0]} waits for you: hostler approve {board.run_id} {waiting[0]}"
    return f"{len(waiting)} nodes wait for you: hostler approve {board.run_id}"


def _said(line: Line) -> str:
    return _SAID.get(line.status, line.status.value)


def _rest(line: Line, columns: Columns) -> Text:
    """Return what is told of a node after its time: progress, else why it failed, else what it runs."""
    if line.moving and line.fraction is not None:
        return _progress(line, line.fraction, columns)
    parts: list[tuple[str, str]] = []
    if not columns.status:
        parts.append((_said(line), _MARKS.get(line.status, ("", "cyan"))[1]))
    if line.record.failure is not None and line.status is not Status.COMPLETED:
        parts.append((harmless(f"{line.record.failure.code}: {line.record.failure.message}"), "red"))
    elif line.moving and line.text:
        parts.append((harmless(line.text), "dim"))
    elif columns.runs:
        parts.append((harmless(line.runs), "dim"))
    return Text("  ").join(Text(text, style=style) for text, style in parts)


def _progress(line: Line, fraction: float, columns: Columns) -> Text:
    parts: list[Text] = []
    if columns.bar:
        done = int(fraction * columns.bar)
        parts.append(Text.assemble(("━" * done, "cyan"), ("─" * (columns.bar - done), "dim")))
    if columns.percent:
        parts.append(Text(f"{int(fraction * 100)} %".rjust(PERCENT)))
    if columns.speed:
        parts.append(Text((f"{line.speed:.1f}×" if line.speed is not None else "").rjust(SPEED)))
    if columns.left:
        parts.append(Text((f"{duration(line.left_s)} left" if line.left_s is not None else "").rjust(LEFT)))
    told = Text(" ").join(parts)
    if line.text and columns.rest - len(told) > FEWEST:
        told.append(f" {harmless(line.text)}", style="dim")
    return told


def _time_text(line: Line, now_s: float) -> str:
    if line.moving and line.since_s is not None:
        return duration(now_s - line.since_s)
    if line.status is Status.COMPLETED and line.took_s is not None:
        return duration(line.took_s)
    return ""
