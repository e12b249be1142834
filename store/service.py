"""The background service of a home: one at a time, and the runs that are left to it.

Life is a kernel lock on a FIFO in `hosts/`, and one byte into it wakes the service. A run is *entrusted* to the service
when it was submitted, or once the service has worked on it; whoever takes it up in the foreground takes it back.
"""

import contextlib
import os
import sqlite3
import stat
from typing import Final, Self

from hostres.errors import Code, HostlerError
from hostres.locks import FifoLock, is_held, poke, probe
from store.home import Home
from store.lazy_dataclass import dataclass
from store.lifecycle import RunStatus

NAME: Final = "service"
PROBED_S: Final = 0.25
"""For so long a lock that is taken may be taken only by somebody who looks whether it is."""

_TO_DO: Final = """
SELECT run_id, host_id, event_seq, sum(asked) FROM (
  SELECT run, run_id, host_id, event_seq, 0 AS asked FROM runs
  WHERE imported_sha256 IS NULL AND status IN (:planned, :running)
  UNION ALL
  SELECT run, run_id, host_id, event_seq, 1 FROM requests JOIN runs USING (run)
  WHERE imported_sha256 IS NULL AND consumed_generation IS NULL
) WHERE host_id IS NOT NULL OR run IN (SELECT run FROM entrusted)
GROUP BY run_id
ORDER BY run_id
"""


class ServiceIdentity:
    """This process is the service of its home; the kernel ends that with the process, however it dies."""

    def __init__(self, lock: FifoLock) -> None:
        self._lock = lock

    @classmethod
    def take(cls, home: Home) -> Self | None:
        """Become the service of *home*, or return None if there is one.

        Raises:
            HostlerError: unavailable, if its FIFO cannot be made; unsafe-state.

        """
        place = home.hosts / NAME
        try:
            with contextlib.suppress(FileExistsError):
                os.mkfifo(place, 0o600)
            lock = FifoLock(str(place))
            taken = lock.acquire(timeout=PROBED_S, delay=0.005, max_delay=0.02)
        except OSError as error:
            raise HostlerError(
                Code.UNAVAILABLE, f"{place} cannot be used: {error.strerror}", "check the disk and its permissions"
            ) from error
        if not stat.S_ISFIFO(os.fstat(lock.fd).st_mode):  # always readable: it would be woken without end
            lock.close()
            raise HostlerError(Code.UNSAFE_STATE, f"{place} is no FIFO", "remove it")
        if taken:
            return cls(lock)
        lock.close()
        return None

    @property
    def fd(self) -> int:
        """The FIFO's descriptor: readable when somebody woke the service."""
        return self._lock.fd

    def drain(self) -> None:
        """Take the bytes of those who woke it."""
        self._lock.drain()

    def close(self) -> None:
        """End the service; idempotent. The FIFO stays, since another process may just be about to lock it."""
        self._lock.close()


def service_alive(home: Home) -> bool:
    """Say whether a service of *home* lives; a stopped one does."""
    return home.exists and is_held(home.hosts / NAME)


def wake_service(home: Home) -> bool:
    """Wake the service of *home*.

    Returns:
        Whether there is one.

    """
    return poke(home.hosts / NAME)


def watch_service(home: Home) -> int | None:
    """Return a descriptor that hangs up when the service of *home* ends; None if there is none."""
    return probe(home.hosts / NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToDo:
    """A run that the service could go on with, if its owner does not live.

    Attributes:
        host_id: Who claims it.
        event_seq: How long its log is: as long as that does not change, nothing has happened to it.
        asked: How many requests wait.

    """

    run_id: str
    host_id: str | None
    event_seq: int
    asked: int


def to_do(connection: sqlite3.Connection) -> list[ToDo]:
    """Return the runs that the service would go on with, oldest first, those of living owners included.

    That is what was submitted, what a host left that died, and what people want of runs that are entrusted to it.
    """
    given = {"planned": RunStatus.PLANNED.value, "running": RunStatus.RUNNING.value}
    return [
        ToDo(run_id=run_id, host_id=host_id, event_seq=event_seq, asked=asked)
        for run_id, host_id, event_seq, asked in connection.execute(_TO_DO, given)
    ]


def entrust(connection: sqlite3.Connection, run: int) -> None:
    """Leave a run to the service, inside a write transaction."""
    connection.execute("INSERT INTO entrusted (run) VALUES (?) ON CONFLICT DO NOTHING", (run,))


def take_back(connection: sqlite3.Connection, run: int) -> None:
    """Leave a run to whoever works on it now, inside a write transaction."""
    connection.execute("DELETE FROM entrusted WHERE run = ?", (run,))
