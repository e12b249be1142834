"""Torment whole hosts, and see whether they keep their promises.

Several hosts work on one store: steps of every class of resume, with real processes. By chance hosts are killed,
stopped and frozen, their children are killed, runs and nodes are cancelled, and people answer what waits for them. In
the end everybody is left in peace until every run has ended.

What must hold then: every run has ended, its log holds, no body ran twice for one attempt, none again once its node was
completed, no effect of unknown outcome was made again but by a person's word, and of all that lived nothing is left: no
process, no ticket, no host's file.

Five proofs of the same kind are counted in blows instead of seconds: `kills` of hosts at random points, `starts` (and
stops) of hosts during work, `people` who retry, correct, settle and replay what runs of a few nodes wait for, also with
commands, while hosts come and go and the code changes under them, `trees`: kills of hosts whose steps have children
that are deaf to TERM, or in a session of their own, and `cancels` of such steps by another process, which looks whether
what is called cancelled is dead.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from hostler.host import Host
from scripts.soaking.cancelling import Cancelling
from scripts.soaking.checks import check_leftovers, check_proofs, check_runs, read_ledger
from scripts.soaking.flow import FAILING
from scripts.soaking.torment import Plan, Torment
from store.home import Home

CONFIG: Final = "[machine.capacity]\ncpu = 6\nffmpeg = {}\nnetwork = 4\n[service]\ngrace_seconds = 0.3\n"
FINISH_S: Final = 120.0
"""Within so long every run has ended, once nobody is tormented any more."""

STEPS: Final = ("step", "step", "order", "pure", "pay", "code")
PLANS: Final = {
    "soak": Plan(
        hosts=3,
        runs=6,
        nodes=12,
        kinds=("step", "step", "step", "tree", "pay", "order", "pure", "code", "gate", *FAILING, "plug"),
        step_s=0.2,
        pause_s=0.5,
        blows={
            "kill": 4,
            "child": 3,
            "stop": 1,
            "freeze": 2,
            "cancel": 1,
            "edit": 1,
            "command": 1,
            "resume": 1,
            "service": 1,
        },
        lacking=20,
        entrusted=30,
        think_s=0.5,
        by_command=10,
    ),
    "people": Plan(
        hosts=3,
        runs=4,
        nodes=4,
        kinds=("pay", "code", "gate", *FAILING, "plug", "step", "pure"),
        step_s=0.3,
        pause_s=0.6,
        blows={"kill": 3, "stop": 1, "edit": 1, "command": 1, "resume": 1, "service": 2},
        after="bodies",
        lacking=35,
        entrusted=50,
        think_s=3.0,
        by_command=35,
    ),
    "kills": Plan(hosts=2, runs=3, nodes=12, kinds=STEPS, step_s=0.1, pause_s=0.4, blows={"kill": 1}, after="bodies"),
    "starts": Plan(hosts=2, runs=3, nodes=12, kinds=STEPS, step_s=0.1, pause_s=0.4, blows={"stop": 1}, after="bodies"),
    "trees": Plan(
        hosts=2,
        runs=3,
        nodes=4,
        kinds=("tree",),
        step_s=0.2,
        pause_s=0.2,
        blows={"kill": 1},
        after="trees",
    ),
    "cancels": Plan(
        hosts=2,
        runs=6,
        nodes=4,
        kinds=("film", "film", "step"),
        step_s=0.2,
        pause_s=1.0,
        blows={"cancel": 1},
        ffmpeg=16,
    ),
}


def soak(plan: Plan, *, seconds: float, times: int | None, seed: int, folder: Path) -> tuple[str, list[str]]:
    """Torment, let finish, and look.

    Args:
        plan: What is done.
        seconds: For how long at most.
        times: How many blows; None counts none.
        seed: Of all choices.
        folder: An empty one.

    Returns:
        What was done, and what does not hold.

    """
    for name, place in (("HOME", "home"), ("MACHINE_DIR", "machine"), ("CONFIG", "config.toml")):
        os.environ[f"HOSTLER_{name}"] = str(folder / place)
    (folder / "config.toml").write_text(CONFIG.format(plan.ffmpeg))
    (folder / "copies").mkdir()
    (folder / "ledger").touch()
    began_s = time.monotonic()
    with Host(jobs=1) as creator:
        home = Home.open(folder / "home", create=False)
        kind = Cancelling if plan is PLANS["cancels"] else Torment
        torment = kind(folder=folder, plan=plan, chance=random.Random(seed), home=home, creator=creator)
        try:
            torment.go_on(until_s=began_s + seconds, times=times)
            wrong = torment.finish(FINISH_S)
        finally:
            torment.close()
    if times is not None and torment.blows.total() < times:
        wrong.append(f"only {torment.blows.total()} of {times} blows fell within {seconds:g} s")
    wrong += torment.odd + torment.people.odd + torment.service.odd
    wrong += check_runs(folder, home, torment.made, torment.people.cancelled)
    wrong += check_proofs(home)
    children = list(torment.children())
    wrong += check_leftovers(folder, home, children)
    for pid in children:  # it was told; nothing of this soak outlives it
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    blows = ", ".join(f"{times} {blow}" for blow, times in sorted(torment.blows.items()))
    given = ", ".join(f"{times} {kind}" for kind, times in sorted(torment.people.given.items())) or "nothing"
    done = (
        f"seed {seed}: {len(torment.made)} runs, {len(read_ledger(folder))} bodies reached; blows: {blows}; "
        f"people gave: {given}; {time.monotonic() - began_s:.0f} s"
    )
    if isinstance(torment, Cancelling) and torment.took:
        done = f"{done}; {torment.report()}"
    return done, wrong


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/soak", description="Torment whole hosts.", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, metavar="N", help="for how long (default: 300; of a proof: no limit)")
    parser.add_argument("--seed", type=int, metavar="N", help="of the random choices (default: another each time)")
    parser.add_argument("--proof", choices=sorted(PLANS.keys() - {"soak"}), help="count blows of one kind instead")
    parser.add_argument(
        "--times", type=int, metavar="N", help="how many blows (default: 200, of trees and cancels 100)"
    )
    parser.add_argument("--keep", action="store_true", help="keep its folder, and say where it is")
    args = parser.parse_args()
    name = args.proof or "soak"
    times = args.times or ({"soak": None, "trees": 100, "cancels": 100}.get(name, 200))
    seconds = args.seconds or (300.0 if name == "soak" else 24 * 3600.0)
    seed = args.seed if args.seed is not None else random.randrange(1_000_000)
    folder = Path(tempfile.mkdtemp(prefix="hostler-soak-"))
    try:
        done, wrong = soak(PLANS[name], seconds=seconds, times=times, seed=seed, folder=folder)
    finally:
        if args.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(done)
    for line in wrong:
        print(line)
    if wrong:
        print(f"{name}: failed: {len(wrong)} things do not hold, the first: {wrong[0]}")
        return 1
    print(f"{name}: everything held")
    return 0


if __name__ == "__main__":
    sys.exit(main())
