"""The short way of a hand-over: one process wakes and reads nobody's record, unless somebody else may gain from it."""

import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hostres.claim_policy import ClaimPolicy
from hostres.errors import HostlerError
from hostres.folders import machine_folder
from hostres.gate import Gate
from hostres.inspection import inspect
from hostres.listing import DOZING
from hostres.locks import LOOK, WATCH
from hostres.machine import Machine
from hostres.queue import Demand
from hostres.settings import MachineSettings
from hostres.succession import Takeover, takeover
from hostres.ticket import Ticket
from hostres.tickets import TicketFolder
from hostres.top import snapshot
from hostres.turnaround import Turnaround, after_turn, read_turnaround
from tests.hostres.crowd import Crowd, told
from tests.hostres.support import LIMIT_S, children, coordinator, rows, waiting


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


# -- who is woken ------------------------------------------------------------------------------------------------------


def test_who_watches_all_that_it_must_is_not_woken_when_it_becomes_the_chief(crowd: Crowd) -> None:
    holder = crowd.ask({"x": 2})
    first, second, third = (crowd.ask({"x": 2}) for _ in range(3))
    for releasing, next_one, behind in ((holder, first, second), (first, second, third)):
        releasing.lock.close()
        assert crowd.look(next_one)
        assert not told(behind)
    second.lock.close()
    assert crowd.look(third)


def test_who_becomes_the_chief_beside_other_holders_is_woken_to_watch_them(crowd: Crowd) -> None:
    one, other = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    first, second = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    one.lock.close()
    assert crowd.look(first)
    assert told(second)
    crowd.look(second)
    other.lock.close()
    assert crowd.look(second)


# -- what is read ------------------------------------------------------------------------------------------------------


def queue(crowd: Crowd, strangers: Crowd, *behind: dict[str, int], priority: int = 0) -> tuple[Ticket, Ticket]:
    """Return a holder of half of x, and who waits for that; others hold y and the other half, and wait for *behind*."""
    holder, _, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1}), crowd.ask({"y": 1})
    heir = crowd.ask({"x": 1})
    for claims in behind:
        strangers.ask(claims, priority=priority)
    return holder, heir


def test_who_takes_over_all_that_has_come_free_reads_no_record(crowd: Crowd, strangers: Crowd, read: list[int]) -> None:
    holder, heir = queue(crowd, strangers, {"x": 1}, {"y": 1})
    read.clear()
    holder.lock.close()
    assert crowd.look(heir)
    assert read == []


def test_whoever_gains_from_what_is_left_over_is_told(crowd: Crowd, strangers: Crowd) -> None:
    holder = crowd.ask({"x": 1, "y": 1})
    crowd.ask({"x": 1})
    heir = crowd.ask({"x": 1})
    gains, gains_not = strangers.ask({"y": 1}), strangers.ask({"x": 1, "y": 1})
    holder.lock.close()
    assert crowd.look(heir)
    assert told(gains)
    assert not told(gains_not) or strangers.look(gains_not) is False
    assert strangers.look(gains)


def test_a_priority_that_nobody_has_read_yet_goes_first(crowd: Crowd, strangers: Crowd) -> None:
    holder, heir = queue(crowd, strangers, {"x": 1}, priority=1)
    (urgent,) = strangers.tickets
    assert urgent.nonce.endswith("+1")
    holder.lock.close()
    assert not crowd.look(heir)
    assert told(urgent)
    assert strangers.look(urgent)


def test_who_is_poked_and_sees_a_hang_up_thinks_of_all(crowd: Crowd, strangers: Crowd) -> None:
    """As when the capacity is raised in the moment in which a holder ends."""
    holder, heir = queue(crowd, strangers, {"x": 1}, {"y": 1})
    folder = machine_folder(os.environ)
    text = (folder / "state.json").read_text()
    state = json.loads(text)
    state["profile"]["capacity"]["y"] = 2
    (folder / "state.json").write_text(json.dumps(state))
    hung = frozenset([holder.key])
    holder.lock.close()
    heir.lock.drain()
    os.write(heir.lock.fd, b"!")  # it comes between the hang-up and the look
    assert crowd.machine.look(heir, hung=hung)
    assert told(list(strangers.tickets)[1])


