"""The live view of a run on a terminal: a table that rewrites itself."""

import time
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from actors.messages import Report
from hostler.views.board import Board, Line
from hostler.views.terminal import duration, harmless
from store.lifecycle import Status

REFRESH_PER_SECOND: Final = 8
HEAD_ROWS: Final = 3  # the title above the table, the totals and what is left out below it
BAR_WIDTH: Final = 24

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
        board = self._board
        room = max(self._console.height - HEAD_ROWS - 1, 1)
        shown = board.most_telling(room)
        table = Table.grid(padding=(0, 1), expand=False)
        for justify in ("left", "left", "left", "right", "left"):
            table.add_column(justify=justify, no_wrap=True, overflow="ellipsis")
        for line in shown:
            table.add_row(*self._cells(line, now_s))
        title = Text.assemble(
            (board.run_id, "bold"), f"  {board.workflow}  {board.status}  {duration(now_s - board.started_s)}"
        )
        totals = " · ".join(f"{number} {name}" for name, number in sorted(board.totals().items()) if number)
        left_out = len(board.lines) - len(shown)
        foot = f"{totals}{f' ({left_out} not shown)' if left_out else ''}"
        return Group(title, table, Text(foot, style="dim"))

    def _cells(self, line: Line, now_s: float) -> tuple[RenderableType, ...]:
        mark, style = _MARKS.get(line.status, ("·", ""))
        first = self._spinner if line.moving else Text(mark, style=style)
        return (
            first,
            Text(harmless(line.name)),
            Text(_SAID.get(line.status, line.status.value), style=style),
            Text(_time_text(line, now_s)),
            self._detail(line),
        )

    @staticmethod
    def _detail(line: Line) -> RenderableType:
        if line.moving and line.fraction is not None:
            bar = Table.grid(padding=(0, 1))
            bar.add_row(ProgressBar(total=1.0, completed=line.fraction, width=BAR_WIDTH), _progress_text(line))
            return bar
        if line.moving:
            return Text(harmless(line.text or line.runs), style="dim")
        if line.record.failure is not None and line.status is not Status.COMPLETED:
            return Text(harmless(f"{line.record.failure.code}: {line.record.failure.message}"), style="red")
        return Text(line.runs, style="dim")


def _time_text(line: Line, now_s: float) -> str:
    if line.moving and line.since_s is not None:
        return duration(now_s - line.since_s)
    if line.status is Status.COMPLETED and line.took_s is not None:
        return duration(line.took_s)
    return ""


def _progress_text(line: Line) -> str:
    parts = [f"{(line.fraction or 0.0) * 100:3.0f} %"]
    if line.speed is not None:
        parts.append(f"{line.speed:.1f}×")
    if line.left_s is not None:
        parts.append(f"{duration(line.left_s)} left")
    if line.text:
        parts.append(line.text)
    return harmless("  ".join(parts))
