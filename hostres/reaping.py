"""Reaping what supervised processes leave behind, where that becomes ours: in the first process of a container.

Whatever loses its parent is given to process 1, which must take note of its end, else it stays as a zombie. A program
that embeds us has children of its own, whose exit status is not for us: only those are reaped that are, or were when
they were seen alive, in the session of a supervised process or marked as started by one.
"""

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from typing import Final

from hostres.beginning import begin
from hostres.procfs import Process, all_processes, environment_of
from hostres.trees import TOKEN

FIRST: Final = 1
"""The number of the process to which orphans are given."""

INTERVAL_S: Final = 1.0


class Reaper:
    """One thread, from the first supervised process on."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._leaders: set[int] = set()
        self._sessions: set[int] = set()
        self._marked: set[tuple[int, float]] = set()
        self._thread: threading.Thread | None = None

    def watch(self, leader: int) -> None:
        """Reap what the process *leader*, which leads a session, leaves behind; itself is left to who started it."""
        if os.getpid() != FIRST:
            return
        with self._mutex:
            self._leaders.add(leader)
            self._sessions.add(leader)
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="hostres-reaper", daemon=True)
                begin(thread)
                self._thread = thread

    def forget(self, leader: int) -> None:
        """Take note that *leader* was waited for; its number may be another's."""
        with self._mutex:
            self._leaders.discard(leader)

    def note(self, processes: Iterable[Process]) -> None:
        """Take note of processes that are about to be ended: nobody can tell any more afterwards whose they were."""
        if os.getpid() == FIRST:
            own = os.getsid(0)
            with self._mutex:
                self._sessions.update(process.session for process in processes if process.session != own)

    def reap(self) -> None:
        """Reap what has ended, and learn what has not."""
        ours = [process for process in all_processes().values() if process.parent == os.getpid()]
        with self._mutex:
            for process in ours:
                if process.pid in self._leaders or not self._is_left(process):
                    continue
                if process.gone:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(process.pid, os.WNOHANG)
                else:
                    self._marked.add(process.identity)
                    self._sessions.add(process.session)
            self._marked &= {process.identity for process in ours}
            self._sessions &= {process.session for process in all_processes().values()} | self._leaders

    def _is_left(self, process: Process) -> bool:
        if process.session in self._sessions or process.identity in self._marked:
            return True
        mark = None if process.gone else environment_of(process.pid).get(os.fsencode(TOKEN))
        return mark is not None and mark != os.environb.get(os.fsencode(TOKEN))  # else somebody above has marked us all

    def _serve(self) -> None:
        while True:
            time.sleep(INTERVAL_S)
            with contextlib.suppress(OSError):  # out of descriptors: later
                self.reap()


reaper: Final = Reaper()
