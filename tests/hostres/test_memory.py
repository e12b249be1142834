"""Memory is admitted by what claims leave, and where the configuration asks for it by what is really available."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from hostres import memory
from hostres.claim_policy import ClaimPolicy
from hostres.clock import boot_ns
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.listing import Listing
from hostres.machine import Machine
from hostres.memory import SETTLING_S, attainable, available_mb
from hostres.queue import Demand, decide
from hostres.settings import MachineSettings, machine_settings
from hostres.ticket import Ticket
from hostres.tickets import Record
from tests.hostres.support import LIMIT_S, Child, children, coordinator, eventually, held, rows, waiting

HOSTLER = (sys.executable, "-m", "hostler")
SECOND = 1_000_000_000
CAPACITY = {"memory-mb": 8000, "ffmpeg": 2}

WAITER = """
import hostres.memory
from hostres.settings import MachineSettings
hostres.memory.MEMINFO = {meminfo!r}
coordinator = Coordinator(FOLDER, explicit={capacity!r}, settings=MachineSettings(real_memory={real}))
lease = coordinator.lease({claims!r}, name={name!r})
say("held", coordinator.safety_net_looks, coordinator.safety_net_progress)
hear()
"""


@pytest.fixture
def meminfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the system says, in this process and in those that `waiter` starts."""
    path = tmp_path / "meminfo"
    monkeypatch.setattr(memory, "MEMINFO", str(path))
    return path


def say(meminfo: Path, megabytes: int) -> None:
    draft = meminfo.with_suffix(".new")
    draft.write_text(f"MemTotal:  16000000 kB\nMemFree:  1 kB\nMemAvailable: {megabytes * 1024} kB\n")
    draft.rename(meminfo)


def waiter(meminfo: Path, claims: dict[str, int], name: str = "", *, real: bool | None = None) -> str:
    return WAITER.format(meminfo=str(meminfo), capacity=CAPACITY, claims=claims, name=name, real=real)


@pytest.fixture
def real(meminfo: Path) -> "Iterator[Coordinator]":
    """A machine where available memory counts; this process holds nothing."""
    say(meminfo, 6000)
    settings = MachineSettings(real_memory=True)
    with Coordinator(machine_folder(os.environ), explicit=CAPACITY, settings=settings) as machine:
        machine.lease({}).release()
        yield machine


@pytest.mark.parametrize(
    ("held", "available", "most"),
    [
        ([], 6000, 6000),
        ([], 9000, 8000),
        ([], -1, 0),
        ([(3000, 0)], 2000, 5000),
        ([(3000, 0)], 7000, 8000),
        ([(3000, 95)], 7000, 7000),
        ([(3000, 95)], 2000, 3000),
        ([(3000, 95), (1000, 0)], 4500, 5500),
        ([(3000, 105)], 2000, 5000),
    ],
)
def test_as_much_can_be_had_as_tickets_and_what_is_available_make_together(
    held: list[tuple[int, float]], available: int, most: int
) -> None:
    """What was admitted in the last seconds counts as not yet taken; a clock set back makes nothing young."""
    assert SETTLING_S == 10
    found = attainable(CAPACITY, held, available, now_unix_s=100)
    assert found == {"memory-mb": most, "ffmpeg": 2}


def demand(number: int, **units: int) -> Demand:
    return Demand(number=number, units={name.replace("_", "-"): count for name, count in units.items()})


@pytest.mark.parametrize("available", range(0, 9000, 500))
@pytest.mark.parametrize("held", [0, 1000, 4000])
def test_what_only_other_programs_could_give_back_is_kept_for_nobody(available: int, held: int) -> None:
    """A patient waiter keeps others from what tickets will give back to it, and from nothing for whose end none can tell."""
    room = attainable(CAPACITY, [(held, 0.0)] if held else [], available, now_unix_s=100)
    patient, small, other = demand(2, memory_mb=5000, ffmpeg=1), demand(3, memory_mb=500), demand(4, ffmpeg=2)
    holders = [demand(1, memory_mb=held)] if held else []
    found = decide(holders, [patient, small, other], room, patience_ns=0, now_boot_ns=SECOND)
    free = room["memory-mb"] - held
    if free >= 5000:
        assert 2 in found.go
    elif available + held >= 5000:  # it starts once the ticket ends
        assert found.reserved_for == 2
        assert (3 in found.go) == (min(free, room["memory-mb"] - 5000) >= 500)
        assert 4 not in found.go
    else:
        assert found.reserved_for != 2
        assert (3 in found.go) == (free >= 500)
        assert 4 in found.go


