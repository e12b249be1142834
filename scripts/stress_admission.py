"""Torment the admission of a machine folder of its own, and see whether it keeps its promises.

Workers ask for random claims with random priorities, hold them, pass them to children, ask for parts of them
again, abort and withdraw. Meanwhile random workers and children are killed or stopped for a while, and an
observer adds up what is held all the time, on the machine and inside each ticket. In the end everybody is
asked to finish.

What must hold: never more held than there is; nobody is left waiting; the whole machine is free; no ticket
is left.
"""

import argparse
import contextlib
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from hostres.coordinator import Admitted, Coordinator, Lease, NotAdmitted
from hostres.errors import HostlerError
from hostres.locks import is_held

CAPACITY: Final[Mapping[str, int]] = {"cpu": 4, "ffmpeg": 2, "whisper": 1}
CLAIMS: Final[tuple[Mapping[str, int], ...]] = (
    {"cpu": 1},
    {"cpu": 2, "ffmpeg": 1},
    {"cpu": 3},
    {"cpu": 4, "ffmpeg": 2, "whisper": 1},
    {"ffmpeg": 2},
    {"whisper": 1, "cpu": 1},
    {},
)
ALIKE_S: Final = 1.5
"""For so long all want the same, then anything, and so on."""
STOPS_S: Final = (0.01, 0.01, 0.03, 0.03, 0.1, 0.3, 3.0)
"""How long somebody is stopped; the longest is enough to be passed over."""

OBSERVER: Final = Path(__file__).with_name("stress_observer.py")
FINISH_S: Final = 30.0
"""Within so long everybody has finished, once nobody is tormented any more."""


# -- a worker ----------------------------------------------------------------------------------------------------------


def work(folder: Path, seed: int, news: int) -> None:
    """Ask, hold, ask for parts, until the file `stop` appears; say of each turn how long the wait was."""
    rnd = random.Random(seed)
    with Coordinator(folder / "machine") as coordinator:
        while not (folder / "stop").exists():
            asked_s = time.monotonic()
            lease = _withdrawn(coordinator, rnd) if rnd.random() < 0.15 else _leased(coordinator, rnd)
            if lease is None:
                continue
            os.write(news, f"{time.monotonic() - asked_s:.3f}\n".encode())
            with lease:
                _use(folder, lease, rnd)


def part(folder: Path, seed: int) -> None:
    """Ask for a part of the lease under which this process runs, and hold it for a moment."""
    rnd = random.Random(seed)
    with Coordinator(folder / "machine") as coordinator, contextlib.suppress(HostlerError):
        for _ in range(3):
            with coordinator.lease({"cpu": rnd.randint(1, 2)}):
                time.sleep(rnd.random() * 0.02)


def _all_alike() -> bool:
    """Return whether for a while all want the same, so that one is the heir of the other."""
    return int(time.monotonic() / ALIKE_S) % 2 == 0


def _claims(rnd: random.Random) -> Mapping[str, int]:
    return {"whisper": 1} if _all_alike() else rnd.choice(CLAIMS)


def _leased(coordinator: Coordinator, rnd: random.Random) -> Lease | None:
    wait_s = rnd.choice((None, None, None, 0.02))
    keys = () if _all_alike() else rnd.choice(((), (), ("film",)))
    priority = 0 if _all_alike() else rnd.choice((0, 0, -10, 10))
    try:
        return coordinator.lease(_claims(rnd), wait=wait_s, keys=keys, priority=priority)
    except HostlerError as error:
        if error.code != "wait-timeout":
            raise
        return None


def _withdrawn(coordinator: Coordinator, rnd: random.Random) -> Lease | None:
    """Ask without blocking, and perhaps think better of it."""
    answered, mutex = threading.Event(), threading.Lock()
    leases: list[Lease] = []
    patience_s = rnd.random() * 0.05

    def notify(answer: Admitted | NotAdmitted) -> None:
        if isinstance(answer, Admitted):
            with mutex:
                if withdrawn:
                    answer.lease.release()
                else:
                    leases.append(answer.lease)
        answered.set()

    withdrawn = False
    ask = coordinator.ask(_claims(rnd), notify=notify)
    answered.wait(patience_s)
    with mutex:
        withdrawn = not leases
    ask.withdraw()
    return leases[0] if leases else None


