"""What a look at the machine folder finds, and what it leaves alone."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostres.errors import Code
from hostres.folders import machine_folder
from hostres.inspection import Finding, inspect
from hostres.procfs import read_process
from hostres.revocation import revoke
from tests.hostres.support import children, coordinator, eventually


def look() -> list[Finding]:
    return inspect(machine_folder(os.environ), gate_patience_s=0.05)


@pytest.fixture
def folder() -> Path:
    with coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
        machine.lease({"x": 1}).release()
    return machine_folder(os.environ)


def entries(folder: Path) -> list[tuple[str, int, int]]:
    return sorted((str(path), path.lstat().st_ino, path.lstat().st_mtime_ns) for path in (folder, *folder.rglob("*")))


def only(match: str, code: Code | None = None) -> Finding:
    (finding,) = [finding for finding in look() if "dead" not in finding.what]
    assert match in f"{finding.what}; {finding.todo}"
    assert finding.code == code
    return finding


def test_a_machine_never_used_and_one_in_use_have_nothing_wrong() -> None:
    assert look() == []
    assert not machine_folder(os.environ).exists()
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        assert look() == []


def test_dead_names_are_told_and_left(folder: Path) -> None:
    before = entries(folder)
    (finding,) = look()
    assert "1 names of tickets that are dead: h." in finding.what
    assert finding.code is None
    assert entries(folder) == before


@pytest.mark.parametrize("name", ["", "t"])
def test_a_folder_that_is_open_to_others(folder: Path, name: str) -> None:
    (folder / name).chmod(0o755)
    only(f"chmod 700 {folder / name}".rstrip("/"), Code.UNSAFE_STATE)


@pytest.mark.parametrize("name", ["gate", "state.json"])
def test_a_file_that_is_open_to_others(folder: Path, name: str) -> None:
    (folder / name).chmod(0o644)
    only(f"chmod 600 {folder / name}", Code.UNSAFE_STATE)


def test_a_link_and_a_second_name(folder: Path) -> None:
    record = next(folder.glob("t/*.json"))
    (folder / "t" / "w.900.abcd").symlink_to(record)
    assert any("symbolic link" in finding.what for finding in look())
    (folder / "t" / "w.900.abcd").unlink()
    record.rename(folder / "record")
    (folder / "t" / record.name).hardlink_to(folder / "record")
    assert any("2 names" in finding.what and finding.code is Code.UNSAFE_STATE for finding in look())


def test_names_that_are_nobody_s(folder: Path) -> None:
    (folder / ".DS_Store").touch()
    for number in range(6):
        (folder / "t" / f"note~{number}").touch()
    finding = only("nothing here made them")
    assert ".DS_Store, t/note~0" in finding.what
    assert finding.what.endswith(" and 2 more")


def test_a_damaged_state_matters_while_tickets_live(folder: Path) -> None:
    (folder / "state.json").write_text("{")
    only("the next ask makes a new one")
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        (folder / "state.json").write_text("{")
        only("is damaged", Code.UNSAFE_STATE)
        (folder / "state.json").unlink()
        only("is missing while 1 tickets live", Code.UNSAFE_STATE)


def test_a_damaged_record_and_decisions(folder: Path) -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        (folder / "t" / f"{lease.ticket}.json").write_text("{}")
        only(f"hostler machine revoke {lease.ticket}", Code.UNSAFE_STATE)
    (folder / "decisions.json").touch(mode=0o600)
    only("decisions.json is damaged")


def test_a_revoked_ticket_that_is_still_held(folder: Path) -> None:
    with coordinator(x=1) as machine:
        lease = machine.lease({"x": 1})
        left = subprocess.Popen(["sleep", "600"], pass_fds=[lease.fd])
        lease.release()
        revoke(folder, lease.ticket)
        only(f"ticket {lease.ticket} is revoked, and pid {left.pid} (sleep 600) still holds it open")
        left.kill()
        left.wait()
        assert all("revoked, and" not in finding.what for finding in look())


def test_capacities_above_what_the_machine_has() -> None:
    with coordinator(cpu=100_000, memory_mb=1 << 40) as machine:
        machine.lease({}).release()
        told = [finding.what for finding in look() if finding.what.startswith("the capacity")]
        assert [what.split()[2].split("=")[0] for what in told] == ["cpu", "memory-mb"]


@pytest.fixture
def stopped_gate_holder(folder: Path) -> Iterator[int]:
    code = """
        coordinator = Coordinator(FOLDER)
        with coordinator.machine._gate:
            say("in")
            os.kill(os.getpid(), signal.SIGSTOP)
        say("out")
        hear()
    """
    with children() as start:
        child = start(code)
        child.line()
        eventually(lambda: getattr(read_process(child.pid), "state", "") == "T")
        yield child.pid


def test_a_gate_that_is_held_for_long_names_the_stopped_process(stopped_gate_holder: int) -> None:
    finding = only("nobody is admitted meanwhile", Code.UNAVAILABLE)
    assert f"pid {stopped_gate_holder} (" in finding.what
    assert "which is stopped" in finding.what


def test_a_network_file_system(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostres.folders.NETWORK_FILE_SYSTEMS", {"tmpfs", "ext4", "overlay", "btrfs", "xfs", "zfs"})
    monkeypatch.setattr(
        "hostres.inspection.refuse_network_file_system.__kwdefaults__", {"file_system": lambda _: "xfs"}
    )
    only("network file system", Code.UNSAFE_STATE)
