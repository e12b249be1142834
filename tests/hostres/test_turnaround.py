"""The average time of a turn: written over in place, and never believed if it is damaged."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostres.folders import machine_folder
from hostres.gate import Gate
from hostres.machine import Machine
from hostres.settings import MachineSettings
from hostres.top import snapshot
from hostres.turnaround import Turnaround, after_turn, read_turnaround
from tests.hostres.crowd import Crowd
from tests.hostres.support import coordinator


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
