"""The simulator compares rules on one trace, and one of them is the machine's own code."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostres import queue
from scripts import simulate_queue as simulator

SCRIPTS = Path(__file__).parents[2] / "scripts"
JOBS = 1500


@pytest.fixture(scope="module")
def outcomes() -> Any:
    jobs = simulator.trace(JOBS, 1, 0.9)
    return {name: simulator.simulate(rule, jobs) for name, rule in simulator.RULES.items()}


def test_who_lets_nobody_pass_keeps_everybody_waiting(outcomes: Any) -> None:
    for strict in ("first in, first out", "reserve for all earlier"):
        for passing in ("greedy", "patient"):
            assert outcomes[strict].mean_s > 3 * outcomes[passing].mean_s
            assert outcomes[strict].used < outcomes[passing].used - 0.05


def test_the_patient_rule_serves_big_claims_sooner_than_the_greedy_one_at_no_cost_to_the_others(outcomes: Any) -> None:
    greedy, patient = outcomes["greedy"], outcomes["patient"]
    assert patient.whole_mean_s < 0.8 * greedy.whole_mean_s
    assert patient.whole_max_s < 0.8 * greedy.whole_max_s
    assert patient.late_s < greedy.late_s
    assert patient.mean_s < 1.25 * greedy.mean_s
    assert abs(patient.used - greedy.used) < 0.02


def test_the_patient_rule_is_the_machine_s_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert vars(simulator)["decide"] is queue.decide
    called = []

    def decide(*arguments: Any, **named: Any) -> queue.Decision:
        called.append(named)
        return queue.decide(*arguments, **named)

    monkeypatch.setattr(simulator, "decide", decide)
    simulator.simulate(simulator.patient, simulator.trace(50, 2, 0.9))
    assert len(called) >= 50
    assert called[-1]["patience_ns"] >= 2 * simulator.SECOND_NS


def test_a_rule_that_lets_too_many_go_is_caught() -> None:
    def everybody(moment: Any) -> list[int]:
        return [job.number for job in moment.waiters]

    with pytest.raises(AssertionError):
        simulator.simulate(everybody, simulator.trace(50, 1, 0.9))


def test_the_same_seed_gives_the_same_trace() -> None:
    assert simulator.trace(20, 7, 0.8) == simulator.trace(20, 7, 0.8) != simulator.trace(20, 8, 0.8)


def test_the_figures_of_the_design_are_those_of_a_machine_that_foresees_how_long_each_job_takes() -> None:
    """They are 33 s, 240 s and 417 s at a load of 0.9 for this very trace."""
    foreseen = simulator.simulate(simulator.patient, simulator.trace(5000, 1, 0.9), foresight=True)
    assert (round(foreseen.mean_s), round(foreseen.late_s)) == (33, 240)
    assert abs(foreseen.whole_max_s - 417) < 1


def test_of_several_traces_it_gives_mean_and_spread() -> None:
    command = [sys.executable, str(SCRIPTS / "simulate_queue.py"), "60", "3", "--traces", "2"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[0] == "60 jobs, seed 3 to 4; seconds of waiting"
    assert all(line.count(" ± ") == 4 for line in lines if line.startswith("| 0."))


def test_it_prints_a_row_for_each_load_and_rule() -> None:
    command = [sys.executable, str(SCRIPTS / "simulate_queue.py"), "60", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len([line for line in lines if line.startswith("| 0.")]) == 15
    assert lines[-1].startswith("simulate-queue: ")
    assert subprocess.run([*command[:2], "0"], capture_output=True, check=False).returncode == 2