def test_what_others_have_found_dead_meanwhile_is_thought_of(crowd: Crowd, strangers: Crowd) -> None:
    """Two end together; one of them is swept by somebody who asks before the chief looks."""
    one, two = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    heir = crowd.ask({"x": 1})
    behind = strangers.ask({"x": 1})
    two.lock.close()
    strangers.ask({"x": 2})
    one.lock.close()
    hung = frozenset([one.key])  # the other hang-up comes just after the poll
    assert crowd.machine.look(heir, hung=hung)
    assert told(behind)
    assert strangers.look(behind)


def test_who_had_something_kept_for_it_tells_those_that_may_go_now(crowd: Crowd, strangers: Crowd) -> None:
    holder, rest = crowd.ask({"x": 1}), crowd.ask({"y": 1})
    patient = crowd.ask({"x": 2}, waited_ns=10**10)
    small = strangers.ask({"y": 1})
    rest.lock.close()
    assert not told(small)
    crowd.machine.look(patient, unprompted=True)
    assert told(small)
    holder.lock.close()
    assert crowd.look(patient)


def test_who_finds_no_room_on_arrival_reads_the_holders_and_whom_it_watches(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    holders = [crowd.ask({"x": 1}), crowd.ask({"x": 1})]
    waiters = [crowd.ask({"x": 1}) for _ in range(3)]
    read.clear()
    strangers.ask({"x": 1})
    assert set(read) == {holders[0].number, holders[1].number, waiters[-1].number}


def test_who_is_only_to_watch_reads_whom_it_watches_and_tells_nobody(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    heir, next_one = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    behind = strangers.ask({"x": 1})
    holder.lock.close()
    assert crowd.look(heir)
    read.clear()
    assert told(next_one)
    assert not crowd.look(next_one)
    assert read == []
    assert not told(behind)


def test_who_gives_back_and_asks_again_leaves_what_has_come_free_to_whoever_is_first(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    """So that one finds a hang-up and all names there, and need not think of the others."""
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    first = strangers.ask({"x": 1})
    behind = [strangers.ask({"x": 1}), strangers.ask({"x": 1})]
    holder.lock.close()
    crowd.machine.released(holder)
    again = crowd.ask({"x": 1})
    assert set(read) & {ticket.number for ticket in (behind[0], again)} == set()
    assert not again.holding
    assert os.path.lexists(holder.lock.place)
    assert not told(first)
    read.clear()
    assert strangers.look(first)
    assert read == []
    assert not os.path.lexists(holder.lock.place)


def test_who_gives_back_and_asks_for_what_nobody_before_it_can_have_goes_and_tells_of_it(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    big = crowd.ask({"x": 2})
    holder.lock.close()
    crowd.machine.released(holder)
    assert crowd.ask({"x": 1}).holding
    assert not os.path.lexists(holder.lock.place)
    assert told(big)


def new_chief(crowd: Crowd, strangers: Crowd, holds: dict[str, int]) -> tuple[Ticket, Ticket]:
    """Return a holder, and who is told to watch it, as another has taken over what was beside it."""
    one, holder = crowd.ask({"x": 1}), crowd.ask(holds)
    first, chief = crowd.ask({"x": 1}), strangers.ask({"x": 1})
    one.lock.close()
    assert crowd.look(first)
    assert told(chief)
    return holder, chief


def test_who_finds_a_holder_dead_as_it_begins_to_watch_it_reads_no_record_but_that(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    holder, chief = new_chief(crowd, strangers, {"x": 1})
    behind = crowd.ask({"x": 1, "z": 1})
    holder.lock.close()
    read.clear()
    assert strangers.look(chief)
    assert behind.number not in read


def test_who_finds_a_holder_dead_as_it_begins_to_watch_it_thinks_of_what_is_left_over(
    crowd: Crowd, strangers: Crowd
) -> None:
    holder, chief = new_chief(crowd, strangers, {"x": 1, "y": 1})
    gains = crowd.ask({"y": 1})
    holder.lock.close()
    assert strangers.look(chief)
    assert told(gains)
    assert crowd.look(gains)


def test_who_finds_a_holder_dead_as_it_begins_to_watch_it_thinks_of_priorities(crowd: Crowd, strangers: Crowd) -> None:
    holder, chief = new_chief(crowd, strangers, {"x": 1})
    gains = crowd.ask({"x": 1}, priority=1)
    holder.lock.close()
    assert not strangers.look(chief)
    assert told(gains)
    assert crowd.look(gains)


def test_who_comes_with_a_priority_goes_before_the_oldest_that_might_go(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    crowd.ask({"x": 1})
    holder.lock.close()
    crowd.machine.released(holder)
    assert crowd.ask({"x": 1}, priority=1).holding


def test_who_comes_gets_what_a_priority_keeps_the_oldest_from(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 1, "y": 1}), crowd.ask({"x": 1})
    crowd.ask({"x": 1, "y": 1})
    first = crowd.ask({"y": 1}, priority=1)
    holder.lock.close()
    crowd.machine.released(holder)
    assert crowd.ask({"x": 1}).holding
    assert crowd.look(first)


@pytest.mark.parametrize("fits", [False, True])
def test_who_gives_back_and_asks_again_as_those_that_watched_have_died_removes_what_it_left(
    crowd: Crowd, strangers: Crowd, *, fits: bool
) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    strangers.ask({"x": 1}).lock.close()
    holder.lock.close()
    crowd.machine.released(holder)
    again = crowd.ask({"x": 1 if fits else 2})
    assert again.holding == fits
    assert not os.path.lexists(holder.lock.place)
    assert strangers.ask({"x": 1}).holding != fits


def test_who_finds_more_gone_than_dead_thinks_of_all(crowd: Crowd, strangers: Crowd) -> None:
    one, other = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    chief, second = crowd.ask({"x": 1}), strangers.ask({"x": 1})
    one.lock.close()
    assert not strangers.machine.look(second, unprompted=True)
    chief.lock.drain()
    while told(second):
        second.lock.drain()
    other.lock.close()
    assert crowd.look(chief)
    assert told(second)
    assert strangers.look(second)


def test_who_is_only_to_watch_thinks_of_all_if_one_that_it_watched_is_gone(crowd: Crowd, strangers: Crowd) -> None:
    """As when a holder ends and is swept by who looks unprompted just before the chief looks for another reason."""
    one, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    heir = crowd.ask({"x": 1})
    second = strangers.ask({"x": 2})
    one.lock.close()
    assert not strangers.machine.look(second, unprompted=True)
    assert told(heir)
    heir.lock.drain()  # nor does it hang on that alone
    os.write(heir.lock.fd, WATCH)
    assert crowd.machine.look(heir)


def dozes(crowd: Crowd, ticket: Ticket) -> bool:
    return ticket.entry(DOZING) in crowd.machine.tickets.scan().waiting


def test_who_is_only_to_watch_keeps_in_mind_who_does_not_move(crowd: Crowd) -> None:
    crowd.ask({"y": 1, "z": 1})  # so the chief is not its heir
    one, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    chief, silent = crowd.ask({"y": 1}), crowd.ask({"x": 1})
    one.lock.close()
    assert not crowd.look(chief)
    assert told(silent)
    crowd.ask({})  # it goes at once, and the chief is to watch it
    assert told(chief)
    assert not crowd.look(chief)
    crowd.now_s = 2.0
    crowd.machine.look(chief, unprompted=True)
    assert dozes(crowd, silent)


def test_who_is_only_to_watch_takes_note_of_who_has_given_a_sign_of_life(crowd: Crowd) -> None:
    crowd.ask({"x": 2})
    chief, second = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    crowd.machine.look(second, unprompted=True)
    assert told(chief)
    assert not crowd.look(chief)
    os.write(second.lock.fd, WATCH)
    assert not crowd.look(second)
    crowd.now_s = 2.0
    os.write(chief.lock.fd, LOOK)  # in this very moment
    crowd.machine.look(second, unprompted=True)
    assert not dozes(crowd, chief)


def test_who_follows_a_chief_that_has_told_others_sees_to_it_that_they_move(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 2}), crowd.ask({"y": 1})
    chief, next_one, silent = crowd.ask({"x": 1}), crowd.ask({"y": 1}), crowd.ask({"x": 1})
    holder.lock.close()
    assert crowd.look(chief)
    assert told(silent)
    assert not crowd.look(next_one)
    crowd.now_s = 2.0
    crowd.machine.look(next_one, unprompted=True)
    assert dozes(crowd, silent)


def test_who_goes_while_somebody_told_does_not_move_leaves_that_to_the_next(crowd: Crowd) -> None:
    one, _, holder = crowd.ask({"x": 1}), crowd.ask({"x": 1}), crowd.ask({"y": 1, "z": 1})
    chief, next_one, silent = crowd.ask({"y": 1}), crowd.ask({"y": 1, "z": 1}), crowd.ask({"x": 1})
    one.lock.close()
    assert not crowd.look(chief)
    assert told(silent)
    holder.lock.close()
    assert crowd.look(chief)
    assert not crowd.look(next_one)
    crowd.now_s = 2.0
    crowd.machine.look(next_one, unprompted=True)
    assert dozes(crowd, silent)


def test_a_hang_up_is_believed_only_if_the_lock_is_free(crowd: Crowd) -> None:
    holder, heir = crowd.ask({"x": 2}), crowd.ask({"x": 2})
    assert not crowd.machine.look(heir, hung=frozenset([holder.key]))
    assert holder.key in heir.watches


def test_a_number_that_is_given_out_again_is_another_ticket(crowd: Crowd) -> None:
    ticket = crowd.ask({"x": 2})
    assert crowd.machine.tickets.known[ticket.key] == ticket.demand
    assert f"{ticket.number}.00000000" not in crowd.machine.tickets.known


# -- what a claim takes beside what it names ---------------------------------------------------------------------------


@pytest.fixture
def mapped(crowd: Crowd) -> Iterator[Crowd]:
    """Tickets of a process in whose configuration each x takes an y."""
    one = Crowd()
    one.machine._gate = crowd.machine._gate
    one.machine.settings = one.machine.settings._replace(claims=ClaimPolicy(takes={"x": {"y": 1}}, path=Path("c.toml")))
    yield one
    one.close()


def test_who_takes_over_has_what_its_claim_takes_too(mapped: Crowd, strangers: Crowd, read: list[int]) -> None:
    holder, heir = mapped.ask({"x": 1}), mapped.ask({"x": 1})
    behind = strangers.ask({"y": 1})
    read.clear()
    holder.lock.close()
    assert mapped.look(heir)
    assert heir.demand.units == {"x": 1, "y": 1}
    assert read == []
    assert not told(behind)


def test_what_the_claim_of_another_took_and_that_of_the_heir_does_not_is_left_over(
    crowd: Crowd, mapped: Crowd, strangers: Crowd
) -> None:
    holder, _ = mapped.ask({"x": 1}), crowd.ask({"x": 1})
    heir = crowd.ask({"x": 1})
    behind = strangers.ask({"y": 1})
    holder.lock.close()
    assert crowd.look(heir)
    assert told(behind)
    assert strangers.look(behind)


# -- the names alone ---------------------------------------------------------------------------------------------------

NAMES = ("1.json", "h.1.aa", "h.2.bb.3", "w.3.cc", "w.12.ee", "w.4.dd", "2.json", ".new.w.9.ff", "notes.txt")
KNOWN = {"1.aa": Demand(number=1, units={"x": 1}), "2.bb": Demand(number=2, units={"y": 1})}


def found(names: Sequence[str], *, hung: Sequence[str] = ("1.aa",), watched: Sequence[str] = ()) -> Takeover | None:
    return takeover(names, 3, watched or ("1.aa", "2.bb"), hung, KNOWN)


def test_the_names_tell_who_has_gone_who_holds_and_who_is_next() -> None:
    one, two = KNOWN.values()
    assert found(NAMES) == Takeover(dead={"h.1.aa": one}, holders={"h.2.bb.3": two}, next_one="w.4.dd")
    both = found(NAMES, hung=("1.aa", "2.bb"))
    assert both == Takeover(dead={"h.1.aa": one, "h.2.bb.3": two}, holders={}, next_one="w.4.dd")
    alone = found(["h.1.aa", "w.3.cc"], watched=("1.aa",))
    assert alone == Takeover(dead={"h.1.aa": one}, holders={}, next_one="")


@pytest.mark.parametrize(
    "name",
    [
        "w.2.ff",
        "z.5.ff",
        "z.2.ff",
        "s.6.1.ff",
        "w.5.ff+3",
        "w.5.ff-3",
        "w.5.1.ff",
        "w.2.1.ff",
        "h.9.ff",
        "h.1.bb",
        "w.x",
    ],
)
def test_what_is_not_plain_goes_the_long_way(name: str) -> None:
    assert found([*NAMES, name]) is None


def test_a_hang_up_of_another_kind_goes_the_long_way() -> None:
    assert found([name for name in NAMES if name != "h.2.bb.3"]) is None
    assert found([name for name in NAMES if name != "h.1.aa"]) is None
    assert found(NAMES, hung=("4.dd",), watched=("1.aa", "2.bb", "4.dd")) is None
    assert found(NAMES, hung=()) is None


# -- killed in the middle ----------------------------------------------------------------------------------------------

KILLED = """
import hostres.tickets, hostres.turnaround
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
coordinator = Coordinator(FOLDER)
say("asks")
{patch} = die
coordinator.lease({{"x": 1}})
"""


@pytest.mark.parametrize(
    "patch",
    ["hostres.turnaround.Turnaround.write", "hostres.tickets.TicketFolder.sweep_name"],
    ids=["before the average is written", "before the dead are swept"],
)
def test_who_is_killed_just_after_its_admission_leaves_nothing_that_hinders(patch: str) -> None:
    with children() as start, coordinator(x=2) as machine:
        lease, other = machine.lease({"x": 1}), machine.lease({"x": 1})  # of two it is nobody's heir
        victim = start(KILLED.format(patch=patch))
        assert victim.line() == "asks"
        waiting(1)
        after = start('coordinator = Coordinator(FOLDER)\nsay(coordinator.lease({"x": 1}).ticket)\nhear()')
        waiting(2)
        lease.release()
        assert victim.process.wait(LIMIT_S) == -signal.SIGKILL
        assert int(after.line()) == other.ticket + 2
        assert machine.safety_net_progress == 0
        after.kill()
        other.release()
        machine.lease({"x": 1}, wait=LIMIT_S).release()
        assert rows() == []
        assert all(finding.code is None for finding in inspect(machine_folder(os.environ)))
        machine.lease({}).release()
        assert len(list(machine_folder(os.environ).glob("t/*"))) <= 3


def test_what_cannot_be_swept_hinders_no_admission_but_the_next_ask(crowd: Crowd) -> None:
    """A folder that somebody made where a record was."""
    holder, heir = crowd.ask({"x": 2}), crowd.ask({"x": 2})
    record = machine_folder(os.environ) / "t" / f"{holder.number}.json"
    record.unlink()
    record.mkdir()
    holder.lock.close()
    assert crowd.look(heir)
    with pytest.raises(HostlerError, match=r"1\.json is a folder"):
        crowd.ask({})
    record.rmdir()
    crowd.ask({})


# -- the average -------------------------------------------------------------------------------------------------------


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate that is held."""
    tmp_path.chmod(0o700)
    with Gate.at(f"{tmp_path}/gate") as one:
        yield one


def test_the_average_is_one_line_that_is_written_over(gate: Gate, tmp_path: Path) -> None:
    average = Turnaround(gate)
    assert average.read() == read_turnaround(tmp_path) == 0
    for turn_ns in (10**12, 7):
        average.write(turn_ns)
        assert average.read() == read_turnaround(tmp_path) == turn_ns
    assert (tmp_path / "gate").read_text() == f"turnaround_ns {7:020d}\n"


@pytest.mark.parametrize(
    "damage", [b"", b"turnaround_ns", b"turnaround_ns " + b"x" * 20 + b"\n", b"\0" * 35, b"7" * 35]
)
def test_a_damaged_average_is_not_known(gate: Gate, tmp_path: Path, damage: bytes) -> None:
    Path(gate.place).write_bytes(damage)
    assert Turnaround(gate).read() == read_turnaround(tmp_path) == 0


def test_a_turn_counts_for_one_in_twenty_and_the_first_for_all() -> None:
    assert after_turn(0, 200) == 200
    assert after_turn(200, 400) == 210
    assert after_turn(200, 0) == 190


def test_a_damaged_average_hinders_nobody() -> None:
    with coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
        (machine_folder(os.environ) / "gate").write_bytes(b"what")
        machine.lease({"x": 1}).release()
        assert snapshot(machine_folder(os.environ)).turnaround_s is None


def test_machines_on_one_folder_share_the_average(crowd: Crowd) -> None:
    other = Machine(machine_folder(os.environ), MachineSettings())
    holder = crowd.ask({"x": 2})
    heir = crowd.ask({"x": 2})
    holder.lock.close()
    assert crowd.look(heir)
    assert other._turnaround.read() > 0
