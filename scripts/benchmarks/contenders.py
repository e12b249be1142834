"""What is compared: several ways for processes that share a folder to take turns."""

# The protocols say what each method does, and a bare one is bare.
# ruff: noqa: D102, PTH104, PTH108, PTH208

import contextlib
import fcntl
import importlib
import os
import random
import select
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

import fasteners

from hostres.coordinator import Coordinator
from hostres.lease import Lease


def _if_installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


filelock: Any = _if_installed("filelock")
portalocker: Any = _if_installed("portalocker")
snakemake_lease: Any = _if_installed("snakemake_executor_plugin_shared_local.lease")
snakemake_namespace: Any = _if_installed("snakemake_executor_plugin_shared_local.namespace")

THREE: Final = {"ffmpeg": 1, "cpu": 4, "whisper": 1}
THREE_OF: Final = {"ffmpeg": 2, "cpu": 8, "whisper": 2}
"""A claim of three resources, and what the machine has of them."""

FULL_HOUSE: Final = 8
"""Units of the machine in a storm."""


class Slot(Protocol):
    """One process's access to something that one at a time, or so many, may have."""

    title: ClassVar[str]
    installed: ClassVar[bool] = True

    def __init__(self, place: Path) -> None: ...

    def acquire(self) -> Sequence[int]:
        """Wait for it; return the descriptors that a program run under it should inherit."""

    def release(self) -> None:
        """Give it back."""


class BareFlock(Slot):
    """A blocking flock: the kernel's own queue, in the main thread, without a way to give up."""

    title = "flock"

    def __init__(self, place: Path) -> None:
        self._path = place / "slot"
        self._fd = -1

    def acquire(self) -> Sequence[int]:
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        return ()

    def release(self) -> None:
        os.close(self._fd)


class Fasteners(Slot):
    """fasteners' lock between processes as it comes: polls after 10 ms, then ever later, to 100 ms."""

    title = "fasteners"

    def __init__(self, place: Path) -> None:
        self._lock = fasteners.InterProcessLock(str(place / "slot"))

    def acquire(self) -> Sequence[int]:
        self._lock.acquire()
        return ()

    def release(self) -> None:
        self._lock.release()


class FileLock(Slot):
    """filelock's lock as it comes."""

    title = "filelock"
    installed = filelock is not None

    def __init__(self, place: Path) -> None:
        self._lock = filelock.FileLock(place / "slot")

    def acquire(self) -> Sequence[int]:
        self._lock.acquire()
        return ()

    def release(self) -> None:
        self._lock.release()


