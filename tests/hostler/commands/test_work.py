"""`hostler work`: what a worker types, and what it is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main

GRAPH = {
    "workflow": {"id": "outside"},
    "nodes": [
        {"key": "first", "executor": {"agent": {"objective": "do it"}}},
        {
            "key": "second",
            "input": {"$ref": {"node": "first", "path": ["output"]}},
            "executor": {"agent": {"objective": "do the rest"}},
        },
    ],
    "outputs": {"$ref": {"node": "second", "path": ["summary"]}},
}


class Typed:
    """The command line in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        assert main([*arguments]) == code, self._capsys.readouterr()
        said = self._capsys.readouterr()
        return said.err if code else said.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments))

    def result(self, **fields: object) -> str:
        path = self.folder / "result.json"
        path.write_text(json.dumps({"status": "success", "usage": {"tokens": 1}, **fields}), encoding="utf-8")
        return str(path)


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typed:
    """The command line, and a run that waits for workers."""
    path = tmp_path / "outside.json"
    path.write_text(json.dumps(GRAPH), encoding="utf-8")
    typed = Typed(tmp_path, capsys)
    typed("submit", str(path))
    return typed


def test_a_run_that_no_host_works_on_is_worked_off_by_commands_alone(typed):
    """G18: each command claims the run for as long as it takes; exit codes 4 and 5 for scripts."""
    first = typed.json("work", "next", "--worker", "ann")
    assert first == typed.json("work", "next", "--worker", "ann", "--run", "-")
    key = first["idempotency_key"]
    assert key == f"{first['run_id']}:first:1"
    assert Path(first["workspace"]).is_dir()
    assert (first["worker"], first["lease_s"], first["max_seconds"]) == ("ann", 60.0, 3600.0)
    assert "no work is ready for bob" in typed("work", "next", "--worker", "bob", code=4)
    assert typed.json("work", "beat", key, "--lease", "10m", "--json")["expires_at"] > first["expires_at"]
    file = typed.result(output=[1])
    assert typed.json("work", "submit", key, "--result", file, "--json") == {
        "format_version": 1,
        "idempotency_key": key,
        "settled": True,
    }
    assert typed.json("work", "submit", key, "--result", file, "--json") == {
        "format_version": 1,
        "idempotency_key": key,
        "settled": True,
    }
    assert "another result" in typed("work", "submit", key, "--result", typed.result(summary="no"), code=5)
    assert "not leased any more" in typed("work", "beat", key, code=5)
    assert typed("work", "next", "--worker", "bob", "--json").count("\n") == 1
    second = typed.json("work", "next", "--worker", "bob")
    assert second["input"] == [1]
    assert typed("work", "give-back", second["idempotency_key"], "--reason", "lunch") == "given back\n"
    again = typed.json("work", "next", "--worker", "ann")
    assert again["attempt"] == 2
    key = again["idempotency_key"]
    assert "settled" in typed("work", "submit", key, "--result", typed.result(summary="all done"))
    shown = typed.json("show", first["run_id"], "--json")
    assert (shown["status"], shown["outputs"]) == ("completed", "all done")
    typed("verify", first["run_id"])


def test_why_says_that_a_worker_is_wanted_and_that_one_has_it(typed):
    """With the command to type for it."""
    why = typed("why", "-", "first")
    assert "waits for a worker" in why
    assert "hostler work next --worker NAME --run " in why
    key = typed.json("work", "next", "--worker", "ann")["idempotency_key"]
    why = typed("why", "-", "first")
    assert "A worker has had attempt 1" in why
    assert key in why
    assert "agent:external" in typed("show", "-")


@pytest.mark.parametrize(
    "arguments",
    [
        ("beat", "x"),
        ("next", "--worker", "ann", "--lease", "soon"),
        ("next", "--worker", "ann", "--lease", "0s"),
        ("next", "--worker", ""),
        ("submit", "x", "--result", "/nowhere"),
    ],
)
def test_what_is_typed_wrong_is_wrong_use(typed, arguments):
    """One line, exit code 2."""
    assert typed("work", *arguments, code=2).count("\n") == 1


def test_without_a_store_there_is_no_work(tmp_path, capsys):
    """Not found, and nothing is made."""
    Typed(tmp_path, capsys)("work", "next", "--worker", "ann", code=4)
