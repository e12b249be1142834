"""Tickets that are moved by hand, and a safety net too wide to help."""

from collections.abc import Iterator

import pytest

from hostres.tickets import TicketFolder
from tests.hostres.crowd import Crowd


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    """Tickets of one process, looked at by hand."""
    one = Crowd()
    yield one
    one.close()


@pytest.fixture
def strangers(crowd: Crowd) -> Iterator[Crowd]:
    """Tickets whose records the other ones have not read."""
    one = Crowd()
    one.machine._gate = crowd.machine._gate
    yield one
    one.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the tickets whose records are read."""
    numbers: list[int] = []
    whole = TicketFolder.read

    def noted(folder: TicketFolder, number: int) -> object:
        numbers.append(number)
        return whole(folder, number)

    monkeypatch.setattr(TicketFolder, "read", noted)
    return numbers


@pytest.fixture
def wide_safety_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a lost wake-up show, since nothing that this process asks for is looked after unprompted."""
    for module in ("poller", "coordinator"):
        monkeypatch.setattr(f"hostres.{module}.SAFETY_NET_S", (600.0, 600.0, 600.0))
