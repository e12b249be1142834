"""Tickets that are moved by hand."""

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
