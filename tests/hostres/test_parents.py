"""Under which lease an ask is one: named, of the context, of the environment, or none."""

import contextvars

import pytest

from hostres.coordinator import current_lease
from hostres.errors import Code
from hostres.nesting import Parent
from tests.hostres.nested import Told, names, refused, under
from tests.hostres.support import LIMIT_S, coordinator, excess, held

pytestmark = pytest.mark.usefixtures("wide_safety_net")


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
