"""A share of `scripts/stress-admission`: random SIGKILL and SIGSTOP of holders, waiters and children."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hostres.folders import machine_folder
from scripts import stress_admission as stress
from scripts import stress_observer as observer
from tests.hostres.support import coordinator

SCRIPTS = Path(__file__).parents[2] / "scripts"
SECONDS, LEAST = 10, 6


def test_admission_keeps_its_promises_whoever_is_killed_or_stopped() -> None:
    command = [sys.executable, str(SCRIPTS / "stress_admission.py"), "--seconds", str(SECONDS), "--workers", "6"]
    command += ["--least", str(LEAST)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found, verdict = done.stdout.splitlines()
    numbers = re.match(r"seed \d+: (\d+) turns, (\d+) kills, (\d+) stops, (\d+) looks", found)
    assert numbers is not None
    assert min(map(int, numbers.groups()[:3])) >= LEAST
    assert int(numbers[4]) > 0
    assert verdict == "stress-admission: never more held than there is, no waiter forgotten, no ticket left"


def test_who_was_killed_in_the_last_moment_has_not_failed_and_who_failed_before_has(tmp_path: Path) -> None:
    torment = stress.Torment(tmp_path, 0, 1)
    try:
        killed, shot, failed = (subprocess.Popen(command) for command in (["sleep", "60"], ["sleep", "60"], ["false"]))
        torment._workers = [killed, shot]
        torment._killed.add(killed.pid)
        for process in (killed, shot, failed):
            process.kill() if process is not failed else process.wait()
        torment._check(failed)
        for process in (killed, shot):
            process.wait()
        assert torment.finish() == ["a worker ended with code 1", "a worker ended with code -9"]
    finally:
        torment.close()


def test_its_observer_sees_what_is_held_past_what_there_is_also_inside_a_ticket() -> None:
    def excess() -> object:
        return observer.excess(machine_folder(os.environ) / "t", {"x": 2})

    with coordinator(x=3) as machine, machine.lease({"x": 2}) as outer:
        one, two = machine.lease({"x": 1}, parent=outer), machine.lease({"x": 1}, parent=outer)
        assert excess() == {}
        record = machine_folder(os.environ) / "t" / f"{one.ticket}.json"
        record.write_text(json.dumps({**json.loads(record.read_bytes()), "claims": {"x": 2}}))
        assert excess() == {str(outer.ticket): {"x": 1}}
        outer.release()
        assert excess() == {"the machine": {"x": 1}}
        two.release()
        assert excess() == {}
        with machine.lease({"x": 1}):
            assert excess() == {"the machine": {"x": 1}}
        one.release()
        assert excess() == {}


def test_its_end_names_what_is_not_free_and_what_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stress, "CAPACITY", {"x": 1})
    monkeypatch.setattr(stress, "FINISH_S", 0.05)
    with coordinator(x=1) as machine:
        with machine.lease({"x": 1}) as lease:
            left = stress.check_end(tmp_path)
            assert len(left) == 2
            assert "not free" in left[0]
            assert left[1].startswith(f"ticket h.{lease.ticket}.")
        assert stress.check_end(tmp_path) == []


@pytest.mark.parametrize("arguments", [["--seconds", "0"], ["--workers", "0"], ["--no-such"]])
def test_wrong_use_is_refused(arguments: list[str]) -> None:
    command = [sys.executable, str(SCRIPTS / "stress_admission.py"), *arguments]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