def watched_by(child: Child) -> int:
    """How many tickets a waiter has open beside its own."""
    found = 0
    for fd in Path(f"/proc/{child.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it closes one while we look
            found += "/t/" in os.readlink(fd)
    return found - 1


def test_a_waiter_goes_once_memory_is_there_and_passes_nobody_by_meanwhile(meminfo: Path, real: Coordinator) -> None:
    """No event tells of it, so it looks as often as the safety net; others, also with ffmpeg, go past it."""
    say(meminfo, 1000)
    with children() as start:
        big: Child = start(waiter(meminfo, {"memory-mb": 3000, "ffmpeg": 1}, "big"))
        waiting(1)
        with held(real.lease({"ffmpeg": 1}, wait=LIMIT_S)), held(real.lease({"memory-mb": 900}, wait=LIMIT_S)):
            (row,) = rows("waiting")
            assert [str(why) for why in row.blocked_by] == ["memory-mb: wants 3000, 100 really available"]
            eventually(lambda: watched_by(big) == 2)  # it has seen all that happens
            assert big.silent()
            say(meminfo, 4500)
            word, looks, progress = big.line().split()
        assert word == "held"
        assert int(looks) >= 1
        assert int(progress) == 0  # of what an event should have brought


def test_those_behind_it_are_told_by_the_first_that_memory_is_there(meminfo: Path, real: Coordinator) -> None:
    """Who is third looks once a minute by itself."""
    say(meminfo, 100)
    with children() as start:
        crowd = []
        for number in range(4):
            crowd.append(start(waiter(meminfo, {"memory-mb": 1000})))
            waiting(number + 1)
        say(meminfo, 100_000)
        for one in crowd:
            assert one.line().startswith("held")


def test_what_was_admitted_a_moment_ago_counts_as_not_yet_taken(meminfo: Path, real: Coordinator) -> None:
    say(meminfo, 4000)
    with held(real.lease({"memory-mb": 3000})):
        with pytest.raises(HostlerError) as late:
            real.lease({"memory-mb": 1500}, wait=0)
        assert late.value.code is Code.WAIT_TIMEOUT
        assert "memory-mb: wants 1500, 1000 really available" in late.value.what
        real.lease({"memory-mb": 900}, wait=0).release()


def test_the_release_of_memory_is_an_event_as_any_other(meminfo: Path, real: Coordinator) -> None:
    say(meminfo, 3000)
    holder = real.lease({"memory-mb": 3000})
    with children() as start:
        next_one = start(waiter(meminfo, {"memory-mb": 2500}))
        waiting(1)
        holder.release()
        assert next_one.line().startswith("held")


def by_hand(*claims: dict[str, int]) -> tuple[Machine, list[Ticket]]:
    machine = Machine(machine_folder(os.environ), MachineSettings(capacity=CAPACITY, real_memory=True))
    return machine, [machine.ask(Record(claims=one, keys=(), asked_boot_ns=boot_ns())) for one in claims]


def leave(tickets: list[Ticket]) -> None:
    for ticket in tickets:
        ticket.withdraw()
        ticket.unwatch()
        ticket.lock.close()


def test_who_takes_over_what_has_come_free_looks_whether_so_much_memory_is_there(meminfo: Path) -> None:
    """The names alone do not tell."""
    say(meminfo, 6000)
    machine, tickets = by_hand({"memory-mb": 6000}, {"memory-mb": 6000})
    holder, heir = tickets
    holder.lock.close()
    say(meminfo, 5999)
    hung = heir.poll(LIMIT_S) or []
    assert hung == [holder.key]
    assert not machine.look(heir, hung=hung)
    say(meminfo, 6000)
    assert machine.look(heir, unprompted=True)
    leave(tickets)


@pytest.mark.parametrize("beside", [False, True])
def test_what_a_claim_takes_of_memory_is_looked_for_however_it_was_claimed(
    meminfo: Path, tmp_path: Path, beside: bool
) -> None:
    """`ffmpeg = { memory-mb = 2000 }`: the names alone do not tell whether there is so much."""
    policy = ClaimPolicy(takes={"ffmpeg": {"memory-mb": 2000}}, path=tmp_path)
    settings = MachineSettings(capacity={**CAPACITY, "x": 1}, real_memory=True, claims=policy)
    with Coordinator(machine_folder(os.environ), settings=settings) as machine, contextlib.ExitStack() as others:
        if beside:
            others.enter_context(held(machine.lease({"x": 1})))
        say(meminfo, 8000)
        for _ in range(2):
            machine.lease({"ffmpeg": 1}).release()
        say(meminfo, 100)
        with pytest.raises(HostlerError, match="no room for ffmpeg=1"):
            machine.lease({"ffmpeg": 1}, wait=0)


def test_who_waits_for_memory_behind_an_equal_is_thought_of(meminfo: Path) -> None:
    """There may be more by now than when that one asked."""
    say(meminfo, 3000)
    machine, tickets = by_hand({"memory-mb": 3000}, {"memory-mb": 2000}, {"memory-mb": 2000})
    with mock.patch.object(Listing, "of", wraps=Listing.of) as listed:
        tickets.append(machine.ask(tickets[-1].record))
    assert listed.called
    assert [ticket.holding for ticket in tickets] == [True, False, False, False]
    leave(tickets)


def test_memory_that_is_left_over_is_told_to_whoever_waits_for_it(meminfo: Path) -> None:
    say(meminfo, 8000)
    machine, tickets = by_hand({"memory-mb": 8000, "ffmpeg": 2}, {"ffmpeg": 2}, {"memory-mb": 3000})
    holder, heir, behind = tickets
    holder.lock.close()
    assert machine.look(heir, hung=heir.poll(LIMIT_S) or ())
    assert behind.poll(0) is not None
    assert machine.look(behind)
    leave(tickets)


def test_it_holds_for_programs_that_set_nothing_until_one_takes_it_back(meminfo: Path, real: Coordinator) -> None:
    say(meminfo, 1000)
    with coordinator(**{"memory-mb": 8000, "ffmpeg": 2}) as stranger:
        with pytest.raises(HostlerError):
            stranger.lease({"memory-mb": 3000}, wait=0)
        with children() as start:
            back = start(waiter(meminfo, {"memory-mb": 3000}, real=False))
            assert back.line().startswith("held")
            stranger.lease({"memory-mb": 3000}, wait=0).release()


def test_a_waiter_is_let_go_when_the_rule_is_taken_back(meminfo: Path, real: Coordinator) -> None:
    say(meminfo, 1000)
    with children() as start:
        blocked = start(waiter(meminfo, {"memory-mb": 3000}))
        waiting(1)
        start(waiter(meminfo, {}, real=False)).line()
        assert blocked.line().startswith("held")


def test_parts_of_a_lease_are_measured_by_that_lease(meminfo: Path, real: Coordinator) -> None:
    """Its memory is its own already."""
    with real.lease({"memory-mb": 3000}) as outer:
        say(meminfo, 0)
        real.lease({"memory-mb": 2000}, wait=0, parent=outer).release()


def test_a_system_that_does_not_say_is_told_of(meminfo: Path, real: Coordinator) -> None:
    for text in (None, "MemTotal: 1 kB\n"):
        meminfo.unlink(missing_ok=True)
        if text is not None:
            meminfo.write_text(text)
        with pytest.raises(HostlerError) as refused:
            real.lease({"memory-mb": 1}, wait=0)
        assert refused.value.code is Code.UNAVAILABLE
        real.lease({"ffmpeg": 1}, wait=0).release()  # who claims none need not know
    say(meminfo, 1)
    assert rows() == []


def test_this_very_system_says_and_exec_tells_why_it_waits() -> None:
    """Nobody has eight times the memory of the machine available."""
    much = 8 * available_mb()
    assert much > 0
    config = f'[machine]\nmemory = "available"\n[machine.capacity]\nmemory-mb = {much}\n'
    Path(os.environ["HOSTLER_CONFIG"]).write_text(config)
    assert machine_settings(os.environ).real_memory is True
    process = subprocess.Popen(
        [*HOSTLER, "exec", "--claim", f"memory-mb={much}", "--", "true"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("hostler: waiting for memory-mb (")
        assert said.endswith(" really available): 0 before you\n")
        done = subprocess.run([*HOSTLER, "top", "--json"], capture_output=True, timeout=LIMIT_S, check=True)
        (ticket,) = json.loads(done.stdout)["tickets"]
        assert 0 < ticket["blocked_by"][0]["really_available"] < much
        shown = subprocess.run(
            [*HOSTLER, "machine", "show"], capture_output=True, text=True, timeout=LIMIT_S, check=True
        )
        assert "memory-mb is admitted as far as it is really available, now" in shown.stdout
    finally:
        process.kill()
        process.communicate()
    eventually(lambda: rows() == [])
