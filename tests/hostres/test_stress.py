"""Random claims under random SIGKILLs: never past the capacity, nobody forgotten, nothing left."""

import os
import random
import time
from collections.abc import Mapping

from hostres.folders import machine_folder
from tests.hostres.support import LIMIT_S, Child, children, coordinator, rows

SECONDS = 5.0
WORKERS = 6
CAPACITY = {"cpu": 4, "ffmpeg": 2, "whisper": 1}

WORKER = """
import random
rnd = random.Random({seed})
coordinator = Coordinator(FOLDER)
claims = [{{"cpu": 1}}, {{"cpu": 2, "ffmpeg": 1}}, {{"cpu": 4}}, {{"ffmpeg": 2}}, {{"whisper": 1, "cpu": 1}}]
while True:
    wait = rnd.choice([None, None, None, 0.02])
    keys = rnd.choice([(), (), ("film",)])
    try:
        lease = coordinator.lease(rnd.choice(claims), wait=wait, keys=keys)
    except HostlerError as error:
        assert error.code == "wait-timeout", error
        continue
    if rnd.random() < 0.3:
        child = subprocess.Popen(["sleep", str(rnd.random() * 0.02)], pass_fds=[lease.fd])
        if rnd.random() < 0.5:
            lease.release()
        child.wait()
    else:
        time.sleep(rnd.random() * 0.005)
    lease.release()
    say(coordinator.safety_net_progress)
"""


def over(capacity: Mapping[str, int]) -> dict[str, int]:
    """What is admitted past the capacity, as an observer without the gate sees it."""
    used: dict[str, int] = {}
    for row in rows("admitted"):
        for name, units in row.claims.items():
            used[name] = used.get(name, 0) + units
    return {name: units for name, units in used.items() if units > capacity[name]}


def test_under_random_kills_the_capacity_is_never_exceeded_and_nobody_is_forgotten() -> None:
    rnd = random.Random(7)
    kills = turns = looks = 0
    with children() as start, coordinator(**CAPACITY) as machine:
        machine.lease({}).release()

        def worker(seed: int) -> Child:
            return start(WORKER.format(seed=seed))

        workers = [worker(seed) for seed in range(WORKERS)]
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            assert over(CAPACITY) == {}
            looks += 1
            victim = rnd.randrange(WORKERS)
            if rnd.random() < 0.15:
                workers[victim].close()
                kills += 1
                workers[victim] = worker(100 + kills)
            for one in workers:
                while not one.silent():
                    assert one.line() == "0", "a safety-net look was what made progress"
                    turns += 1
        for one in workers:
            one.kill()
        machine.lease(CAPACITY, wait=LIMIT_S, keys=["film"]).release()
        assert rows() == []
        machine.lease({}).release()
        assert len(list(machine_folder(os.environ).glob("t/*"))) <= 3
    assert kills > 5
    assert turns > 100
    assert looks > 50
