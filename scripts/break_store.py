"""Let the power and the disk fail under the run store, at more moments than the tests have time for.

Each round records a real program with strace and replays it up to 60 power failures, then has the kernel refuse one
write, one sync and one rename, and kill the program at one write and one sync.

What must hold: all that was acknowledged is there, nothing is half there, every refusal is a clear one.
"""

import argparse
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.crash.power import failures, why_no_recording
from tests.crash.test_disk_errors import assert_as_acknowledged, injected
from tests.crash.test_power_loss import check, recorded

CALLS: Final = (
    ("pwrite64", 350, ("error=EIO", "error=ENOSPC", "signal=KILL")),
    ("fsync,fdatasync", 60, ("error=EIO", "signal=KILL")),
    ("rename,unlink", 2, ("error=EROFS",)),
)
FAILURES: Final = 60


def trials(folder: Path, seed: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield what to try in one round, and how.

    Args:
        folder: An empty one.
        seed: Of the random choices.

    """
    log, root = recorded(folder)
    for number, (image, said, how) in enumerate(failures(log, root, folder / "images", seed=seed, number=FAILURES)):
        yield f"power failure {number}, {how} of the unsynced kept", lambda image=image, said=said: check(image, said)
        shutil.rmtree(image)
    rng = random.Random(seed)
    for calls, number, answers in CALLS:
        for answer in answers:
            when = rng.randint(1, number)
            name = f"{answer} at {calls} {when}"
            place = folder / name.replace(" ", "-")

            def fail(calls: str = calls, answer: str = answer, when: int = when, place: Path = place) -> None:
                _, said, home = injected(place, calls, answer, when)
                assert_as_acknowledged(home, said["acknowledged"])

            yield name, fail


def main() -> int:
    """Run it; 0 if everything held."""
    parser = argparse.ArgumentParser(prog="scripts/break-store", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="how many (default: 3)")
    parser.add_argument(
        "--seed", type=int, default=None, metavar="N", help="of the random choices (default: another each time)"
    )
    args = parser.parse_args()
    if why_no_recording():
        print(f"break-store: nothing tried: {why_no_recording()}")
        return 1
    first = random.randrange(10_000) if args.seed is None else args.seed
    tried, broken = 0, []
    for seed in range(first, first + args.rounds):
        folder = Path(tempfile.mkdtemp(prefix="break-store-"))
        try:
            for name, attempt in trials(folder, seed):
                tried += 1
                try:
                    attempt()
                except Exception:  # noqa: BLE001 - whatever it is, the promise did not hold
                    broken.append(f"seed {seed}, {name}")
                    traceback.print_exc()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        print(f"seed {seed}: {tried} tried, {len(broken)} broken", flush=True)
    for each in broken:
        print(f"broken: {each}")
    print(f"break-store: {tried} failures from seed {first}, {len(broken)} promises broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
