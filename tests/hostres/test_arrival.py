"""The short way of an ask: whoever comes back to a machine that holds nothing but what it left itself makes no file."""

import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hostres.arrival import Left
from hostres.capacities import set_capacities
from hostres.claim_policy import ClaimPolicy
from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError
from hostres.locks import is_held
from hostres.machine import Machine
from hostres.settings import MachineSettings
from hostres.ticket import Ticket
from hostres.tickets import Record
from hostres.top import snapshot
from tests.hostres.test_killed_at_each_step import MAX_STEPS, STEPS, Doomed

X = {"x": 1}
CAPACITY = MachineSettings(capacity={"x": 1, "y": 1})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One on which this process has been."""
    return been_on(tmp_path / "m")


def been_on(folder: Path, times: int = 1) -> Machine:
    machine = Machine(folder, CAPACITY)
    for _ in range(times):
        leave(machine, ask(machine))
    return machine


def ask(machine: Machine, claims: dict[str, int] = X, command: tuple[str, ...] = ()) -> Ticket:
    return machine.ask(Record(claims=claims, keys=(), asked_boot_ns=boot_ns(), command=command))


def leave(machine: Machine, ticket: Ticket) -> None:
    ticket.withdraw()
    ticket.unwatch()
    ticket.lock.close()
    machine.released(ticket)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where FIFOs are made."""
    places: list[str] = []
    real = os.mkfifo

    def noted(place: str, mode: int) -> None:
        places.append(place)
        real(place, mode)

    monkeypatch.setattr(os, "mkfifo", noted)
    return places


def test_who_comes_back_takes_the_file_that_it_left(machine: Machine, made: list[str]) -> None:
    before = ask(machine)
    leave(machine, before)
    after = ask(machine)
    assert made == []
    assert after.holding
    assert after.number == before.number + 1
    assert after.nonce != before.nonce
    assert after.lock.identity == before.lock.identity
    assert sorted(os.listdir(machine.tickets.place)) == [
        f"{before.number}.json",
        f"{after.number}.json",
        f"h.{after.key}",
    ]
    assert is_held(after.lock.place)
    leave(machine, after)
    assert not is_held(after.lock.place)


def test_what_it_knows_of_tickets_does_not_grow_with_each(machine: Machine) -> None:
    for _ in range(200):
        leave(machine, ask(machine))
    assert len(machine.tickets.known) < 100


@pytest.mark.parametrize("words", [(), ("a",), ("a" * 1000,)])
def test_its_record_is_its_own_whether_it_is_longer_or_shorter(machine: Machine, words: tuple[str, ...]) -> None:
    leave(machine, ask(machine, command=("a" * 100,)))
    ticket = ask(machine, {"y": 1}, words)
    assert machine.tickets.read(ticket.number) == ticket.record
    (row,) = snapshot(machine.folder).tickets
    assert row.claims == {"y": 1}
    leave(machine, ticket)


def test_what_a_child_has_of_the_last_lease_is_taken_still(machine: Machine) -> None:
    last = ask(machine)
    with subprocess.Popen(["sleep", "60"], pass_fds=[last.lock.fd]) as child:
        leave(machine, last)
        waiter = ask(machine)
        assert not waiter.holding
        child.kill()
    hung = waiter.poll(10)
    assert hung == [last.key]
    assert machine.look(waiter, hung=hung)
    leave(machine, waiter)


@pytest.mark.parametrize("claims", [X, {"y": 1}])
def test_who_comes_back_to_others_thinks_of_them(machine: Machine, made: list[str], claims: dict[str, int]) -> None:
    theirs = Machine(machine.folder, CAPACITY)
    other = ask(theirs)
    ticket = ask(machine, claims)
    assert ticket.holding == (claims != X)
    assert len(made) == 2
    for one, of in ((other, theirs), (ticket, machine)):
        leave(of, one)


def test_who_waits_sees_the_end_of_a_ticket_whose_owner_comes_back_at_once(machine: Machine) -> None:
    theirs = Machine(machine.folder, CAPACITY)
    before = ask(machine)
    waiter = ask(theirs)
    leave(machine, before)
    after = ask(machine)
    assert not after.holding
    hung = waiter.poll(0)
    assert hung == [before.key]
    assert theirs.look(waiter, hung=hung)
    for one, of in ((after, machine), (waiter, theirs)):
        leave(of, one)


