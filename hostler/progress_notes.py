"""How far the nodes of a run are, noted beside its logs for whoever looks on from another process.

A note is advice for people: nothing waits for the disk, and what cannot be written or read is left out.
"""

import json
import os
from typing import Any, Final

from actors.messages import Progress
from actors.pace import measured
from hostres.errors import HostlerError
from hostres.folders import open_private
from store.contracts import NodeRecord
from store.home import Home
from store.lifecycle import Status

LONGEST: Final = 1 << 20
"""Bytes of notes that are read."""
_MOVING: Final = frozenset({Status.RUNNING, Status.VERIFYING})


class ProgressNotes:
    """The notes of one run: written by the host that works on it, read by others."""

    def __init__(self, home: Home, run_id: str) -> None:
        """Prepare it; nothing is made before there is anything to note.

        Args:
            home: The state folder.
            run_id: The run.

        """
        self._home = home
        self._run_id = run_id
        self._latest: dict[str, Progress] = {}
        self._file: int | None = None
        self._broken = False
        self._read: bytes | None = None

    @property
    def latest(self) -> tuple[Progress, ...]:
        """What was noted last of each node that runs."""
        return tuple(self._latest.values())

    def note(self, progress: Progress) -> None:
        """Write down how far a node is."""
        self._latest[progress.node] = progress
        self._write()

    def node_changed(self, record: NodeRecord) -> None:
        """Forget how far a node was that does not run any more."""
        if record.status not in _MOVING and self._latest.pop(record.key, None) is not None:
            self._write()

    def close(self) -> None:
        """Write no more; what is left says nothing once no node runs."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._broken = None, True

    def read(self) -> list[Progress]:
        """Return what is new in the notes."""
        try:
            fd = open_private(self._home.progress_path(self._run_id), os.O_RDONLY)
            try:
                data = os.read(fd, LONGEST)
            finally:
                os.close(fd)
            if data == self._read:
                return []
            found = [_progress(each) for each in json.loads(data)]
        except (OSError, HostlerError, ValueError, TypeError, KeyError, AttributeError):  # none yet, or half of one
            return []
        self._read = data
        return found

    def _write(self) -> None:
        if self._broken:
            return
        data = json.dumps([_noted(each) for each in self._latest.values()]).encode()
        try:
            if self._file is None:
                path = self._home.progress_path(self._run_id, create=True)
                self._file = open_private(path, os.O_WRONLY | os.O_CREAT)
            os.pwrite(self._file, data, 0)
            os.ftruncate(self._file, len(data))
        except (OSError, HostlerError):
            self._broken = True


def _noted(progress: Progress) -> dict[str, Any]:
    return {name: getattr(progress, name) for name in Progress.__dataclass_fields__}


def _progress(noted: Any) -> Progress:
    return Progress(
        node=str(noted["node"]),
        attempt=int(noted["attempt"]),
        fraction=measured(noted["fraction"], "fraction"),
        text=str(noted["text"]),
        speed=measured(noted["speed"], "speed"),
        left_s=measured(noted["left_s"], "left_s"),
    )
