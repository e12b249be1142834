"""What a person has decided about the capacities of the machine: `decisions.json` of the machine folder.

A program that had set a capacity before a person changed it is not at odds with the others: the person has spoken
later. One that sets a capacity afterwards is.
"""

# Plain strings, as in the state beside it.
# ruff: noqa: PTH104, PTH108

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from hostres.claims import MAX_RESOURCES, is_name, is_units
from hostres.clock import boot_id
from hostres.locks import NEW
from hostres.tickets import read_small, write_new

_FORMAT: Final = 1


class Decision(NamedTuple):
    """One capacity as a person wants it.

    Attributes:
        units: How many; None leaves it to the machine, as if nobody had set it.
        boot_ns: When it was decided, on the boot-time clock.

    """

    units: int | None
    boot_ns: int


class DecisionFile:
    """Reads and writes the decisions of this boot; what writes must hold the gate."""

    def __init__(self, folder: str) -> None:
        self.place = f"{folder}/decisions.json"
        self._new = f"{folder}/{NEW}decisions"

    def read(self) -> Mapping[str, Decision]:
        """Return the decisions by resource; none of another boot, and none from a damaged file.

        Without them a program is refused that need not be; never is one admitted that must not.

        Raises:
            HostlerError: `unsafe-state`: the file is not private, or too large.

        """
        try:
            value: Any = json.loads(read_small(self.place))
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        match value:
            case {"format": 1, "boot": str(boot), "decisions": dict(decisions)} if boot == boot_id():
                read = {name: _decision(name, one) for name, one in decisions.items()}
                return {name: one for name, one in read.items() if one is not None}
        return {}

    def write(self, decisions: Mapping[str, Decision]) -> None:
        """Replace the decisions.

        Raises:
            OSError: They cannot be written; the old ones stand.

        """
        self.prepare(decisions)
        self.commit()

    def prepare(self, decisions: Mapping[str, Decision]) -> None:
        """Write the next decisions beside the old ones, which stand until `commit`.

        Only the last ones are kept, as nobody would read a large file; see `read` on what it is to miss one.

        Raises:
            OSError: They cannot be written.

        """
        last = sorted(decisions.items(), key=lambda each: each[1].boot_ns)[-MAX_RESOURCES:]
        text = json.dumps(
            {
                "format": _FORMAT,
                "boot": boot_id(),
                "decisions": {name: {"units": one.units, "boot_ns": one.boot_ns} for name, one in sorted(last)},
            }
        )
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._new)
        write_new(self._new, text.encode())

    def commit(self) -> None:
        """Put in their place what `prepare` wrote.

        Raises:
            OSError: They cannot be renamed; the old ones stand.

        """
        os.rename(self._new, self.place)

    def discard(self) -> None:
        """Take away what `prepare` wrote and nobody put in its place."""
        with contextlib.suppress(OSError):
            os.unlink(self._new)


def _decision(name: str, value: Any) -> Decision | None:
    match value:
        case {"units": units, "boot_ns": int(boot_ns)} if is_name(name):
            if units is None or is_units(units, least=0):
                return Decision(units=units, boot_ns=boot_ns)
    return None
