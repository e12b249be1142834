"""A waiter that looks after its line and finds what it found before decides nothing, and misses nothing."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hostres.folders import machine_folder
from hostres.gate import Gate
from hostres.listing import DOZING
from hostres.locks import ALIVE, WATCH, poke
from hostres.poller import SAFETY_NET_S
from hostres.ticket import Ticket
from tests.hostres.crowd import Crowd, told
from tests.hostres.support import coordinator, eventually, waiting

NO_HEIR = {"y": 1, "z": 1}


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each time the gate was entered."""
    entered: list[str] = []
    hold = Gate.hold

    def count(gate: Gate, *arguments: object) -> object:
        entered.append(gate.place)
        return hold(gate, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Gate, "hold", count)
    return entered


def look_after(crowd: Crowd, ticket: Ticket) -> bool:
    """Look as one does that stands first or second and that nothing has woken."""
    ticket.look_at((0.0, 0.0, 0.0))
    return crowd.machine.look(ticket, unprompted=True)


def line_of_three(crowd: Crowd) -> tuple[Ticket, Ticket, Ticket, Ticket]:
    """A holder of everything, and three that wait for some of it and have looked once."""
    holder = crowd.ask({"x": 2})
    line = crowd.ask({"x": 1}), crowd.ask({"x": 1}), crowd.ask({"x": 1})
    for ticket in line:
        while told(ticket):
            crowd.look(ticket)
    return (holder, *line)


def test_who_finds_what_it_found_before_needs_no_decision(crowd: Crowd, decisions: list[str]) -> None:
    _, first, second, _ = line_of_three(crowd)
    for ticket in (first, second):
        assert not look_after(crowd, ticket)
    crowd.look(first)
    decisions.clear()
    looks = crowd.machine.safety_net_looks
    for _ in range(3):
        for ticket in (first, second):
            assert not look_after(crowd, ticket)
        assert told(first)  # each time it is asked for a sign of life
        assert not crowd.look(first)
        assert not told(first)
    assert decisions == []
    assert crowd.machine.safety_net_looks == looks + 6


def capacity_changes(crowd: Crowd) -> None:
    state = crowd.machine._state_file.known()
    assert state is not None
    crowd.machine._state_file.write(state._replace(capacity={**state.capacity, "x": 3}))


CHANGES: dict[str, Callable[[Crowd, Ticket, Ticket], object]] = {
    "a holder ends": lambda _, holder, __: holder.lock.close(),
    "the one before ends": lambda _, __, first: first.lock.close(),
    "the one before is gone": lambda _, __, first: first.withdraw(),
    "somebody comes": lambda crowd, _, __: crowd.ask({"y": 1}),
    "the capacity changes": lambda crowd, _, __: capacity_changes(crowd),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_has_changed_is_found_without_a_hang_up_or_a_poke(
    crowd: Crowd, decisions: list[str], change: str
) -> None:
    holder, first, second, _ = line_of_three(crowd)
    look_after(crowd, second)
    crowd.look(first)
    CHANGES[change](crowd, holder, first)
    while first.lock.fd >= 0 and told(first):
        crowd.look(first)
    decisions.clear()
    look_after(crowd, second)
    assert len(decisions) == 1


def test_the_first_of_a_line_finds_the_end_of_a_holder_too(crowd: Crowd, decisions: list[str]) -> None:
    holder, first, _, _ = line_of_three(crowd)
    look_after(crowd, first)
    decisions.clear()
    assert not look_after(crowd, first)
    assert decisions == []
    holder.lock.close()
    assert look_after(crowd, first)
    assert crowd.machine.safety_net_progress == 1


def test_who_gives_no_sign_of_life_is_not_asked_again_but_thought_of(crowd: Crowd, decisions: list[str]) -> None:
    _, first, second, _ = line_of_three(crowd)
    look_after(crowd, second)
    decisions.clear()
    crowd.now_s = 1.0
    look_after(crowd, second)  # it was asked at the last look, and has not moved since
    assert len(decisions) == 1
    crowd.now_s = 2.0
    look_after(crowd, second)
    assert not first.lock.still_there()  # it dozes
    assert not crowd.look(first)
    assert first.lock.still_there()


def test_who_dozes_and_is_told_no_more_than_to_live_stands_up(crowd: Crowd) -> None:
    """Whoever let it doze was killed before it could tell it so."""
    _, first, _, _ = line_of_three(crowd)
    listing = crowd.machine.tickets.scan()
    assert poke(first.lock.place, ALIVE)
    assert crowd.machine.tickets.put(first.waiting, DOZING, listing)
    assert not first.lock.still_there()
    assert not crowd.look(first)
    assert first.lock.still_there()


def test_who_is_asked_for_a_sign_of_life_does_what_else_it_was_told(crowd: Crowd, decisions: list[str]) -> None:
    _, first, second, _ = line_of_three(crowd)
    for words, decided in ((ALIVE, 0), (ALIVE + ALIVE, 0), (ALIVE + WATCH, 1), (WATCH, 1)):
        decisions.clear()
        for word in words:
            assert poke(first.lock.place, bytes([word]))
        assert not crowd.look(first)
        assert len(decisions) == decided
        assert not told(first)
    decisions.clear()
    assert poke(second.lock.place, ALIVE)
    assert not crowd.look(second)  # it may have come to be the first, and is not yet aware of it
    assert len(decisions) == 1


def test_who_lets_others_doze_and_has_told_somebody_looks_again(crowd: Crowd, decisions: list[str]) -> None:
    crowd.ask(NO_HEIR)
    one, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    chief, silent = crowd.ask({"y": 1}), crowd.ask({"x": 1})
    one.lock.close()
    assert not crowd.look(chief)
    assert told(silent)
    look_after(crowd, chief)
    decisions.clear()
    look_after(crowd, chief)
    assert len(decisions) == 1  # somebody is expected to move


def test_a_sign_is_left_all_the_same(crowd: Crowd) -> None:
    _, first, second, third = line_of_three(crowd)
    look_after(crowd, second)
    third.look_at(SAFETY_NET_S)
    for _ in range(2):
        crowd.look(first)
        os.utime(third.pulse.place, ns=(0, 0))
        assert third.pulse.missed()
        look_after(crowd, second)
        assert not third.pulse.missed()


@pytest.mark.parametrize("blocks", [True, False])
def test_who_is_asked_for_a_sign_of_life_again_and_again_looks_by_itself_all_the_same(
    monkeypatch: pytest.MonkeyPatch, blocks: bool
) -> None:
    """Its own look is what finds an end that no watch has told it of."""
    for module in ("coordinator", "poller"):
        monkeypatch.setattr(f"hostres.{module}.SAFETY_NET_S", (0.1, 0.1, 60.0))
    with coordinator(x=1) as machine, ThreadPoolExecutor(1) as beside:
        lease = machine.lease({"x": 1})
        said: list[Any] = []
        if blocks:
            beside.submit(lambda: machine.lease({"x": 1}).release())
        else:
            machine.ask({"x": 1}, notify=said.append)
        waiting(1)
        (place,) = machine_folder(os.environ).glob(f"t/?.{lease.ticket + 1}.*")
        eventually(lambda: poke(str(place), ALIVE) and machine.safety_net_looks >= 3)
        lease.release()
        eventually(lambda: blocks or said)
        for each in said:
            each.lease.release()