def test_who_comes_back_goes_by_what_a_person_has_changed_meanwhile(machine: Machine) -> None:
    set_capacities(machine.folder, os.environ, {"x": 0})
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.INVALID_CLAIMS):
        ask(machine)
    set_capacities(machine.folder, os.environ, {"x": 3})
    ticket = ask(machine, {"x": 3})
    assert ticket.holding
    leave(machine, ticket)


def test_who_comes_back_puts_in_force_again_what_it_sets(machine: Machine) -> None:
    """Another process has set something else and left nothing, as its claim was refused."""
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.INVALID_CLAIMS):
        ask(Machine(machine.folder, MachineSettings(capacity={"x": 2})), {"x": 3})
    assert snapshot(machine.folder).capacity["x"] == 2
    leave(machine, ask(machine))
    assert snapshot(machine.folder).capacity["x"] == 1


def test_who_comes_back_gets_what_its_claim_takes_and_no_more_than_there_is(machine: Machine, tmp_path: Path) -> None:
    machine._issuer.policy = ClaimPolicy(takes={"x": {"y": "all"}}, path=tmp_path)
    ticket = ask(machine)
    assert ticket.record.claims == {"x": 1, "y": 1}
    leave(machine, ticket)
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.INVALID_CLAIMS):
        ask(machine, {"x": 2})


@pytest.mark.parametrize(
    ("names", "spare"),
    [
        ("h.4.aa 4.json", 0),
        ("4.json h.4.aa 3.json", 3),
        ("h.4.aa 4.json 5.json", None),
        ("h.4.aa 4.json 3.json 2.json", None),
        ("h.4.aa 4.json w.5.bb", None),
        ("h.4.aa 4.json x.json", None),
        ("h.4.aa 4.json 3", None),
        ("h.4.aa 3.json", None),
        ("h.4.bb 4.json", None),
    ],
)
def test_one_record_is_spare_that_is_older_than_what_was_left(names: str, spare: int | None) -> None:
    """A newer one was of a process that died as it asked, and its number may have been told."""
    left = Left(number=4, name="h.4.aa", record="4.json", identity=(1, 2))
    assert left.spare(names.split()) == spare


def test_another_file_in_the_place_of_the_one_that_was_left_is_not_taken(machine: Machine, made: list[str]) -> None:
    ticket = ask(machine)
    leave(machine, ticket)
    machine._settle()
    machine._arrivals.left = Left.by(ticket)._replace(identity=(0, 1))
    leave(machine, ask(machine))
    assert len(made) == 1


@pytest.mark.parametrize("times", [1, 2])
def test_who_looks_from_outside_sees_whole_tickets_at_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    machine = been_on(tmp_path / "m", times)
    looking, seen = False, []

    def looked(real: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        nonlocal looking
        if not looking:
            looking = True
            seen.append([row.ticket for row in snapshot(machine.folder).tickets])
            looking = False
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, partial(looked, getattr(os, name)))
        ticket = ask(machine)
    assert len(seen) >= 4
    assert {tuple(tickets) for tickets in seen} == {(), (ticket.number - 1,)}
    assert [row.ticket for row in snapshot(machine.folder).tickets] == [ticket.number]
    leave(machine, ticket)


@pytest.mark.parametrize("times", [1, 2])
def test_who_is_killed_while_it_comes_back_leaves_the_machine_free(tmp_path: Path, times: int) -> None:
    for step in range(1, MAX_STEPS):
        folder = tmp_path / str(step)
        theirs = Doomed(step, partial(been_on, folder, times), ask)
        killed = theirs.go()
        assert snapshot(folder).tickets == ()
        numbers = [int(name.split(".")[name[0] == "h"]) for name in os.listdir(folder / "t") if name[0] != "."]
        machine = Machine(folder, CAPACITY)
        ticket = ask(machine, {"x": 1, "y": 1})
        assert ticket.holding
        assert ticket.number > max(numbers)
        leave(machine, ticket)
        leave(machine, ask(machine))
        assert len(os.listdir(folder / "t")) == 3
        if not killed:
            assert step > 4
            break
    else:
        pytest.fail("it never got through")
