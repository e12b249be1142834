"""A run in the foreground: shown while it goes, stopped in good order by Ctrl-C, told at its end."""

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Protocol, Self

from actors.actions import RunLeft
from actors.host_messages import Report, RunLost
from hostler.commands.endings import CANCELLED, EXITS, ending_text
from hostler.commands.output import print_json, print_line
from hostler.commands.prints import Prints
from hostler.commands.steady_view import SteadyView
from hostler.host import Host
from hostler.hosted_run import Run
from hostler.interrupts import Continued, Interrupted, Interrupts, Suspended
from hostler.stored_runs import whole
from hostler.views.board import Board
from hostler.views.cut_logs import cut_lines
from hostler.views.deferred import deferred_lines
from hostler.views.lines import PlainView
from hostler.views.show import seconds_since, show_json
from hostler.views.terminal import console, is_terminal
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from store.contracts import NodeRecord
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader

GRACE_S: Final = 10.0
SHORT_GRACE_S: Final = 1.0
TWICE: Final = 2


class _Over:
    """The run was over before anybody listened."""


class View(Protocol):
    """What shows a run while it goes."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def apply(self, change: Report, now_s: float) -> None:
        """Take in a change at that monotonic second."""

    def say(self, text: str) -> None:
        """Tell the reader something."""

    def ends(self, at_s: float) -> None:
        """Show that what runs is stopped at that monotonic second."""

    def draw(self, now_s: float) -> float | None:
        """Show what has changed, if it is time to; return in how many seconds it is time again, None for never."""

    def stop(self) -> None:
        """Be stopped as with Ctrl-Z, until somebody continues this process."""


class SilentView:
    """The view of `--json`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""

    def apply(self, change: object, now_s: float) -> None:
        """Tell nobody."""

    def say(self, text: str) -> None:
        """Tell whoever reads the errors."""
        sys.stderr.write(f"{text}\n")

    def ends(self, at_s: float) -> None:
        """Tell nobody."""

    def draw(self, now_s: float) -> None:
        """Show nothing."""

    def stop(self) -> None:
        """Never needed: without a screen the signal stops the process by itself."""


def attend(host: Host, begin: Callable[[], Run], home: Home, *, before: Sequence[NodeRecord], json: bool) -> int:
    """Begin a run and show it until this host is done with it; its id is the first line.

    Args:
        host: The host it runs in.
        begin: Has the host take it up.
        home: Where it is stored.
        before: Its nodes as they stood before this host took it up.
        json: Print only one JSON object, at the end.

    Returns:
        The exit code.

    Raises:
        HostlerError: The host could not take the run up, or not go on with it; internal, if an operation hangs.

    """
    inbox: SimpleQueue[Any] = SimpleQueue()
    live = is_live(json=json)
    prints = Prints(sys.stdout) if live else None
    with contextlib.ExitStack() as aside:
        if prints is not None:
            aside.enter_context(prints.instead())
        run = begin()
        if prints is not None:
            prints.say(run.run_id)
        elif not json:
            print_line(run.run_id)
        with Interrupts(inbox, shows=live), Reader.open(home) as reader:
            run.subscribe(inbox.put)
            if run.left:
                inbox.put(_Over())
            first = inbox.get()
            if not isinstance(first, RunLost | _Over):  # nothing is drawn of a run that this host never had
                with view_of(run.run_id, reader, before, json=json, prints=prints) as view:
                    _show(host, run, view, heard(inbox, view, first=first))
            run.wait(timeout=0)
            aside.close()
            code = tell_ending(reader, run.run_id, json=json)
    host.close()
    if host.hung and code == CANCELLED:
        raise HostlerError(
            Code.INTERNAL,
            f"{host.hung} of the operations of {run.run_id} still ran after their grace and ended with this process",
            "let them look at ctx.check_cancelled(), or wait for processes with ctx.run",
        )
    return code


def is_live(*, json: bool) -> bool:
    """Say whether a run is shown on a screen that is redrawn."""
    return not json and is_terminal()


def tell_ending(reader: Reader, run_id: str, *, json: bool, exits: Mapping[RunStatus, int] = EXITS) -> int:
    """Print where a run stands, and return the exit code that says the same.

    Args:
        reader: The store.
        run_id: The run.
        json: Print a JSON object.
        exits: The exit code of each status.

    """
    stored, plan, nodes = whole(reader, run_id)
    deferrals = reader.deferrals(run_id, owned=stored.owned)
    if json:
        print_json(show_json(stored, plan, nodes, cuts=reader.log_cuts(run_id)))
        sys.stderr.writelines(f"{line}\n" for line in deferred_lines(run_id, nodes, deferrals))
    else:
        print_line("\n".join([ending_text(stored, plan, nodes, deferrals), *cut_lines(reader.log_cuts(run_id))]))
    return exits[stored.status]


def view_of(
    run_id: str, reader: Reader, before: Sequence[NodeRecord], *, json: bool, prints: Prints | None = None
) -> View:
    """Return the view of a run that fits where standard output goes.

    Args:
        run_id: The run.
        reader: The store.
        before: Its nodes as they stand when the view begins.
        json: Tell nothing.
        prints: What code of the workflow prints, if it runs in this process and a screen is in its way.

    """
    if json:
        return SilentView()
    stored = reader.run(run_id)
    now_s = time.monotonic()
    board = Board(
        run_id=run_id,
        workflow=stored.record.workflow,
        started_s=now_s,
        status=stored.status,
        ran_before_s=seconds_since(stored.started_at) if stored.started_at else 0.0,
    )
    board.fill(reader.plan(stored.record.plan_sha256), before)
    if prints is None and not is_terminal():
        return SteadyView(PlainView(board, print_line))
    from hostler.commands.gauge import Gauge  # noqa: PLC0415 (slow to import, needed on terminals only)
    from hostler.commands.live_view import LiveView  # noqa: PLC0415

    on_terminal = console(prints.under if prints is not None else None)
    live = LiveView(board, on_terminal, Gauge(run_id, machine_folder(os.environ)), prints)
    return SteadyView(live, prints.say if prints is not None else None)


def heard(inbox: "SimpleQueue[Any]", view: View, *, first: Any = None, until_s: float = math.inf) -> Iterator[Any]:
    """Give what comes into a queue, and keep the view up to date meanwhile.

    Args:
        inbox: The queue.
        view: What shows the run.
        first: What has come out of it already.
        until_s: When there is to be an end, monotonic seconds.

    """
    if first is not None:
        yield first
    while True:
        now_s = time.monotonic()
        redraw_s = view.draw(now_s)
        wait_s = min(math.inf if redraw_s is None else redraw_s, until_s - now_s)
        if wait_s <= 0 and now_s >= until_s:
            return
        try:
            yield inbox.get(timeout=None if math.isinf(wait_s) else max(wait_s, 0.0))
        except Empty:
            continue


def _show(host: Host, run: Run, view: View, told: Iterable[Any]) -> None:
    for message in told:
        match message:
            case Interrupted(times=times):
                grace_s = GRACE_S if times == 1 else SHORT_GRACE_S
                if times == 1:
                    view.say(f"stopping {run.run_id}: what runs has {GRACE_S:.0f} s to end; again to hurry")
                elif times == TWICE:
                    view.say("stopping now")
                view.ends(time.monotonic() + grace_s)
                host.drain(grace_s=grace_s)
            case Suspended():
                view.stop()
            case Continued():
                with contextlib.suppress(HostlerError):  # of a host that gives up; its runs say why
                    host.look()
            case RunLeft() | RunLost() | _Over():
                return
            case change:
                view.apply(change, time.monotonic())
