"""`hostler top` on a terminal: looks at the machine every second, and does what keys say."""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from hostler.commands.screen import Screen
from hostler.views.terminal import console
from hostler.views.top import screen
from hostler.views.top_state import Look, Machine, Quit, TakeBack, Worker, pressed, refusal
from hostres.affinity import machine_cpus
from hostres.errors import HostlerError
from hostres.memory import memory_mb
from hostres.procfs import command_of
from hostres.revocation import revoke
from hostres.rows import WAITING, Top
from hostres.tickets import Record
from hostres.top import snapshot
from hostres.usage import Meter, trees

REFRESH_S: Final = 1.0


class Watcher:
    """Looks at the machine again and again, each time for little more than has changed."""

    def __init__(self, folder: Path) -> None:
        """Prepare it.

        Args:
            folder: The machine folder.

        """
        self._folder = folder
        self._records: dict[str, Record] = {}
        self._meter = Meter()

    def look(self) -> Machine:
        """Return the machine as it is now.

        Raises:
            HostlerError: `unsafe-state`, `unavailable`.

        """
        top = snapshot(self._folder, self._records)
        return Machine(
            top=top,
            cpus=machine_cpus(),
            load=os.getloadavg(),
            memory_mb=memory_mb(),
            workers=self._workers(top),
            user=os.geteuid(),
        )

    def _workers(self, top: Top) -> Mapping[int, Sequence[Worker]]:
        processes, busy = self._meter.read()
        roots = {row.ticket: [holder.pid for holder in row.processes] for row in top.tickets if row.state != WAITING}
        return {
            ticket: [Worker(member=member, command=command_of(member.process.pid)) for member in members]
            for ticket, members in trees(roots, processes, busy).items()
        }


def look_on(folder: Path) -> signal.Signals | None:
    """Show the machine until somebody has seen enough.

    Args:
        folder: The machine folder.

    Returns:
        The signal that ended it; None if a key did.

    Raises:
        HostlerError: `unsafe-state`, `unavailable`; the terminal is as it was by then.

    """
    watcher, look = Watcher(folder), Look()
    with Screen(console()) as shown:
        machine, due_s = watcher.look(), time.monotonic() + REFRESH_S
        while shown.ended_by is None:
            width, height = shown.size
            shown.draw(screen(machine, look, width=width, height=height))
            for key in shown.wait(max(0.0, due_s - time.monotonic())):
                look, order = pressed(look, key, machine)
                if isinstance(order, Quit):
                    return None
                if isinstance(order, TakeBack):
                    look, due_s = replace(look, said=take_back(folder, order, watcher.look)), 0.0
            if time.monotonic() >= due_s:
                machine, due_s = watcher.look(), time.monotonic() + REFRESH_S
    return shown.ended_by


def take_back(folder: Path, order: TakeBack, look: Callable[[], Machine]) -> str:
    """Take back a ticket as `hostler machine revoke` does, and return what came of it, one line.

    Args:
        folder: The machine folder.
        order: What the person has confirmed.
        look: Looks at the machine as it is now: the ticket must still be the one that they saw, and theirs.

    """
    from hostler.principal import is_human, principal  # noqa: PLC0415  looks at all ancestors; most never ask for it

    seen = order.row
    try:
        who = principal()
        if not is_human(who):
            return f"{who} may not take back a ticket; it is a person's decision"
        machine = look()
        now = next((row for row in machine.top.tickets if (row.ticket, row.pid) == (seen.ticket, seen.pid)), None)
        if now is None:
            return f"ticket {seen.ticket} has gone by itself"
        refused = refusal(now, machine)
        if refused:
            return refused
        revoke(folder, seen.ticket)
    except HostlerError as error:
        return f"{error.what}; {error.todo}"
    return f"ticket {seen.ticket} is taken back"
