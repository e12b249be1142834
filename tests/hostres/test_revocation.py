"""A person takes back a ticket that leaked."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.revocation import revoke
from hostres.top import snapshot
from tests.hostres.support import LIMIT_S, children, coordinator, holder, rows, stop, waiting


def refused(code: Code) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, check=lambda error: error.code is code)


def take_back(number: int) -> None:
    revoke(machine_folder(os.environ), number)


def test_its_units_are_free_at_once_and_its_holders_stay_listed() -> None:
    with coordinator(x=1) as machine, children() as start:
        lease = machine.lease({"x": 1}, name="leaky")
        leak = subprocess.Popen(["sleep", "600"], pass_fds=[lease.fd])
        lease.release()
        waiter = start(
            """
            coordinator = Coordinator(FOLDER)
            lease = coordinator.lease({"x": 1})
            say("held", coordinator.safety_net_progress)
            hear()
            """
        )
        waiting(1)
        take_back(lease.ticket)
        assert waiter.line() == "held 0"
        (row,) = rows("revoked")
        assert (row.ticket, row.name, dict(row.claims)) == (lease.ticket, "leaky", {"x": 1})
        assert [(one.pid, one.command) for one in row.processes] == [(leak.pid, "sleep 600")]
        assert row.to_json()["state"] == "revoked"
        assert snapshot(machine_folder(os.environ)).used["x"] == 1  # the waiter's
        leak.kill()
        leak.wait()
        assert rows("revoked") == []


def test_its_owner_finds_that_it_is_not_its_owner_any_more() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        lease.assert_owned()
        take_back(lease.ticket)
        with refused(Code.OWNERSHIP_LOST):
            lease.assert_owned()
        with refused(Code.OWNERSHIP_LOST):
            lease.run(["true"])
        take_back(lease.ticket)  # again changes nothing
        with machine.lease({"x": 1}, wait=0):
            assert [row.state for row in rows()] == ["admitted", "revoked"]
    assert rows() == []


def test_a_waiter_is_sent_away() -> None:
    code = """
        try:
            Coordinator(FOLDER).lease({"x": 1})
        except HostlerError as error:
            say(error)
    """
    with coordinator(x=1) as machine, machine.lease({"x": 1}), children() as start:
        queue = []
        for count in (1, 2, 3):
            queue.append(start(code))
            waiting(count)
        for child, row in reversed([*zip(queue, rows("waiting"), strict=True)]):
            take_back(row.ticket)
            assert child.line() == f"error[wait-aborted]: ticket {row.ticket} was taken back while it waited; ask again"


def test_the_waiters_behind_a_revoked_waiter_go_on() -> None:
    with coordinator(x=1) as machine, children() as start:
        lease = machine.lease({"x": 1})
        start("Coordinator(FOLDER).lease({'x': 1})")
        waiting(1)
        second = start(holder({"x": 1}))
        waiting(2)
        take_back(rows("waiting")[0].ticket)
        lease.release()
        second.line()


WAITER = """
import hostres.coordinator
hostres.coordinator.SAFETY_NET_S = (600.0, 600.0, 600.0)  # a lost wake-up shows
coordinator = Coordinator(FOLDER)
lease = coordinator.lease({"x": 1})
say("held", coordinator.safety_net_looks)
hear()
lease.release()
hear()
"""


def test_who_waits_inside_it_waits_on_the_machine_at_once() -> None:
    """Its descriptor leaked, so that no hang-up tells them."""
    with coordinator(x=2) as machine, children() as start:
        lease = machine.lease({"x": 1})
        part = machine.lease({"x": 1}, parent=lease)
        leak = subprocess.Popen(["sleep", "600"], pass_fds=[lease.fd])
        inside = []
        for count in (1, 2):
            inside.append(start(WAITER, environ=dict(lease.environment)))
            waiting(count)
        take_back(lease.ticket)
        assert inside[0].line() == "held 0"
        assert inside[1].silent()
        part.release()
        assert inside[1].line() == "held 0"
        leak.kill()
        leak.wait()
        lease.release()


def test_who_waits_for_a_part_that_is_taken_back_gets_it_at_once() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease, children() as start:
        part = machine.lease({"x": 1}, parent=lease)
        leak = subprocess.Popen(["sleep", "600"], pass_fds=[part.fd])
        part.release()
        waiter = start(WAITER, environ=dict(lease.environment))
        waiting(1)
        take_back(part.ticket)
        assert waiter.line() == "held 0"
        leak.kill()
        leak.wait()


def test_who_waits_behind_a_stopped_waiter_that_is_taken_back_stands_behind_the_one_before() -> None:
    with coordinator(x=1) as machine, children() as start:
        lease = machine.lease({"x": 1})
        queue = []
        for count in range(1, 6):
            queue.append(start(WAITER))
            waiting(count)
        stop(queue[3])
        take_back(lease.ticket + 4)
        for child in queue[:3]:
            child.kill()
        lease.release()
        assert queue[4].line() == "held 0"


def test_what_does_not_live_cannot_be_taken_back() -> None:
    with refused(Code.NOT_FOUND):
        take_back(1)
    assert not machine_folder(os.environ).exists()
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        lease.release()
        for number in (lease.ticket, lease.ticket + 1):
            with refused(Code.NOT_FOUND):
                take_back(number)


def test_its_number_is_not_given_out_again_and_the_dead_are_swept_by_the_next() -> None:
    with coordinator(x=2) as machine:
        one, other = machine.lease({"x": 1}), machine.lease({"x": 1})
        take_back(one.ticket)
        one.release()
        take_back(other.ticket)
        with machine.lease({"x": 1}) as third:
            assert third.ticket == other.ticket + 1
        names = sorted(path.name.split(".")[1] for path in (machine_folder(os.environ) / "revoked").iterdir())
        assert names == [str(other.ticket), "json"]
        other.release()


def test_a_ticket_whose_record_is_damaged_can_be_taken_back() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        record = machine_folder(os.environ) / "t" / f"{lease.ticket}.json"
        record.write_text("{")
        with coordinator() as other:
            with refused(Code.UNSAFE_STATE):
                other.lease({"x": 1}, wait=0)
            take_back(lease.ticket)
            (machine_folder(os.environ) / "revoked" / record.name).unlink()
            with refused(Code.UNSAFE_STATE):
                rows()
            take_back(lease.ticket)  # what was taken back may be damaged too
            assert [row.ticket for row in rows("revoked")] == [lease.ticket]
            other.lease({"x": 1}, wait=LIMIT_S).release()


@pytest.mark.parametrize("state", ["held", "waiting"])
def test_whoever_meets_a_ticket_without_its_record_is_told_who_holds_it_and_how_to_take_it_back(state: str) -> None:
    with coordinator(x=1) as machine, children() as start:
        lease = machine.lease({"x": 1})
        child = start(holder({"x": 1}, name="other"))
        waiting(1)
        number = lease.ticket + 1
        if state == "held":
            lease.release()
            child.line()
        (machine_folder(os.environ) / "t" / f"{number}.json").unlink()
        says = f"a live ticket that pid {child.pid} .* holds, is missing .* `hostler machine revoke {number}`"
        for look in (lambda: machine.lease({"x": 1}, wait=0), rows):
            with pytest.raises(HostlerError, match=says, check=lambda error: error.code is Code.UNSAFE_STATE):
                look()
        take_back(number)
        lease.release()
        machine.lease({"x": 1}, wait=LIMIT_S).release()


def test_nothing_of_it_reads_like_a_ticket_of_another_version(tmp_path: Path) -> None:
    """Its files are those of any ticket, in another folder."""
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        before = json.loads((machine_folder(os.environ) / "t" / f"{lease.ticket}.json").read_text())
        take_back(lease.ticket)
        folder = machine_folder(os.environ) / "revoked"
        assert json.loads((folder / f"{lease.ticket}.json").read_text()) == before
        assert next(folder.glob("h.*")).is_fifo()
        assert snapshot(machine_folder(os.environ)).strange == ()
