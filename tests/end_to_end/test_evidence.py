"""A run that must show evidence, by the command line alone: blocked, explained, approved, proved, taken elsewhere."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main
from hostler.config import Config
from store.contracts import NodeRecord
from store.records import decode, encode
from store.values import Domain, digest_bytes
from tests.end_to_end.support import Terminal, command, graph, hostler, refused, shown, statuses, told

SUITE = '[{"id": "suite", "type": "test"}]'
DUE = [{"id": "suite", "type": "test"}, {"id": "look", "type": "human-approval"}]


def reporting(key: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a command that reports *text* as its evidence."""
    return command(key, "sh", "-c", 'printf "%s" "$0" > "$HOSTLER_EVIDENCE"', text) | {"evidence": DUE, **more}


def test_a_result_rests_until_a_person_approves_it_and_the_run_can_be_proved_at_every_step(tmp_path: Path) -> None:
    workflow = graph(tmp_path, reporting("make", SUITE), command("use", "true", after=("make",)))
    hostler("run", workflow, code=3)
    seen = shown()
    (waiting,) = seen["waiting_on"]
    assert waiting["reason"] == "blocked"
    assert waiting["message"] == "its result is there; evidence unapproved: look (human-approval)"
    assert waiting["command"] == f"hostler approve {seen['run_id']} make --plan {waiting['plan_sha256']} --attempt 1"
    (make,) = [node for node in seen["nodes"] if node["key"] == "make"]
    assert make["evidence"]["brought"] == [{"id": "suite", "type": "test"}]
    assert waiting["command"] in hostler("why", "-", "make")
    assert "exit_code" in hostler("approve", "-", "make", code=3), "what is approved is not shown"
    archive = tmp_path / "blocked.run"
    hostler("export", "-", str(archive))
    hostler("verify", str(archive))
    exactly = ("approve", "-", "make", "--plan", waiting["plan_sha256"], "--attempt", "1")
    refused(*exactly, code=5, HOSTLER_NODE="agent")
    hostler(*exactly)
    assert statuses() == {"make": "completed", "use": "ready"}
    hostler("resume", "-")
    hostler("verify", "-")
    kinds = [event["data"]["action"] for event in _events() if event["kind"] == "grant"]
    assert kinds == ["evidence"]
    _rewrite("make", evidence=())
    (found,) = told("verify", "-", code=2)["results"]
    assert {problem["code"] for problem in found["problems"]} == {"evidence-mismatch", "status-mismatch"}


def test_an_approval_is_for_the_result_that_was_shown_and_not_for_one_that_came_meanwhile(tmp_path: Path) -> None:
    """Who may retry a node could have another result approved than the one that a person has looked at."""
    made_anew = command(
        "make", "sh", "-c", "cat /proc/sys/kernel/random/uuid; printf '%s' \"$0\" > $HOSTLER_EVIDENCE", SUITE
    )
    hostler("run", graph(tmp_path, made_anew | {"evidence": DUE}), code=3)
    (waiting,) = shown()["waiting_on"]
    name = ("approve", "-", "make", "--plan", waiting["plan_sha256"])
    with Terminal("approve", "-", "make") as terminal:
        terminal.expect("approve? [y]es, [d]eny, [N]ot now: ")
        assert "of attempt 1" in terminal.screen
        hostler("retry", "-", "make", "--anew")
        hostler("resume", "-", code=3)
        terminal.write("y\n")
        terminal.expect("node make waits with attempt 2, not 1")
        assert terminal.wait() == 5
    for what in ((), ("--deny",)):
        assert "waits with attempt 2, not 1" in refused(*name, "--attempt", "1", *what, code=5)
    assert "and give --attempt" in refused(*name, code=5)
    assert statuses() == {"make": "blocked"}
    assert "give --plan" in refused("approve", "-", "make", "--attempt", "2", code=2)
    hostler(*name, "--attempt", "2")
    assert statuses() == {"make": "completed"}
    hostler("verify", "-")


def test_a_receipt_approves_no_other_result_than_the_one_that_waited_when_it_was_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that was given while the result of the first attempt waited approved that of the second, shown to nobody."""
    hostler("run", graph(tmp_path, reporting("make", SUITE), reporting("first", SUITE)), code=3)

    def bob(*words: str, code: int) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hostler.asking.principal", lambda: "human:bob")
            capsys.readouterr()
            assert main(list(words)) == code
        return capsys.readouterr().err

    def give(node: str, name: str) -> tuple[str, ...]:
        (plan,) = [waiting["plan_sha256"] for waiting in shown()["waiting_on"] if waiting["node"] == node]
        hostler("receipt", "create", "-", node, "--for", "human:bob", "--plan", plan, "--id", name)
        return ("approve", "-", node, "--receipt", name)

    old, first = give("make", "old"), give("first", "first")
    hostler("retry", "-", "make", "--anew")
    hostler("resume", "-", code=3)
    assert "waits with the result of attempt 2" in bob(*old, code=5)
    for named in ("1", "2"):
        error = bob(*old, "--attempt", named, code=5)
        assert error.startswith("hostler: error[receipt-mismatch]: receipt old is for attempt 1, not 2")
    new = give("make", "new")
    assert "and give --attempt" in bob(*new, code=5)
    assert "waits with attempt 2, not 1" in bob(*new, "--attempt", "1", code=5)
    assert statuses() == {"make": "blocked", "first": "blocked"}
    bob(*new, "--attempt", "2", code=0)
    bob(*first, code=0)
    assert statuses() == {"make": "completed", "first": "completed"}
    hostler("verify", "-")


def test_the_result_of_a_first_attempt_is_named_by_its_plan(tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, reporting("make", SUITE)), code=3)
    (waiting,) = shown()["waiting_on"]
    hostler("approve", "-", "make", "--plan", waiting["plan_sha256"])
    assert statuses() == {"make": "completed"}


def test_a_result_whose_evidence_is_wrong_is_judged_again_or_made_anew_as_a_person_says(tmp_path: Path) -> None:
    counter = tmp_path / "count"
    script = f'echo ran >> {counter}; [ -e {tmp_path}/good ] && printf "%s" "$0" > "$HOSTLER_EVIDENCE"; true'
    node = command("make", "sh", "-c", script, SUITE) | {"evidence": DUE[:1]}
    hostler("run", graph(tmp_path, node), code=3)
    assert "missing: suite (test)" in hostler("why", "-", "make")
    hostler("retry", "-", "make")
    hostler("resume", "-", code=3)
    assert counter.read_text() == "ran\n", "a result that was there was made again"
    (tmp_path / "good").touch()
    hostler("retry", "-", "make", "--anew")
    hostler("resume", "-")
    assert counter.read_text() == "ran\nran\n"
    assert statuses() == {"make": "completed"}


def _events() -> list[Any]:
    return [json.loads(line) for line in hostler("events", "-", "--json").splitlines()]


def _rewrite(key: str, **changes: Any) -> None:
    """Change a stored record as somebody would who knows how its digest is made."""
    with closing(sqlite3.connect(Config.load().home / "runs.db")) as connection, connection:
        (data,) = connection.execute("SELECT record FROM nodes WHERE key = ?", (key,)).fetchone()
        changed = encode(decode(NodeRecord, data, key).model_copy(update=changes))
        sha256 = digest_bytes(Domain.RECORD, changed)
        connection.execute("UPDATE nodes SET record = ?, sha256 = ? WHERE key = ?", (changed, sha256, key))