class BareFifos(Slot):
    """The system calls of our own hand-over and no thought: a queue of FIFOs, each locked, that knows one slot.

    It has no records, no kinds, no checks, and none that is killed or stopped is coped with. So it is the least that
    the protocol costs in Python.
    """

    title = "bare FIFOs"

    def __init__(self, place: Path) -> None:
        self._place = place / "fifos"
        self._place.mkdir(exist_ok=True)
        self._gate = os.open(place / "gate", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._fd = -1

    def acquire(self) -> Sequence[int]:
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        before = max(os.listdir(self._place), default="")
        number = int(before.partition(".")[0]) + 1 if before else 1
        waits = f"{self._place}/{number:012d}.w"
        os.mkfifo(waits, 0o600)
        self._fd = os.open(waits, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        watch = os.open(f"{self._place}/{before}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) if before else -1
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        if watch >= 0:
            self._await(watch)
        fcntl.flock(self._gate, fcntl.LOCK_EX)
        names = os.listdir(self._place)
        os.rename(waits, f"{waits[:-1]}h")
        for name in names:
            if int(name.partition(".")[0]) < number:
                os.unlink(f"{self._place}/{name}")
        fcntl.flock(self._gate, fcntl.LOCK_UN)
        if watch >= 0:
            os.close(watch)
        return ()

    def _await(self, watch: int) -> None:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(watch, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return
        poll = select.poll()
        poll.register(watch, 0)
        poll.poll()

    def release(self) -> None:
        os.close(self._fd)


class Hostres(Slot):
    """A lease of one of `units`."""

    title = "hostres"
    units: ClassVar[int] = 1

    def __init__(self, place: Path) -> None:
        self.coordinator = Coordinator(place / "machine", explicit={"slot": self.units}, environ={})
        self._lease: Lease | None = None

    def acquire(self) -> Sequence[int]:
        self._lease = self.coordinator.lease({"slot": 1})
        return (self._lease.fd,)

    def release(self) -> None:
        assert self._lease is not None
        self._lease.release()


class HostresPair(Hostres):
    """Likewise, of two."""

    units = 2


class HostresThree(Slot):
    """A lease of three resources at once."""

    title = "hostres"

    def __init__(self, place: Path) -> None:
        self._coordinator = Coordinator(place / "machine", explicit=THREE_OF, environ={})
        self._lease: Lease | None = None

    def acquire(self) -> Sequence[int]:
        self._lease = self._coordinator.lease(THREE)
        return (self._lease.fd,)

    def release(self) -> None:
        assert self._lease is not None
        self._lease.release()


class FifoTokens(Slot):
    """Two bytes in a FIFO, as make's job server has them; a killed holder takes its byte along."""

    title = "FIFO tokens"

    def __init__(self, place: Path) -> None:
        path = place / "tokens"
        first = False
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
            first = True
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        if first:
            os.write(self._fd, b"++")

    def acquire(self) -> Sequence[int]:
        os.read(self._fd, 1)
        return ()

    def release(self) -> None:
        os.write(self._fd, b"+")


class PortalockerSemaphore(Slot):
    """portalocker's semaphore of two as it comes; its wait is only made longer."""

    title = "portalocker"
    installed = portalocker is not None

    def __init__(self, place: Path) -> None:
        self._semaphore: Any = portalocker.NamedBoundedSemaphore(2, "bench", directory=str(place), timeout=120)

    def acquire(self) -> Sequence[int]:
        self._semaphore.acquire()
        return ()

    def release(self) -> None:
        self._semaphore.release()


class SnakemakeLeases(Slot):
    """The leases of Snakemake's plugin shared-local: JSON files under a lock, each synced to the disk."""

    title = "shared-local"
    installed = snakemake_lease is not None

    def __init__(self, place: Path) -> None:
        space = snakemake_namespace.Namespace(
            mode="user", path=place, dir_mode=0o700, sticky=False, uid=os.getuid(), gid=os.getgid()
        )
        self._manager = snakemake_lease.LeaseManager(space, THREE_OF, instance_id=f"bench{os.getpid()}")

    def acquire(self) -> Sequence[int]:
        self._manager.acquire("job", THREE)
        return ()

    def release(self) -> None:
        self._manager.release("job")


class Units(Protocol):
    """One process's access to `FULL_HOUSE` units."""

    title: ClassVar[str]

    def __init__(self, place: Path) -> None: ...

    def hold(self, units: int, wait_s: float) -> contextlib.AbstractContextManager[bool]:
        """Take *units* of them, all or none, for as long as the context lasts; it says whether they came in time."""


class SlotFiles(Units):
    """A file a unit, each a flock; whoever finds too few lets go of all and tries again a little later."""

    title = "slot files"
    pause_s: Final = 0.001

    def __init__(self, place: Path) -> None:
        self._paths = [place / f"unit{number}" for number in range(FULL_HOUSE)]

    @contextlib.contextmanager
    def hold(self, units: int, wait_s: float) -> Iterator[bool]:
        until = time.monotonic() + wait_s
        held = self._some(units)
        while len(held) < units and time.monotonic() < until:
            time.sleep(self.pause_s)
            held = self._some(units)
        try:
            yield len(held) == units
        finally:
            for fd in held:
                os.close(fd)

    def _some(self, units: int) -> list[int]:
        held: list[int] = []
        for path in random.sample(self._paths, FULL_HOUSE):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                continue
            held.append(fd)
            if len(held) == units:
                return held
        for fd in held:
            os.close(fd)
        return []
