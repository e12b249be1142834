"""Waiting inside a lease: in order, woken by events, never while one holds a part, and on the machine once it ends."""

import os
import signal
import threading

import pytest

from hostres.errors import Code
from tests.hostres.nested import Told, asker, inside, names, refused, under
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, excess, held, holder, stop, waiting

pytestmark = pytest.mark.usefixtures("wide_safety_net")


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
