"""`hostler machine` as a person and an agent meet it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hostres.folders import machine_folder
from hostres.gate import Gate
from tests.end_to_end.support import TIMEOUT_S, finished, hostler, refused, started, told
from tests.hostres.support import children, coordinator, eventually, holder, rows, waiting


def test_capacities_are_shown_with_their_sources() -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nx = 3\n")
    found = told("machine", "show")
    assert found["capacity"]["x"] == {"units": 3, "used": 0, "source": "configuration", "configured": None}
    assert found["capacity"]["ffmpeg"]["source"] == "default"
    assert found["configuration"] == os.environ["HOSTLER_CONFIG"]
    assert len(found["profile"]) == 12
    lines = hostler("machine", "show").splitlines()
    assert any(line.split()[:3] == ["x", "0", "3"] and line.endswith("the configuration") for line in lines)


def test_a_change_is_shown_and_kept() -> None:
    found = told("machine", "set", "x=2", "ffmpeg=5")
    assert (found["capacity"]["x"]["units"], found["capacity"]["ffmpeg"]["units"]) == (2, 5)
    assert Path(os.environ["HOSTLER_CONFIG"]).read_text() == "[machine.capacity]\nx = 2\nffmpeg = 5\n"
    assert hostler("exec", "--claim", "x=2", "--", "echo", "ran") == "ran\n"
    assert "x" not in told("machine", "set", "x=")["capacity"]
    assert "no resource x" in refused("exec", "--claim", "x=1", "--", "true", code=2)


def test_raising_lets_a_waiting_command_go() -> None:
    hostler("machine", "set", "x=1")
    with coordinator() as machine, machine.lease({"x": 1}), children() as start:
        waiter = start(holder({"x": 1}, explicit={"x": 1}))
        waiting(1)
        hostler("machine", "set", "x=2")
        assert waiter.line().startswith("held")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_change_that_is_ended_while_it_waits_leaves_nothing_behind(number: int) -> None:
    hostler("machine", "set", "x=1")
    file = Path(os.environ["HOSTLER_CONFIG"])

    def drafts() -> list[Path]:
        return list(file.parent.glob(f".{file.name}.*"))

    with Gate.at(f"{machine_folder(os.environ)}/gate"), started("machine", "set", "x=2") as process:
        eventually(lambda: drafts() != [])
        process.send_signal(number)
        assert process.wait(TIMEOUT_S) == (130 if number == signal.SIGINT else -number)
        assert drafts() == []
    assert file.read_text() == "[machine.capacity]\nx = 1\n"
    assert told("machine", "show")["capacity"]["x"]["units"] == 1


def test_lowering_a_capacity_below_a_claim_ends_the_wait_for_it_with_2() -> None:
    hostler("machine", "set", "x=2")
    with (
        coordinator() as machine,
        machine.lease({"x": 1}),
        started("exec", "--claim", "x=2", "--", "echo", "never") as process,
    ):
        waiting(1)
        hostler("machine", "set", "x=1")
        output, errors = process.communicate(timeout=TIMEOUT_S)
        assert (process.returncode, output) == (2, "")
        assert "error[invalid-claims]: x=2 is more than the machine's 1" in errors


def test_a_lowered_capacity_takes_nothing_from_what_runs_inside_a_command() -> None:
    hostler("machine", "set", "x=2")
    python = f"{sys.executable} -m hostler"
    nested = f"{python} machine set x=1 >&2; {python} exec --claim x=2 -- echo got2"
    assert hostler("exec", "--claim", "x=2", "--", "sh", "-c", nested) == "got2\n"


def test_a_leaked_ticket_is_taken_back() -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        leak = subprocess.Popen(["sleep", "600"], pass_fds=[lease.fd])
        lease.release()
        said = hostler("machine", "revoke", str(lease.ticket))
        assert said == f"ticket {lease.ticket} (x=1) is taken back\n  still held open by pid {leak.pid}: sleep 600\n"
        machine.lease({"x": 1}, wait=0).release()
        assert told("machine", "revoke", str(lease.ticket))["processes"][0]["pid"] == leak.pid
        shown = hostler("top")
        assert f"{lease.ticket} revoked " in shown
        leak.kill()
        leak.wait()


def test_a_command_whose_ticket_is_taken_back_while_it_waits_ends_with_130() -> None:
    with (
        coordinator(x=1) as machine,
        machine.lease({"x": 1}) as lease,
        started("exec", "--claim", "x=1", "--", "true") as waiter,
    ):
        waiting(1)
        hostler("machine", "revoke", str(lease.ticket + 1))
        _, errors = waiter.communicate(timeout=TIMEOUT_S)
        assert waiter.returncode == 130
        assert f"error[wait-aborted]: ticket {lease.ticket + 1} was taken back while it waited; ask again" in errors


def test_these_are_decisions_of_a_person() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        for environ in ({"HOSTLER_NODE": "film/encode"}, {"HOSTLER_PRINCIPAL": "agent:bot"}):
            assert "may not" in refused("machine", "set", "x=2", code=5, **environ)
            assert "may not" in refused("machine", "revoke", str(lease.ticket), code=5, **environ)
            assert told_as(environ)["capacity"]["x"]["units"] == 1
        lease.assert_owned()
        assert [row.state for row in rows()] == ["admitted"]


def told_as(environ: dict[str, str]) -> dict[str, dict[str, dict[str, int]]]:
    found: dict[str, dict[str, dict[str, int]]] = json.loads(finished("machine", "show", "--json", **environ).stdout)
    return found


def test_nothing_is_set_in_a_configuration_that_is_wrong_elsewhere(tmp_path: Path) -> None:
    """It would read as done, while no program begins; nan, which is not itself, cannot be read back besides."""
    file = tmp_path / "config.toml"
    for wrong in ("[service]\ngrace_secondz = 3\n", "[limits]\nnodes = nan\n"):
        file.write_text(wrong)
        assert f"{file} line 2" in refused("machine", "set", "gpu=2", code=2)
        assert file.read_text() == wrong


def test_wrong_use_is_one_line() -> None:
    for arguments in (("set", "x"), ("set", "x=-1"), ("set", "x=1", "x=2"), ("set", "X=1"), ("revoke", "seven")):
        refused("machine", *arguments, code=2)
    refused("machine", "revoke", "99", code=4)
    refused("machine", code=2)
