"""G1: a run with an activation gate starts nothing before a human opened it."""

import os
from pathlib import Path

import pytest

from hostler.__main__ import main
from tests.end_to_end.support import command, graph, shown, statuses


def go(*, after: tuple[str, ...] = ()) -> dict[str, object]:
    return {"key": "go", "after": list(after), "executor": {"gate": "activation"}}


def test_nothing_starts_before_a_human_opened_the_activation_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [command(key, "touch", str(tmp_path / key)) for key in ("one", "two")]
    later = command("later", "touch", str(tmp_path / "later"), after=("one",))
    assert main(["run", graph(tmp_path, *made, later, go())]) == 3
    assert statuses() == {"go": "approval-required", "one": "pending", "two": "pending", "later": "pending"}
    plan = shown()["waiting_on"][0]["plan_sha256"]
    assert main(["receipt", "create", "-", "go", "--for", "agent:bot", "--plan", plan, "--id", "r"]) == 0
    monkeypatch.setenv("HOSTLER_PRINCIPAL", "bot")
    assert main(["approve", "-", "go", "--receipt", "r"]) == 5
    assert main(["approve", "-", "go", "--plan", plan]) == 5
    assert main(["resume", "-"]) == 3
    assert not [key for key in ("one", "two", "later") if (tmp_path / key).exists()]
    monkeypatch.delenv("HOSTLER_PRINCIPAL")
    assert main(["approve", "-", "go", "--plan", plan]) == 0
    assert main(["resume", "-"]) == 0
    assert {"one", "two", "later"} <= set(os.listdir(tmp_path))


def test_an_activation_gate_waits_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", graph(tmp_path, command("one", "true"), go(after=("one",)))]) == 2
    assert "node go: an activation gate comes before everything, and it waits for one" in capsys.readouterr().err
