"""What the machine shows of itself."""

import os
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hostres.coordinator import Coordinator, Patience
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.listing import DOZING
from hostres.platforms import require_supported
from hostres.tickets import TicketFolder
from hostres.top import snapshot
from tests.hostres.support import children, coordinator, holder, rows, waiting


def test_a_machine_that_was_never_used_is_idle() -> None:
    top = snapshot(machine_folder(os.environ))
    assert top.tickets == ()
    assert top.capacity["ffmpeg"] == 2
    assert not machine_folder(os.environ).exists()


def test_a_look_changes_nothing() -> None:
    with coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
        before = sorted(path.name for path in machine_folder(os.environ).rglob("*"))
        assert rows() == []
        assert sorted(path.name for path in machine_folder(os.environ).rglob("*")) == before


def test_it_shows_holders_waiters_and_why_each_waits() -> None:
    with coordinator(x=2, y=1) as machine, children() as start:
        first = machine.lease({"x": 1}, name="first")
        child = start(holder({"x": 2, "y": 1}, name="big"))
        waiting(1)
        second = machine.lease({"x": 1})
        top = snapshot(machine_folder(os.environ)).to_json()
        assert top["used"] | {"x": 0, "y": 0} == dict.fromkeys(top["capacity"], 0)
        assert (top["used"]["x"], top["capacity"]["x"], top["used"]["y"]) == (2, 2, 0)
        admitted, other, row = top["tickets"]
        assert (admitted["ticket"], admitted["state"], admitted["name"]) == (first.ticket, "admitted", "first")
        assert "blocked_by" not in admitted
        assert other["ticket"] == second.ticket
        assert (row["state"], row["name"], row["pid"], row["claims"]) == ("waiting", "big", child.pid, {"x": 2, "y": 1})
        assert row["blocked_by"] == [
            {"resource": "x", "wanted": 2, "free": 0, "tickets": [first.ticket, second.ticket]}
        ]
        for ticket in top["tickets"]:
            since = datetime.fromisoformat(ticket["since"])
            assert ticket["since"].endswith("Z")
            assert timedelta(seconds=-1) < datetime.now(UTC) - since < timedelta(seconds=30)
        first.release()
        second.release()
        child.line()


def test_it_names_the_process_that_still_holds_a_dead_program_s_ticket() -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        left = subprocess.Popen(["sleep", "600"], pass_fds=[lease.fd])
        lease.release()
        (row,) = rows()
        assert [(process.pid, process.command) for process in row.processes] == [(left.pid, "sleep 600")]
        left.kill()
        left.wait()
        assert rows() == []


def test_a_name_without_a_live_lock_is_no_ticket() -> None:
    with coordinator(x=1) as machine:
        machine.lease({}).release()
        os.mkfifo(machine_folder(os.environ) / "t" / "h.900.dead", 0o600)
        assert rows() == []
        with machine.lease({"x": 1}, wait=0) as lease:
            assert lease.ticket == 901


def test_a_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    machine_folder(os.environ).mkdir(mode=0o755)
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.UNSAFE_STATE):
        snapshot(machine_folder(os.environ))


@pytest.mark.parametrize("platform", ["win32", "darwin", "cygwin"])
def test_other_platforms_are_refused(platform: str) -> None:
    """Field case 101."""
    with pytest.raises(HostlerError, match=platform, check=lambda error: error.code is Code.UNSUPPORTED_PLATFORM):
        require_supported(platform)
    require_supported("linux")


def test_a_waiter_that_does_not_move_is_shown_as_waiting_and_stopped() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}), children() as start:
        child = start(holder({"x": 1}))
        waiting(1)
        os.kill(child.pid, signal.SIGSTOP)
        tickets = TicketFolder(str(machine_folder(os.environ) / "t"))
        listing = tickets.scan()
        assert tickets.put(listing.waiting[0], DOZING, listing)  # as those who pass it do
        (row,) = rows("waiting")
        assert row.stopped
        assert row.to_json()["stopped"] is True
        assert [why.resource for why in row.blocked_by] == ["x"]


def test_a_reservation_that_stands_is_given_as_the_reason() -> None:
    impatient = Coordinator(machine_folder(os.environ), explicit={"x": 2}, patience=Patience(factor=0, least_s=0))
    with impatient as machine, machine.lease({"x": 1}), children() as start:
        start(holder({"x": 2}))
        waiting(1)
        start(holder({"x": 1}))
        waiting(2)
        big, small = rows("waiting")
        assert (big.patient, small.patient) == (True, False)
        (why,) = small.blocked_by
        assert why.reserved_for == big.ticket
        assert small.to_json()["blocked_by"][0]["reserved_for"] == big.ticket
        assert f"kept for ticket {big.ticket}" in str(why)


def test_what_is_a_part_of_another_ticket_is_not_counted_twice() -> None:
    with (
        coordinator(x=2) as machine,
        machine.lease({"x": 2}) as outer,
        machine.lease({"x": 1}, parent=outer) as inner,
    ):
        assert {row.ticket: row.inside for row in rows()} == {outer.ticket: None, inner.ticket: outer.ticket}
        assert snapshot(machine_folder(os.environ)).used["x"] == 2
        assert next(row for row in rows() if row.inside).to_json()["inside"] == outer.ticket
