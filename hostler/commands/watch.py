"""`hostler watch`: look on while another process works on a run."""

import argparse
import time
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from actors.actions import NodeChanged, RunChanged
from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.endings import CANCELLED, WATCHED
from hostler.commands.following import EVERY_S, stands_still
from hostler.commands.foreground import View, heard, is_live, tell_ending, view_of
from hostler.commands.output import print_line
from hostler.interrupts import Interrupted, Interrupts, Suspended
from hostler.progress_notes import ProgressNotes
from hostler.stored_runs import reading
from store.contracts import NodeRecord
from store.home import Home
from store.reader import Reader

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

SHARE: Final = 0.2
"""Of one CPU, that reading the store may take."""


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "watch", description="look on while another process works on a run", example="-"
    )
    add_run(parser)
    add_json(parser, "print only one JSON object, at the end")


def run(args: argparse.Namespace) -> int:
    """Show the run until it ends, rests or has no host; Ctrl-C ends only the watching."""
    return look_on(args.run, json=args.json)


def look_on(run: str, *, json: bool) -> int:
    """Show a run until it ends, rests or has no host.

    Args:
        run: Any unique prefix of its id, or `-`.
        json: Print only one JSON object, at the end.

    Returns:
        The exit code; 3 for a run that no host works on, which rests until a person resumes it.

    """
    with reading() as (home, reader):
        run_id = reader.find(run)
        if not stands_still(reader, run_id) and not _look_on(home, reader, run_id, json=json):
            print_line(f"{run_id} goes on; look on again with: hostler watch {run_id}")
            return CANCELLED
        return tell_ending(reader, run_id, json=json, exits=WATCHED)


def _look_on(home: Home, reader: Reader, run_id: str, *, json: bool) -> bool:
    """Show a run; return whether it stands still, and not somebody has seen enough."""
    before = reader.nodes(run_id)
    view = view_of(run_id, reader, before, json=json)
    watcher = _Watcher(home, reader, run_id, before)
    if not is_live(json=json):
        with view:
            while not watcher.tell(view):
                time.sleep(watcher.pause_s)
        return True
    inbox: SimpleQueue[Any] = SimpleQueue()
    with Interrupts(inbox, shows=True), view:
        while not watcher.tell(view):
            for message in heard(inbox, view, until_s=time.monotonic() + watcher.pause_s):
                match message:
                    case Interrupted():
                        return False
                    case Suspended():
                        view.stop()
                    case _:
                        pass
    return True


class _Watcher:
    """Reads of a run what has changed since it was last read.

    Attributes:
        pause_s: How long to wait until it is worth to look again, seconds.

    """

    def __init__(self, home: Home, reader: Reader, run_id: str, nodes: tuple[NodeRecord, ...]) -> None:
        self.pause_s = EVERY_S
        self._reader = reader
        self._run_id = run_id
        self._notes = ProgressNotes(home, run_id)
        self._known = {node.key: node for node in nodes}
        self._seen: int | None = None

    def tell(self, view: View) -> bool:
        """Tell the view what has changed; return whether the run stands still."""
        still = stands_still(self._reader, self._run_id)
        now_s = time.monotonic()
        seen = self._reader.data_version()
        if still or seen != self._seen:
            self._seen = seen
            for record in self._reader.nodes(self._run_id):
                if record != self._known.get(record.key):
                    self._known[record.key] = record
                    view.apply(NodeChanged(run_id=self._run_id, record=record), now_s)
            view.apply(RunChanged(run_id=self._run_id, status=self._reader.run(self._run_id).status), now_s)
        for progress in self._notes.read():
            view.apply(progress, now_s)
        self.pause_s = max(EVERY_S, (time.monotonic() - now_s) / SHARE)
        return still
