"""Add up what is held in a folder of tickets, again and again; shares no code with admission.

Usage: stress_observer.py FOLDER CAPACITY, the capacity as JSON. Ends with its standard input. Prints an object
for each excess that it sees, and in the end how often it has looked.
"""

import contextlib
import fcntl
import json
import os
import select
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class _Held(NamedTuple):
    path: Path
    parents: list[str]
    claims: Mapping[str, int]


def excess(place: Path, capacity: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Return what is held past what there is.

    All names are read before any life is asked after: whatever counts was held at the moment in between.
    """
    held: dict[str, _Held] = {}
    for path in place.iterdir():
        letter, *parts = path.name.split(".")
        if letter in ("h", "s") and len(parts) >= 2:
            with contextlib.suppress(OSError, ValueError):
                claims = json.loads((place / f"{parts[0]}.json").read_bytes())["claims"]
                held[parts[0]] = _Held(path, parts[1].split("-") if letter == "s" else [], claims)
    alive = {number: one for number, one in held.items() if _locked(one.path)}
    free = {"the machine": dict(capacity)} | {number: dict(one.claims) for number, one in alive.items()}
    for one in alive.values():
        where = next((parent for parent in one.parents if parent in alive), "the machine")
        for resource, units in one.claims.items():
            free[where][resource] = free[where].get(resource, 0) - units
    over = {where: {name: -n for name, n in units.items() if n < 0} for where, units in free.items()}
    return {where: units for where, units in over.items() if units}


def _locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def main() -> int:
    """Look until standard input ends."""
    place, capacity = Path(sys.argv[1]), json.loads(sys.argv[2])
    looks = 0
    while not select.select([0], [], [], 0.002)[0]:
        looks += 1
        for where, units in excess(place, capacity).items():
            print(json.dumps({"over": units, "at": where}), flush=True)
    print(json.dumps({"looks": looks}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
