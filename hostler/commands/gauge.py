"""Looks at the machine every second, on a thread of its own, for what of it concerns one run."""

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from hostler.views.board import Looked, Usage
from hostler.views.held import held
from hostres.attribution import Attribution
from hostres.beginning import begin
from hostres.clock import boot_ns
from hostres.errors import HostlerError
from hostres.procfs import STOPPED
from hostres.tickets import Record
from hostres.top import snapshot
from hostres.usage import Member, Meter, trees

EVERY_S: Final = 1.0


class Gauge:
    """While entered, keeps what the last look has shown.

    Attributes:
        looked: That; its parts are never changed, so that any thread may read them.
        queued: Whether anything of the run waits for the machine, so that it is worth a look who has it.

    """

    def __init__(self, run_id: str, machine_folder: Path) -> None:
        """Prepare it.

        Args:
            run_id: The run.
            machine_folder: Where the tickets are.

        """
        self.looked = Looked()
        self.queued = False
        self._run_id = run_id
        self._folder = machine_folder
        self._meter = Meter()
        self._attribution = Attribution(run_id)
        self._records: dict[str, Record] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, name="gauge", daemon=True)

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):  # no room for a thread: the view shows no use of the machine
            begin(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more; a look that is under way is not waited for."""
        self._over.set()

    def _keep_looking(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError):  # out of descriptors, say: what was seen last must do
                self.looked = self.look()
            self._over.wait(EVERY_S)

    def look(self) -> Looked:
        """Return what the machine shows of the run now."""
        processes, busy = self._meter.read()
        members = trees(self._attribution.find(processes, boot_ns() / 1e9), processes, busy)
        waits: Mapping[str, str] = {}
        if self.queued:
            with contextlib.suppress(HostlerError):  # a view is no place to tell of an unsafe folder
                waits = held(self._run_id, snapshot(self._folder, self._records).tickets)
        return Looked(usage={node: _usage(every) for node, every in members.items() if every}, held=waits)


def _usage(members: tuple[Member, ...]) -> Usage:
    return Usage(
        cpus=sum(member.cpu for member in members),
        memory_bytes=sum(member.process.resident_bytes for member in members),
        stopped=tuple(member.process.pid for member in members if member.process.state in STOPPED),
    )