def _use(folder: Path, lease: Lease, rnd: random.Random) -> None:
    kind = rnd.random()
    if kind < 0.2:
        child = subprocess.Popen(["sleep", f"{rnd.random() * 0.05:.3f}"], pass_fds=[lease.fd])
        if rnd.random() < 0.5:
            lease.release()  # the child keeps it
        child.wait()
    elif kind < 0.3 and lease.claims.get("cpu", 0) > 1:
        words = [sys.executable, __file__, "--part", str(rnd.getrandbits(32)), "--folder", str(folder)]
        fds = rnd.choice(([lease.fd], []))
        children = [subprocess.Popen(words, env={**os.environ, **lease.environment}, pass_fds=fds) for _ in range(2)]
        if rnd.random() < 0.5:
            lease.release()
        for child in children:
            child.wait()
    elif kind < 0.5 and lease.claims.get("cpu", 0) > 1:
        _share(folder, lease, rnd)
    else:
        time.sleep(rnd.random() * 0.005)


def _share(folder: Path, lease: Lease, rnd: random.Random) -> None:
    """Let threads take turns at parts of a lease."""
    with Coordinator(folder / "machine", environ=lease.environment) as inside:

        def turn(units: int, hold_s: float) -> None:
            with inside.lease({"cpu": units}):
                time.sleep(hold_s)

        threads = [
            threading.Thread(target=turn, args=(rnd.randint(1, lease.claims["cpu"]), rnd.random() * 0.01))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


# -- the torment -------------------------------------------------------------------------------------------------------


class Torment:
    """The processes of one run, and what became of them.

    Attributes:
        waits_s: How long each admitted worker had waited.
        kills: How many processes were killed.
        stops: How many were stopped for a while.

    """

    def __init__(self, folder: Path, workers: int, seed: int) -> None:
        self.waits_s: list[float] = []
        self.kills = self.stops = 0
        self._folder = folder
        self._rnd = random.Random(seed)
        self._marker = f"HOSTLER_MACHINE_DIR={folder}/machine".encode()
        self._news, self._say = os.pipe2(os.O_NONBLOCK)
        os.set_blocking(self._say, True)
        self._heard = b""
        self._stopped: list[tuple[float, int]] = []
        self._killed: set[int] = set()
        self._failed: list[str] = []
        self._seeds = iter(range(seed * 100_000, (seed + 1) * 100_000))
        self._workers = [self._start() for _ in range(workers)]

    def go_on(self, until_s: float, least: int) -> None:
        """Torment until the monotonic second *until_s*, and until *least* turns, kills and stops have been seen."""
        while (now_s := time.monotonic()) < until_s or min(len(self.waits_s), self.kills, self.stops) < least:
            select.select([self._news], [], [], 0.03)
            self.listen()
            for stopped in tuple(self._stopped):
                if stopped[0] <= now_s:
                    self._resume(stopped)
            luck = self._rnd.random()
            if luck < 0.25 and (victim := self._victim()) is not None:
                pid, pidfd = victim
                if luck < 0.12:
                    self.kills += 1
                    self._killed.add(pid)
                    _send(pidfd, signal.SIGKILL)
                    os.close(pidfd)
                else:
                    self.stops += 1
                    _send(pidfd, signal.SIGSTOP)
                    self._stopped.append((now_s + self._rnd.choice(STOPS_S), pidfd))
            for place, worker in enumerate(self._workers):
                if worker.poll() is not None:
                    self._check(worker)
                    self._workers[place] = self._start()

    def finish(self) -> list[str]:
        """Let everybody finish; return what does not hold."""
        for stopped in tuple(self._stopped):
            self._resume(stopped)
        (self._folder / "stop").touch()
        until_s = time.monotonic() + FINISH_S
        while self._living() and time.monotonic() < until_s:
            select.select([self._news], [], [], 0.05)
            self.listen()
        wrong = [f"{len(left)} processes did not finish within {FINISH_S:g} s"] if (left := self._living()) else []
        for worker in self._workers:
            if worker.poll() is not None:
                self._check(worker)
        return wrong + self._failed

    def listen(self) -> None:
        """Take what the workers say."""
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(self._news, 65536):
                self._heard += piece
        *lines, self._heard = self._heard.split(b"\n")
        self.waits_s += map(float, lines)

    def close(self) -> None:
        """End whatever is left."""
        for stopped in tuple(self._stopped):
            self._resume(stopped)
        while living := self._living():
            for pid in living:
                if (pidfd := self._open(pid)) is not None:
                    _send(pidfd, signal.SIGKILL)
                    os.close(pidfd)
            time.sleep(0.01)
        os.close(self._news)
        os.close(self._say)

    def _start(self) -> "subprocess.Popen[bytes]":
        seed = next(self._seeds)
        words = [sys.executable, __file__, "--worker", str(seed), "--folder", str(self._folder)]
        return subprocess.Popen([*words, "--news", str(self._say)], pass_fds=[self._say], stdin=subprocess.DEVNULL)

    def _living(self) -> list[int]:
        """Return the processes of this run but the observer: workers, their children and grandchildren."""
        for worker in self._workers:
            worker.poll()  # reaped, if it has ended
        return [pid for pid in _pids() if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            return self._marker in environ and str(OBSERVER).encode() not in words and pid != os.getpid()
        return False

    def _check(self, worker: "subprocess.Popen[bytes]") -> None:
        """Take note of a worker that did not end well, unless it was killed, which may take effect only later."""
        killed = worker.pid in self._killed
        self._killed.discard(worker.pid)
        if worker.returncode and not (killed and worker.returncode == -signal.SIGKILL):
            self._failed.append(f"a worker ended with code {worker.returncode}")

    def _victim(self) -> tuple[int, int] | None:
        """Return pid and descriptor of any process of this run, None if there is none."""
        living = self._living()
        pid = self._rnd.choice(living) if living else 0
        pidfd = self._open(pid) if pid else None
        return None if pidfd is None else (pid, pidfd)

    def _open(self, pid: int) -> int | None:
        """Return a descriptor of the very process *pid*, None if it has gone."""
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:
            return None
        if self._is_ours(pid):
            return pidfd
        os.close(pidfd)
        return None

    def _resume(self, stopped: tuple[float, int]) -> None:
        self._stopped.remove(stopped)
        _send(stopped[1], signal.SIGCONT)
        os.close(stopped[1])


def _send(pidfd: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _pids() -> Iterator[int]:
    return (int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal())


def check_end(folder: Path) -> list[str]:
    """Return what does not hold once everybody has finished."""
    wrong = []
    with Coordinator(folder / "machine", environ={}) as machine:
        try:
            machine.lease(CAPACITY, wait=FINISH_S, keys=["film"]).release()
        except HostlerError as error:
            wrong.append(f"the whole machine is not free: {error.what}")
        for _ in range(3):
            machine.lease({}).release()  # sweeps what the dead have left, a bounded number each time
    tickets = [path for path in (folder / "machine" / "t").iterdir() if path.suffix != ".json" and is_held(path)]
    wrong += [f"ticket {path.name} is left" for path in tickets]
    return wrong


def run(seconds: float, least: int, workers: int, seed: int, folder: Path) -> int:
    """Torment, let finish, and say what was found; 0 if everything holds."""
    os.environ["HOSTLER_MACHINE_DIR"] = f"{folder}/machine"
    os.environ.pop("HOSTLER_LEASE", None)
    with Coordinator(folder / "machine", explicit=CAPACITY) as machine:
        machine.lease({}).release()
    observer = subprocess.Popen(
        [sys.executable, str(OBSERVER), f"{folder}/machine/t", json.dumps(CAPACITY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    torment = Torment(folder, workers, seed)
    try:
        torment.go_on(time.monotonic() + seconds, least)
        wrong = torment.finish()
        wrong += check_end(folder)
    finally:
        torment.close()
        said, _ = observer.communicate()
    *over, last = (json.loads(line) for line in said.splitlines())
    wrong = [f"more held than there is, {one['over']} on {one['at']}" for one in over[:5]] + wrong
    looks = last.get("looks", 0)
    if looks < 1 or not torment.waits_s:
        wrong.append("too little was seen to say anything")
    print(
        f"seed {seed}: {len(torment.waits_s)} turns, {torment.kills} kills, {torment.stops} stops, {looks} looks of "
        f"the observer; longest wait {max(torment.waits_s, default=0):.1f} s"
    )
    for line in wrong:
        print(line)
    if wrong:
        print(f"stress-admission: failed: {len(wrong)} promises broken, the first: {wrong[0]}")
        return 1
    print("stress-admission: never more held than there is, no waiter forgotten, no ticket left")
    return 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="scripts/stress-admission", description="Torment admission.")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="N", help="for how long (default: 20)")
    parser.add_argument(
        "--least", type=int, default=1, metavar="N", help="longer, until so many turns, kills and stops (default: 1)"
    )
    parser.add_argument("--workers", type=int, default=8, metavar="N", help="how many (default: 8)")
    parser.add_argument(
        "--seed", type=int, default=None, metavar="N", help="of the random choices (default: another each time)"
    )
    for inner in ("--worker", "--part", "--folder", "--news"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(Path(args.folder), int(args.worker), int(args.news))
        return 0
    if args.part:
        part(Path(args.folder), int(args.part))
        return 0
    if args.seconds <= 0 or args.workers < 1:
        parser.error("some seconds, and at least one worker")
    folder = Path(tempfile.mkdtemp(prefix="stress-admission-"))
    try:
        seed = random.randrange(10_000) if args.seed is None else args.seed
        return run(args.seconds, args.least, args.workers, seed, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
