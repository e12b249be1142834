"""The benchmarks run and say what they found in the promised form; what the figures are is no verdict here."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks.results import Goal, informing, judged, ratio, table, unmeasured, verdict

ROOT = Path(__file__).parent.parent
AREAS = ("admission", "exec", "scheduler", "store")


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=150, check=False
    )


def bench(*words: str) -> subprocess.CompletedProcess[str]:
    """Not through `scripts/bench`, which would install the peers."""
    return run(sys.executable, "-m", "scripts.benchmarks", *words)


@pytest.mark.parametrize("area", AREAS)
def test_the_least_run_of_an_area_gives_well_formed_results(area: str) -> None:
    done = bench(area, "--json", "--smoke")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["area"] == area
    assert {"cpus", "python", "effort"} <= found["machine"].keys()
    names = [row["name"] for row in found["results"]]
    assert len(set(names)) == len(names) > 0
    for row in found["results"]:
        assert isinstance(row["unit"], str)
        assert row["value"] is None or isinstance(row["value"], int | float)
        assert (row["met"] is None) == (row["goal"] is None or row["value"] is None)
        assert row["value"] is not None or row["note"].startswith("not measured: ")
    assert any(row["met"] is not None for row in found["results"])


def test_people_get_a_line_for_each_figure_and_a_count_of_the_goals_met() -> None:
    rows = [
        judged("good", 0.5, "×", Goal(limit=1)),
        judged("bad", 0.5, "×", Goal(limit=0.85, at_least=True), "at night"),
        ratio("odd", 1.0, 0.0, Goal(limit=2)),
        unmeasured("absent", "×", Goal(limit=3), "no such peer"),
        informing("aside", 1234.5, "µs"),
    ]
    lines = [" ".join(line.split()) for line in table(rows)]
    assert lines[1:] == [
        "good 0.5 × <= 1 yes",
        "bad 0.5 × >= 0.85 NO (at night)",
        "odd – × <= 2 – (not measured: the peer's figure is 0)",
        "absent – × <= 3 – (not measured: no such peer)",
        "aside 1234 µs – –",
    ]
    assert verdict(rows) == "1 of 2 goals met, 2 not measured"


@pytest.mark.parametrize("script", [[sys.executable, "-m", "scripts.benchmarks"], [str(ROOT / "scripts" / "bench")]])
def test_an_unknown_area_is_refused_in_one_line_that_names_the_known_ones(script: list[str]) -> None:
    refused = run(*script, "everything")
    assert refused.returncode == 2
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert "there is no area everything" in line
    assert all(area in line for area in AREAS)


@pytest.mark.parametrize("words", [[], ["--nope", "exec"], ["exec", "admission"]])
def test_wrong_use_is_refused_before_anything_is_installed(words: list[str]) -> None:
    refused = run(str(ROOT / "scripts" / "bench"), *words)
    assert refused.returncode == 2
    assert refused.stderr.startswith("bench: ")
