"""Play many random runs of the scheduling core: graphs, failures, crashes and people by chance, all from one seed.

Each schedule has a seed of its own, so one that breaks something can be played again by itself. The last line says
what was found; the exit code is 1 if something did not hold.
"""

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.simulation.world import World

BLOCK = 250


def play(seeds: range, *, kill: bool) -> tuple[int, Counter[str], list[tuple[int, str]]]:
    """Play one schedule for each seed.

    Args:
        seeds: Of the schedules.
        kill: Whether each is played again for each of its steps, with the host killed at that step.

    Returns:
        How many were played, how many nodes ended in which status, and for each schedule that broke something its seed
        and why.

    """
    ended: Counter[str] = Counter()
    broken: list[tuple[int, str]] = []
    played = 0

    def once(seed: int, kill_at: int | None) -> int:
        nonlocal played
        played += 1
        world = World(seed, kill_at=kill_at)
        try:
            world.play()
        except Exception:  # noqa: BLE001 - whatever it is, it goes into the report with its seed
            broken.append((seed, f"killed at step {kill_at}: {traceback.format_exc()}"))
        else:
            ended.update(record.status.value for record in world.model.records.values())
        return world.steps

    for seed in seeds:
        steps = once(seed, None)
        for step in range(1, steps) if kill else ():
            once(seed, step)
    return played, ended, broken


def main() -> int:
    """Play the schedules that the arguments ask for, on all CPUs."""
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the first schedule (default 0)")
    parser.add_argument("--schedules", type=int, default=2000, metavar="N", help="how many (default 2000)")
    parser.add_argument(
        "--kill-at-each-step", action="store_true", help="play each again and again, with a kill at each of its steps"
    )
    args = parser.parse_args()
    if args.schedules < 1:
        parser.error("--schedules must be at least 1")
    began = time.monotonic()
    last = args.seed + args.schedules
    block = 1 if args.kill_at_each_step else BLOCK
    blocks = [range(first, min(first + block, last)) for first in range(args.seed, last, block)]
    played = 0
    ended: Counter[str] = Counter()
    broken: list[tuple[int, str]] = []
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for times, ends, breaks in pool.map(partial(play, kill=args.kill_at_each_step), blocks):
            played += times
            ended += ends
            broken += breaks
    for seed, why in broken[:3]:
        print(f"seed {seed}:\n{why}")
    nodes = ", ".join(f"{number} {status}" for status, number in sorted(ended.items()))
    print(f"nodes: {nodes or 'none'}; {time.monotonic() - began:.0f} s")
    if broken:
        print(f"simulate: {len(broken)} of {played} schedules broke something; first: --seed {broken[0][0]}")
        return 1
    print(f"simulate: {played} schedules from seed {args.seed}, everything held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
