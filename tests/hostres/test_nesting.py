"""Asking under a lease: parts of it, in order, counted inside it, and never a wait for the machine."""

import contextlib
import contextvars
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping

import pytest

from hostres.capacities import set_capacities
from hostres.coordinator import Admitted, Coordinator, Lease, NotAdmitted, current_lease
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.listing import HOLDING, WAITING, Listing
from hostres.nesting import Parent
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, excess, held, holder, rows, stop, waiting

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


@pytest.fixture(autouse=True)
def wide_safety_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise for what this process asks for."""
    for module in ("poller", "coordinator"):
        monkeypatch.setattr(f"hostres.{module}.SAFETY_NET_S", (600.0, 600.0, 600.0))


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


def test_what_a_lease_holds_can_be_asked_for_under_it_and_is_counted_once() -> None:
    """A11."""
    with coordinator(x=2) as machine:
        with (
            held(machine.lease({"x": 2, "cpu": 1})) as outer,
            under(outer.environment) as inner,
            held(inner.lease({"x": 1}, wait=0)) as part,
        ):
            part.assert_owned()
            assert part.ticket > outer.ticket
            assert part.environment["HOSTLER_LEASE"].startswith(f"{part.ticket}.")
            assert [name.split(".")[:3] for name in names("s")] == [["s", str(part.ticket), str(outer.ticket)]]
            assert excess({"x": 2, "cpu": 1}) == {}
            assert {row.ticket: row.inside for row in rows()} == {outer.ticket: None, part.ticket: outer.ticket}
            with refused(Code.WAIT_TIMEOUT):
                machine.lease({"x": 1}, wait=0)
        machine.lease({"x": 2}, wait=0).release()


@pytest.mark.parametrize(
    ("claims", "keys", "match"),
    [
        ({"x": 2}, (), "does not hold x=2 but only x=1; claim x=2 when the outer lease is asked for"),
        ({"y": 1}, (), "does not hold y=1; claim y=1"),
        ({"x": 1, "y": 1}, (), "does not hold y=1"),
        ({}, ("other",), "does not hold an exclusive key"),
    ],
)
def test_what_a_lease_does_not_hold_is_refused_at_once(
    claims: dict[str, int], keys: tuple[str, ...], match: str
) -> None:
    """A11: never a hang, although the machine has it, and no ticket is used up."""
    with coordinator(x=2, y=1) as machine, machine.lease({"x": 1}, keys=["film"]) as outer:
        with under(outer.environment) as inner:
            with refused(Code.INVALID_CLAIMS, match):
                inner.lease(claims, keys=keys, wait=LIMIT_S)
            told = Told()
            inner.ask(claims, keys=keys, notify=told.append)
            assert told.error().code is Code.INVALID_CLAIMS
        with machine.lease({}) as after:
            assert after.ticket == outer.ticket + 1


def test_an_exclusive_key_of_the_lease_can_be_had_under_it_by_one_at_a_time() -> None:
    with (
        coordinator() as machine,
        machine.lease({}, keys=["film"]) as outer,
        children() as start,
        under(outer.environment) as inner,
    ):
        part = inner.lease({}, keys=["film"], wait=0)
        other = start(asker({}, keys=("film",)), environ=dict(outer.environment))
        other.line()
        inside(1)
        part.release()
        assert other.line().split()[::2] == ["held", "0"]


@pytest.mark.parametrize("units", [1, 0, None])
def test_a_part_is_measured_against_its_lease_however_little_the_machine_has_by_now(units: int | None) -> None:
    with coordinator(x=2) as machine, held(machine.lease({"x": 2})) as outer, under(outer.environment) as inner:
        set_capacities(machine_folder(os.environ), os.environ, {"x": units})
        with refused(Code.INVALID_CLAIMS):
            machine.lease({"x": 2}, wait=0)
        inner.lease({"x": 2}, wait=0).release()
        with refused(Code.INVALID_CLAIMS, "x=3 is more than the machine's 2"):
            inner.lease({"x": 3}, wait=0)
        with refused(Code.INVALID_CLAIMS, "no resource y"):
            inner.lease({"y": 1}, wait=0)
        with children() as start:  # who waits for a part goes on waiting, too
            part = inner.lease({"x": 2}, wait=0)
            child = start(asker({"x": 2}), environ=dict(outer.environment))
            child.line()
            inside(1)
            set_capacities(machine_folder(os.environ), os.environ, {"x": 2})
            set_capacities(machine_folder(os.environ), os.environ, {"x": units})
            part.release()
            assert child.line().startswith("held")


def test_siblings_wait_in_order_inside_their_lease_and_wake_by_events() -> None:
    with coordinator(x=4) as machine, held(machine.lease({"x": 2})) as outer, children() as start:
        environ = dict(outer.environment)
        first = start(asker({"x": 2}), environ=environ)
        first.line()
        assert first.line().startswith("held")
        queue = []
        for place in range(3):
            queue.append(start(asker({"x": 2}), environ=environ))
            queue[-1].line()
            inside(place + 1)
        machine.lease({"x": 2}, wait=0).release()  # the machine goes on beside them
        assert excess({"x": 4}) == {}
        queue[1].kill()
        inside(2)
        first.tell()
        number = outer.ticket
        for child in (queue[0], queue[2]):
            word, ticket, progress = child.line().split()
            assert (word, progress) == ("held", "0")
            assert int(ticket) > number
            number = int(ticket)
            child.tell()
        assert queue[2].line() == "released"


def test_who_waits_inside_a_lease_does_not_stand_before_anybody_on_the_machine() -> None:
    with coordinator(x=2) as machine, held(machine.lease({"x": 1})) as outer, children() as start:
        with under(outer.environment) as inner, held(inner.lease({"x": 1})):
            sibling = start(asker({"x": 1}), environ=dict(outer.environment))
            sibling.line()
            inside(1)
            with held(machine.lease({"x": 1}, wait=0)):
                other = start(asker({"x": 1}))
                other.line()
                waiting(2)
            assert other.line().split()[2] == "0"
            assert sibling.silent()
        assert sibling.line().split()[2] == "0"


def test_a_unit_of_work_never_waits_while_it_holds_a_part() -> None:
    with coordinator(x=3) as machine, machine.lease({"x": 2}) as outer, under(outer.environment) as inner:
        one = inner.lease({"x": 1})
        two = inner.lease({"x": 1}, wait=0)  # it fits: nothing is waited for
        with refused(Code.CONFLICT, rf"x=1 of ticket {outer.ticket} already, as ticket {one.ticket}|{two.ticket}"):
            inner.lease({"x": 1}, wait=LIMIT_S)
        with coordinator() as another, refused(Code.CONFLICT):
            another.lease({"x": 2}, parent=outer, wait=LIMIT_S)
        told = Told()
        inner.ask({"x": 1}, notify=told.append, parent=outer)
        assert told.error().code is Code.CONFLICT
        one.release()
        two.release()
        inner.lease({"x": 2}, wait=0).release()


def test_who_holds_a_part_without_units_may_wait_for_another() -> None:
    with coordinator(x=1) as machine, held(machine.lease({"x": 1})) as outer, under(outer.environment) as inner:
        told = Told()
        inner.ask({"x": 1}, notify=told.append)
        other = told.lease()
        with held(inner.lease({})), refused(Code.WAIT_TIMEOUT):
            inner.lease({"x": 1}, wait=0)
        other.release()


def test_another_thread_is_another_unit_of_work() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as outer, under(outer.environment) as inner:
        part = inner.lease({"x": 1})
        tickets: list[int] = []

        def work() -> None:
            with inner.lease({"x": 1}) as lease:
                tickets.append(lease.ticket)

        thread = threading.Thread(target=work)
        thread.start()
        inside(1)
        part.release()
        thread.join(LIMIT_S)
        assert tickets == [part.ticket + 1]


def test_a_host_that_runs_under_a_lease_lets_its_work_wait_in_order_inside_it() -> None:
    """It asks for many units of work, and none of them is itself."""
    with coordinator(x=1) as machine, held(machine.lease({"x": 1})) as outer, under(outer.environment) as inner:
        told = [Told() for _ in range(3)]
        for one in told:
            inner.ask({"x": 1}, notify=one.append)
        first = told[0].lease()
        inside(2)
        assert not told[1] + told[2]
        first.release()
        second = told[1].lease()
        second.release()
        told[2].lease().release()
        assert inner.safety_net_progress == 0


def test_the_lease_of_the_context_is_the_parent_also_of_what_is_asked_for_elsewhere() -> None:
    with coordinator(x=2, y=1) as machine:
        outer = machine.lease({"x": 1})
        token = current_lease.set(outer)
        try:
            with refused(Code.INVALID_CLAIMS):
                machine.lease({"y": 1})
            told = Told()
            machine.ask({"x": 1}, notify=told.append)
            part = told.lease()
            assert excess({"x": 2, "y": 1}) == {}
            with refused(Code.CONFLICT):
                machine.lease({"x": 1}, wait=LIMIT_S)
            part.release()
        finally:
            current_lease.reset(token)
        machine.lease({"y": 1}, wait=0).release()
        outer.release()


def test_what_is_asked_for_inside_a_lease_is_a_part_of_it_and_never_waits_for_the_machine() -> None:
    with coordinator(x=3, y=1) as machine:
        with machine.lease({"x": 2}) as outer:
            for more in ({"x": 3}, {"y": 1}):
                with refused(Code.INVALID_CLAIMS, f"this runs under ticket {outer.ticket}"):
                    machine.lease(more, wait=LIMIT_S)
            with machine.lease({"x": 2}, wait=0) as part:
                assert names("s")[0].split(".")[2] == str(outer.ticket)
                with refused(Code.INVALID_CLAIMS, f"ticket {part.ticket}"):
                    machine.lease({"x": 3}, wait=LIMIT_S)
                thread = threading.Thread(target=lambda: machine.lease({"x": 1, "y": 1}, wait=0).release())
                thread.start()  # another thread asks the machine
                thread.join(LIMIT_S)
            assert current_lease.get() is outer
        assert current_lease.get() is None
        machine.lease({"x": 3, "y": 1}, wait=0).release()


def test_a_lease_that_was_left_elsewhere_or_given_back_inside_is_nobodys_parent() -> None:
    with coordinator(x=1, y=1) as machine:
        with machine.lease({"x": 1}) as lease:
            lease.release()
            with machine.lease({"y": 1}, wait=0):
                assert names("s") == []
        lease = machine.lease({"x": 1})
        entered = contextvars.copy_context()
        entered.run(lease.__enter__)
        lease.__exit__(None, None, None)
        entered.run(machine.lease, {"y": 1}, wait=0).release()


def test_a_parent_that_is_named_goes_before_that_of_the_context_and_the_environment() -> None:
    with (
        coordinator(x=2, y=1) as machine,
        held(machine.lease({"x": 1})) as outer,
        held(machine.lease({"y": 1})) as other,
        under(outer.environment) as inner,
    ):
        with held(inner.lease({"y": 1}, parent=other, wait=0)) as part:
            assert names("s")[0].split(".")[2] == str(other.ticket)
            assert part.ticket > other.ticket
        with refused(Code.INVALID_CLAIMS):
            inner.lease({"x": 1}, parent=other)


def test_under_a_lease_that_lives_no_more_an_ask_is_like_any_other() -> None:
    with coordinator(x=1, y=1) as machine:
        outer = machine.lease({"x": 1})
        environment = dict(outer.environment)
        outer.release()
        with under(environment) as inner, inner.lease({"y": 1}, parent=outer, wait=0):
            assert names("s") == []


@pytest.mark.parametrize("text", ["", "1", "1.2.3.4", "one.abc.3", "7.abc.x", "900.abcdef01.5", "."])
def test_a_variable_that_names_no_lease_is_none(text: str) -> None:
    with under({"HOSTLER_LEASE": text}) as inner:
        inner.lease({"cpu": 1}, wait=0).release()


def test_a_lease_that_claims_nothing_is_no_parent() -> None:
    """Who waits under it holds nothing; and under a part that claims nothing, the lease around it is the parent."""
    with (
        coordinator(x=2) as machine,
        machine.lease({}) as outer,
        under(outer.environment) as inner,
        inner.lease({"x": 1}, wait=0) as lease,
        under(lease.environment) as further,
    ):
        assert names("s") == []
        with further.lease({}) as empty, under(empty.environment) as furthest:
            with furthest.lease({"x": 1}, wait=0):
                assert excess({"x": 2}) == {}
            with refused(Code.INVALID_CLAIMS, f"ticket {lease.ticket}"):
                furthest.lease({"x": 2})


def test_parts_have_parts() -> None:
    with (
        coordinator(x=4) as machine,
        held(machine.lease({"x": 3})) as outer,
        under(outer.environment) as inner,
        held(inner.lease({"x": 2})) as part,
        under(part.environment) as further,
        held(further.lease({"x": 1})) as smaller,
    ):
        assert names("s")[-1].split(".")[2] == f"{part.ticket}-{outer.ticket}"
        assert excess({"x": 4}) == {}
        with under(smaller.environment) as furthest, refused(Code.INVALID_CLAIMS):
            furthest.lease({"x": 2})
        part.release()  # what is inside it is now inside the outer one
        assert excess({"x": 4}) == {}
        machine.lease({"x": 1}, wait=0).release()
        with refused(Code.WAIT_TIMEOUT):
            machine.lease({"x": 2}, wait=0)
        with under(outer.environment) as beside:
            beside.lease({"x": 2}, wait=0).release()
            told = Told()
            beside.ask({"x": 3}, notify=told.append)
            inside(1)
        assert told == []


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_parts_share_the_cpus_of_their_lease_among_them() -> None:
    with coordinator(cpu=2) as machine, held(machine.lease({"cpu": 2})) as outer, under(outer.environment) as inner:
        assert len(outer.cpus) == 2
        with held(inner.lease({"cpu": 1})) as one, held(inner.lease({"cpu": 1}, wait=0)) as two:
            assert {*one.cpus, *two.cpus} == set(outer.cpus)
            assert len(one.cpus) == len(two.cpus) == 1
            done = one.run([sys.executable, "-c", f"import os; assert os.sched_getaffinity(0) == {set(one.cpus)}"])
            assert done.code == 0
            outer.release()  # what counts by itself keeps its own
            two.release()
            with held(machine.lease({"cpu": 1}, wait=0)) as third:
                assert third.cpus == two.cpus


def test_a_lease_without_cpus_of_its_own_has_none_to_share() -> None:
    with coordinator(cpu=999) as machine, machine.lease({"cpu": 1}) as outer, under(outer.environment) as inner:
        assert outer.cpus == ()
        part = inner.lease({"cpu": 1}, wait=0)
        assert part.cpus == ()
        part.release()


def test_leases_inside_each_other_have_an_end() -> None:
    with coordinator(x=1) as machine, contextlib.ExitStack() as stack:
        lease = stack.enter_context(machine.lease({"x": 1}))
        for _ in range(15):
            lease = stack.enter_context(stack.enter_context(under(lease.environment)).lease({"x": 1}))
        with under(lease.environment) as last, refused(Code.INVALID_CLAIMS, "16 leases"):
            last.lease({"x": 1})


def test_a_part_counts_by_itself_once_its_lease_is_gone() -> None:
    with coordinator(x=2) as machine, children() as start:
        machine.lease({}).release()
        outer = start(holder({"x": 2}))
        outer.line()
        (row,) = rows()
        name = names("h")[0].split(".")
        part = start(asker({"x": 1}), environ={"HOSTLER_LEASE": f"{name[1]}.{name[2]}.-"})
        part.line()
        assert part.line().startswith("held")
        whole = start(asker({"x": 2}))
        whole.line()
        waiting(1)
        outer.kill()
        eventually(lambda: machine.lease({"x": 1}, wait=0).release())
        assert excess({"x": 2}) == {}
        assert whole.silent()
        part.kill()
        assert whole.line().split()[2] == "0"
        assert row.ticket == int(name[1])


def test_who_waits_inside_a_lease_that_ends_waits_on_the_machine_by_its_number() -> None:
    with coordinator(x=2) as machine, machine.lease({"x": 1}), children() as start:
        outer = start(holder({"x": 1}))
        outer.line()
        name = names("h")[1].split(".")
        environ = {"HOSTLER_LEASE": f"{name[1]}.{name[2]}"}
        first = start(asker({"x": 1}), environ=environ)
        first.line()
        assert first.line().startswith("held")
        second, third = (start(asker({"x": 1}), environ=environ) for _ in range(2))
        second.line()
        third.line()
        inside(2)
        last = start(asker({"x": 1}))
        last.line()
        waiting(3)
        outer.kill()
        eventually(lambda: not names("h")[1:])
        assert excess({"x": 2}) == {}
        assert all(child.silent() for child in (second, third, last))
        first.kill()
        eventually(lambda: not (second.silent() and third.silent()))
        one, two = (second, third) if third.silent() else (third, second)
        assert one.line().split()[2] == "0"
        one.kill()
        assert two.line().split()[2] == "0"
        assert last.silent()
        two.tell()
        assert last.line().split()[2] == "0"


def test_a_stopped_sibling_dozes_inside_its_lease() -> None:
    with (
        coordinator(x=1) as machine,
        machine.lease({"x": 1}) as outer,
        children() as start,
        under(outer.environment) as inner,
    ):
        part = inner.lease({"x": 1})
        stopped = start(asker({"x": 1}), environ=dict(outer.environment))
        stopped.line()
        inside(1)
        fast = "import hostres.summons\nhostres.summons.Summons.SILENCE_S = 0.2\n"
        next_one = start(fast + holder({"x": 1}), environ=dict(outer.environment))
        inside(2)
        stop(stopped)
        part.release()
        assert next_one.line().startswith("held")
        assert [name.split(".")[2] for name in names("z")] == [str(outer.ticket)]
        os.kill(stopped.pid, signal.SIGCONT)
        next_one.tell()
        assert stopped.line().split()[2] == "0"


def test_the_descriptor_proves_that_the_lease_lives_if_it_is_still_there() -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        tickets = machine.machine.tickets
        ours = lease.as_parent
        assert Parent.of_environment(lease.environment) == ours
        for fd in (ours.fd, -1, 0, 999):
            found = Parent(number=ours.number, nonce=ours.nonce, fd=fd).entry(tickets.scan(), tickets)
            assert found is not None
            assert found.number == lease.ticket
        assert Parent(number=ours.number, nonce="0").entry(tickets.scan(), tickets) is None
        lease.release()
        assert ours.entry(tickets.scan(), tickets) is None


def test_names_tell_who_stands_where() -> None:
    texts = [
        "h.1.a.f", "s.2.1.b", "s.3.2-1.c.3", "w.4.1.d", "z.5.2-1.e", "w.6.f", "z.7.0", "s.8.99.1", "w.9.99-98.2",
        "1.json", "h.1.2.3.4", "s.1.x.2", "s.1.2", "z.1.2.3.4", "x.1.2",
    ]  # fmt: skip
    listing = Listing.of(texts)
    assert [entry.number for entry in listing.holding] == [1, 8]
    assert [(entry.number, entry.state) for entry in listing.waiting] == [(6, "w"), (7, "z"), (9, "w")]
    assert {host: [entry.number for entry in line.holding] for host, line in listing.inside.items()} == {1: [2], 2: [3]}
    assert [entry.number for entry in listing.inside[1].waiting] == [4]
    assert [entry.number for entry in listing.inside[2].waiting] == [5]
    assert listing.strange == texts[10:]
    assert listing.tickets == len(listing.entries) == 9
    for entry in listing.entries:
        letter = {"s": HOLDING}.get(entry.name[0], entry.name[0])
        assert entry.state == letter
        assert entry.name.startswith(entry.in_state(entry.state).name)
    two = listing.find(2, "b")
    assert two is not None
    listing.forget(two)
    assert [entry.number for entry in listing.inside[1].holding] == [3]
    assert [entry.number for entry in listing.inside[1].waiting] == [4, 5]
    (one, _) = listing.holding
    listing.forget(one)
    assert [entry.number for entry in listing.holding] == [3, 8]
    assert [entry.number for entry in listing.awake] == [4, 6, 9]
    assert listing.replace(listing.awake[0], "z").name == "z.4.1.d"
    assert [entry.number for entry in listing.waiting if entry.state == WAITING] == [6, 9]
