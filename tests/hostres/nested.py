"""What the tests of leases inside each other share: who asks under one, and who waits there."""

import contextlib
import os
from collections.abc import Iterator, Mapping

import pytest

from hostres.coordinator import Admitted, Coordinator, Lease, NotAdmitted
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from tests.hostres.support import eventually

WIDE = """
import hostres.coordinator
hostres.coordinator.SAFETY_NET_S = (600.0, 600.0, 600.0)  # a lost wake-up shows
"""

ASKER = (
    WIDE
    + """
coordinator = Coordinator(FOLDER)
say("asks")
try:
    lease = coordinator.lease({claims!r}, keys={keys!r})
except HostlerError as error:
    say(error.code, error.what)
else:
    say("held", lease.ticket, coordinator.safety_net_progress)
    hear()
    lease.release()
    say("released")
hear()
"""
)


def asker(claims: dict[str, int], *, keys: tuple[str, ...] = ()) -> str:
    return ASKER.format(claims=claims, keys=keys)


def refused(code: Code, match: str | None = None) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, match=match, check=lambda error: error.code is code)


@contextlib.contextmanager
def under(environment: Mapping[str, str]) -> Iterator[Coordinator]:
    """A coordinator as a process has it that was started with such an environment."""
    with Coordinator(machine_folder(os.environ), environ=environment) as inner:
        yield inner


def names(letter: str) -> list[str]:
    return sorted(path.name for path in machine_folder(os.environ).glob(f"t/{letter}.*") if path.suffix != ".json")


def inside(count: int) -> None:
    """Wait until *count* tickets wait inside others."""
    eventually(lambda: len([name for name in names("w") if len(name.split(".")) == 4]) == count)


class Told(list[Admitted | NotAdmitted]):
    """Collects what `notify` is told."""

    def lease(self) -> Lease:
        eventually(lambda: self)
        answer = self.pop(0)
        assert isinstance(answer, Admitted)
        return answer.lease

    def error(self) -> HostlerError:
        eventually(lambda: self)
        answer = self.pop(0)
        assert isinstance(answer, NotAdmitted)
        return answer.error
