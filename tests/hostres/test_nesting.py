"""Asking under a lease: parts of it, in order, counted inside it, and never a wait for the machine."""

import contextlib
import os
import sys
import threading

import pytest

from hostres.capacities import set_capacities
from hostres.coordinator import current_lease
from hostres.errors import Code
from hostres.folders import machine_folder
from tests.hostres.nested import Told, asker, inside, names, refused, under
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, excess, held, holder, rows, waiting

pytestmark = pytest.mark.usefixtures("wide_safety_net")


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
