"""See `scripts/prove-budgets --help`."""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.crash.paid_calls import torment


def main() -> int:
    """Kill, compare, and say what was found in the last line."""
    parser = argparse.ArgumentParser(
        prog="scripts/prove-budgets",
        description="kill hosts while they pay a service, and compare its charges with the record of the run",
    )
    parser.add_argument("--kills", type=int, default=200, metavar="N", help="so many hosts are killed (default 200)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="decides the moments (default 1)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ |= {
            "HOSTLER_HOME": str(folder / "home"),
            "HOSTLER_MACHINE_DIR": str(folder / "machine"),
            "HOSTLER_CONFIG": str(folder / "config.toml"),
        }
        try:
            found = torment(folder, kills=args.kills, seed=args.seed)
        except AssertionError as error:
            sys.stdout.write(f"prove-budgets: it does not hold, seed {args.seed}: {error}\n")
            return 1
    sys.stdout.write(f"prove-budgets: equal: {found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
