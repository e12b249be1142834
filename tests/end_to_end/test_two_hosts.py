"""Two programs on one machine: what they hold together never exceeds it, as their own logs prove."""

import itertools
import json
from collections import Counter

from tests.crash.support import events, hosting, top

FLOW = """
import random
import time

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Size(BaseModel):
    seconds: float


def work(name, **claims):
    @operation(f"test.{name}", version=1, policy=Policy(effect="local-read", claims=claims))
    def held(ctx, input: Size) -> Size:
        time.sleep(input.seconds)
        return input

    return held


class Meeting(BaseModel):
    seed: int


@operation("test.meet", version=1, policy=Policy(effect="local-read", max_seconds=60))
def meet(ctx, input: Meeting) -> Meeting:
    # until the other program is there too, so that they have to share
    (ctx.folder / f"there.{input.seed}").touch()
    while not all((ctx.folder / f"there.{seed}").exists() for seed in (1, 2)):
        ctx.check_cancelled()
        time.sleep(0.005)
    return input


KINDS = [
    work("encode", ffmpeg=1, cpu=1),
    work("both", ffmpeg=2),
    work("speech", whisper=1, cpu=1),
    work("wide", cpu=2),
]


@workflow("crowd", version=1)
def crowd(build, seed: int):
    rng = random.Random(seed)
    met = build.call(meet, key="meet", input={"seed": seed})
    for index in range(20):
        kind = KINDS[index % len(KINDS)]
        build.call(kind, key=f"n{index:02d}", input={"seconds": rng.uniform(0.005, 0.04)}, after=[met])
    return {}
"""

CAPACITY = {"cpu": 2, "ffmpeg": 2, "whisper": 1}


def holdings(log) -> dict[int, tuple[int, int, dict[str, int]]]:
    """Return ticket → (admitted, released, claims) from the events of one run."""
    admitted = {
        event["data"]["ticket"]: (event["data"]["admitted_boot_ns"], event["data"]["claims"])
        for event in log
        if event["kind"] == "node-running" and event["data"]["ticket"] is not None
    }
    released = {
        event["data"]["ticket"]: event["data"]["released_boot_ns"] for event in log if event["kind"] == "lease-released"
    }
    assert admitted.keys() == released.keys()
    return {ticket: (start, released[ticket], claims) for ticket, (start, claims) in admitted.items()}


def test_two_hosts_with_40_nodes_never_hold_more_than_the_machine_has(tmp_path):
    flow = tmp_path / "crowd.py"
    flow.write_text(FLOW)
    config = tmp_path / "config.toml"
    config.write_text("[machine.capacity]\n" + "".join(f"{name} = {units}\n" for name, units in CAPACITY.items()))

    with (
        hosting("run", str(flow), "-i", "seed=1", "--jobs", "6", cwd=tmp_path) as one,
        hosting("run", str(flow), "-i", "seed=2", "--jobs", "6", cwd=tmp_path) as other,
    ):
        said = [host.communicate(timeout=60)[0] for host in (one, other)]
        assert [one.returncode, other.returncode] == [0, 0], said
    logs = [events(text.splitlines()[0]) for text in said]

    held = [holdings(log) for log in logs]
    assert [len(each) for each in held] == [20, 20]
    assert not held[0].keys() & held[1].keys(), "one ticket number was given twice"
    changes = sorted(
        itertools.chain.from_iterable(
            ((start, 1, claims), (end, 0, claims)) for each in held for start, end, claims in each.values()
        ),
        key=lambda change: change[:2],
    )
    in_use: Counter[str] = Counter()
    together = 0
    for _, begins, claims in changes:
        for name, units in claims.items():
            in_use[name] += units if begins else -units
        assert all(in_use[name] <= CAPACITY[name] for name in in_use), (dict(in_use), json.dumps(claims))
        together = max(together, sum(in_use.values()))
    assert together > 2, "the test never had two holders at once"
    first, last = (min(start for start, _, _ in each.values()) for each in held)
    ends = [max(end for _, end, _ in each.values()) for each in held]
    assert max(first, last) < min(ends), "the two programs did not overlap"
    assert top()["tickets"] == []
