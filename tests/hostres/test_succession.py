"""The short way of a hand-over: one process wakes and reads nobody's record, unless somebody else may gain from it."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostres.claim_policy import ClaimPolicy
from hostres.errors import HostlerError
from hostres.folders import machine_folder
from hostres.inspection import inspect
from hostres.ticket import Ticket
from tests.hostres.crowd import Crowd, told
from tests.hostres.support import LIMIT_S, children, coordinator, rows, waiting

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
    one.machine._issuer.policy = ClaimPolicy(takes={"x": {"y": 1}}, path=Path("c.toml"))
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


def test_what_cannot_be_swept_hinders_no_admission_but_who_looks_at_all(crowd: Crowd, strangers: Crowd) -> None:
    """A folder that somebody made where a record was."""
    holder, heir = crowd.ask({"x": 2}), crowd.ask({"x": 2})
    record = machine_folder(os.environ) / "t" / f"{holder.number}.json"
    record.unlink()
    record.mkdir()
    holder.lock.close()
    assert crowd.look(heir)
    with pytest.raises(HostlerError, match=r"1\.json is a folder"):
        strangers.ask({})
    record.rmdir()
    strangers.ask({})
