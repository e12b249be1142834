"""Random claims under random kills and stops: never past the capacity, nobody forgotten, nothing left."""

import os
import random
import signal
import time
from collections.abc import Callable

from hostres.folders import machine_folder
from tests.hostres.support import LIMIT_S, Child, children, coordinator, excess, rows

SECONDS = 5.0
WORKERS = 6
CAPACITY = {"cpu": 4, "ffmpeg": 2, "whisper": 1}

WORKER = """
import random
rnd = random.Random({seed})
coordinator = Coordinator(FOLDER)
claims = [{{"cpu": 1}}, {{"cpu": 2, "ffmpeg": 1}}, {{"cpu": 4}}, {{"ffmpeg": 2}}, {{"whisper": 1, "cpu": 1}}]

def turn(inside, units):
    with inside.lease({{"cpu": units}}):
        time.sleep(rnd.random() * 0.003)

def share(lease):
    with Coordinator(FOLDER, environ=lease.environment) as inside:
        units = [rnd.randint(1, lease.claims["cpu"]) for _ in range(3)]
        threads = [threading.Thread(target=turn, args=(inside, each)) for each in units]
        for thread in threads:
            thread.start()
        if rnd.random() < 0.3:
            lease.release()  # what is inside counts by itself
        for thread in threads:
            thread.join()

while True:
    wait = rnd.choice([None, None, None, 0.02])
    keys = rnd.choice([(), (), ("film",)])
    try:
        lease = coordinator.lease(rnd.choice(claims), wait=wait, keys=keys, priority=rnd.choice([0, 0, -10, 10]))
    except HostlerError as error:
        assert error.code == "wait-timeout", error
        continue
    kind = rnd.random()
    if kind < 0.3:
        child = subprocess.Popen(["sleep", str(rnd.random() * 0.02)], pass_fds=[lease.fd])
        if rnd.random() < 0.5:
            lease.release()
        child.wait()
    elif kind < 0.6 and lease.claims.get("cpu", 0) > 1:
        share(lease)
    else:
        time.sleep(rnd.random() * 0.005)
    lease.release()
    say(coordinator.safety_net_progress)
"""


class Crowd:
    """Workers under torment, and an observer."""

    def has_seen_enough(self) -> bool:
        """Say whether there were enough kills, turns and looks to prove something."""
        return self.kills > 5 and self.turns > 30 and self.looks > 50

    def __init__(self, start: Callable[[str], Child], rnd: random.Random) -> None:
        self.start = start
        self.rnd = rnd
        self.kills = self.turns = self.looks = self.rescued = 0
        self.workers = [self.worker(seed) for seed in range(WORKERS)]

    def worker(self, seed: int) -> Child:
        return self.start(WORKER.format(seed=seed))

    def watch(self) -> None:
        assert excess(CAPACITY) == {}
        self.looks += 1
        for one in self.workers:
            while not one.silent():
                self.rescued += int(one.line())
                self.turns += 1

    def kill(self) -> None:
        self.kills += 1
        victim = self.rnd.randrange(WORKERS)
        self.workers[victim].close()
        self.workers[victim] = self.worker(100 + self.kills)

    def end(self) -> None:
        for one in self.workers:
            one.kill()


def nothing_is_left() -> None:
    with coordinator() as machine:
        machine.lease(CAPACITY, wait=LIMIT_S, keys=["film"]).release()
        assert rows() == []
        machine.lease({}).release()
        machine.lease({}).release()
    assert len(list(machine_folder(os.environ).glob("t/*"))) <= 3


def test_under_random_kills_the_capacity_is_never_exceeded_and_nobody_is_forgotten() -> None:
    rnd = random.Random(7)
    with children() as start, coordinator(**CAPACITY) as machine:
        machine.lease({}).release()
        crowd = Crowd(start, rnd)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or not crowd.has_seen_enough():  # on a busy machine it takes longer
            crowd.watch()
            assert crowd.rescued == 0, "a safety-net look was what made progress"
            if rnd.random() < 0.15:
                crowd.kill()
        crowd.end()
        nothing_is_left()
    assert crowd.has_seen_enough()


def test_under_random_stops_the_capacity_is_never_exceeded_and_nobody_is_forgotten() -> None:
    """Stopped are holders and waiters alike; afterwards each of them gets its turn again."""
    rnd = random.Random(8)
    with children() as start, coordinator(**CAPACITY) as machine:
        machine.lease({}).release()
        crowd = Crowd(start, rnd)
        stopped: list[tuple[float, Child]] = []
        until = time.monotonic() + SECONDS
        while (now := time.monotonic()) < until:
            crowd.watch()
            if rnd.random() < 0.1 and len(stopped) < WORKERS - 1:
                victim = rnd.choice(crowd.workers)
                os.kill(victim.pid, signal.SIGSTOP)
                stopped.append((now + rnd.choice((0.01, 0.1, 0.1, 2.5)), victim))
            for at, one in tuple(stopped):
                if at < now:
                    os.kill(one.pid, signal.SIGCONT)
                    stopped.remove((at, one))
        for _, one in stopped:
            os.kill(one.pid, signal.SIGCONT)
        for one in crowd.workers:
            while not one.silent():
                one.line()
        for one in crowd.workers:
            one.line()
            assert excess(CAPACITY) == {}
        crowd.end()
        nothing_is_left()
    assert crowd.turns > 30
