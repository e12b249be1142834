"""The commands that check, keep and tidy: verify, export, import, gc, and paging through runs."""

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main
from hostler.commands.runs import PAGE
from store.archive.tables import TABLES
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader
from tests.end_to_end.support import command, gate, graph
from tests.store.keeping.conftest import Kept, kept, original  # noqa: F401 - fixtures
from tests.store.support import Setting, plan_of, record_of

Captured = pytest.CaptureFixture[str]


def said(capsys: Captured, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main([*arguments]) == code, capsys.readouterr()
    return capsys.readouterr().out


def told(capsys: Captured, *arguments: str, code: int = 0) -> Any:
    return json.loads(said(capsys, *arguments, "--json", code=code))


def error(capsys: Captured, *arguments: str, code: int) -> str:
    capsys.readouterr()
    assert main([*arguments]) == code
    line = capsys.readouterr().err
    assert line.startswith("hostler: error[")
    assert line.count("\n") == 1
    return line


def damage(home: Home, change: str) -> None:
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        connection.execute(change)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the home of the environment another, empty one."""
    monkeypatch.setenv("HOSTLER_HOME", str(tmp_path / "elsewhere"))
    return tmp_path / "elsewhere"


def test_a_clean_run_is_told_in_one_line_and_in_a_versioned_object(kept: Kept, capsys: Captured) -> None:  # noqa: F811
    line = f"{kept.run_id}: verified; completed, 8 nodes, "
    for arguments in (["-"], [kept.run_id[:12]], [kept.run_id, "-"], ["--all"]):
        text = said(capsys, "verify", *arguments)
        assert text.startswith(line)
        assert text.count("\n") == 1
    shape = told(capsys, "verify", "--all")
    assert (shape["format_version"], shape["ok"], shape["database"]) == (1, True, {"ok": True, "problems": []})
    (result,) = shape["results"]
    assert {*result} == {"run_id", "ok", "status", "nodes", "events", "grants", "problems", "files"}
    assert result["problems"] == result["files"] == []


def test_damage_names_run_table_node_and_event_with_a_stable_code_and_ends_with_2(
    kept: Kept,  # noqa: F811
    capsys: Captured,
) -> None:
    damage(kept.home, "UPDATE nodes SET sha256 = upper(sha256) WHERE key = 'paid'")
    damage(kept.home, "UPDATE events SET sha256 = upper(sha256) WHERE seq = 9")
    (result,) = told(capsys, "verify", "-", code=2)["results"]
    assert {(one["code"], one["table"], one.get("node"), one.get("event")) for one in result["problems"]} >= {
        ("digest-mismatch", "nodes", "paid", None),
        ("digest-mismatch", "events", None, 9),
    }
    capsys.readouterr()
    assert main(["verify", "-"]) == 2
    caught = capsys.readouterr()
    assert f"{kept.run_id}: nodes, node paid: [digest-mismatch] " in caught.out
    assert caught.err.startswith(f"hostler: error[invalid-data]: run {kept.run_id} is damaged: ")
    assert caught.err.count("\n") == 1
    assert "damaged" in error(capsys, "export", "-", str(kept.home.root.parent / "x.tar"), code=2)


def test_verify_all_finds_a_run_under_the_name_it_was_given_by_damage_and_a_broken_page(
    kept: Kept,  # noqa: F811
    capsys: Captured,
) -> None:
    damage(kept.home, "UPDATE runs SET run_id = CAST(x'72ff0a1b' AS TEXT)")
    (result,) = told(capsys, "verify", "--all", code=2)["results"]
    assert {"column-mismatch"} <= {one["code"] for one in result["problems"]}
    damage(kept.home, "PRAGMA wal_checkpoint(TRUNCATE)")
    with kept.home.database.open("r+b") as file:
        file.seek(kept.home.database.stat().st_size // 2)
        file.write(b"\xff" * 4096)
    capsys.readouterr()
    assert main(["verify", "--all"]) == 73
    assert "damaged" in capsys.readouterr().err


def test_a_run_whose_plan_is_under_another_name_is_shown_as_damaged_not_as_unknown(
    kept: Kept,  # noqa: F811
    capsys: Captured,
) -> None:
    damage(kept.home, "UPDATE graph_plans SET sha256 = 'x' || substr(sha256, 2)")
    line = error(capsys, "show", kept.run_id, code=2)
    assert line.startswith("hostler: error[invalid-data]: stored graph plan ")


def test_verify_all_finds_rows_of_a_run_that_is_not_there_itself(kept: Kept, capsys: Captured) -> None:  # noqa: F811
    damage(kept.home, "DELETE FROM runs")
    line = error(capsys, "verify", "--all", code=73)
    assert f"the row of run 1, {kept.run_id}, is missing, while it has rows in nodes, node_plans, outputs, " in line
    problems = told(capsys, "verify", "--all", code=73)["database"]["problems"]
    assert [(problem["code"], problem["table"]) for problem in problems] == [("missing", "runs")]
    damage(kept.home, "UPDATE events SET event = x'ff'")
    assert "the row of run 1 is missing, " in error(capsys, "verify", "--all", code=73)
    damage(kept.home, f"INSERT INTO removals VALUES (1, '{kept.run_id}')")  # as a killed gc leaves it
    said(capsys, "verify", "--all")


@pytest.mark.parametrize("table", [table.name for table in TABLES])
def test_one_such_row_is_enough(table: str, kept: Kept, capsys: Captured) -> None:  # noqa: F811
    if table in {"ledgers", "workspaces"}:  # the run has none by itself
        damage(kept.home, f"INSERT INTO {table} (run, node, record, sha256) VALUES (1, 'made', x'7b7d', 'x')")
    for other in TABLES:
        if other.name != table:
            damage(kept.home, f"DELETE FROM {other.name}")
    damage(kept.home, "DELETE FROM runs")
    assert f"is missing, while it has rows in {table}; " in error(capsys, "verify", "--all", code=73)


def test_files_that_were_moved_are_told_and_are_no_damage(kept: Kept, capsys: Captured) -> None:  # noqa: F811
    log = kept.home.log_path(kept.run_id, "made", 1, "stderr")
    log.unlink()
    text = said(capsys, "verify", "-")
    assert f"{log}: [log-missing]" in text
    assert "what is stored is sound" in text
    (note,) = told(capsys, "verify", "-")["results"][0]["files"]
    assert note == {"code": "log-missing", "node": "made", "path": str(log), "what": "it is not there now"}
    assert told(capsys, "verify", "-", "--no-files")["results"][0]["files"] == []


def test_verify_all_says_that_there_are_no_runs(capsys: Captured) -> None:
    assert said(capsys, "verify", "--all") == "no runs\n"
    assert told(capsys, "verify", "--all") == {
        "format_version": 1, "ok": True, "results": [], "database": {"ok": True, "problems": []},
    }  # fmt: skip


def test_gc_takes_an_imported_run_by_the_age_that_it_had_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    for name in ("home", "elsewhere"):
        monkeypatch.setenv("HOSTLER_HOME", str(tmp_path / name))
        if name == "home":
            setting = Setting(tmp_path / "home")
            run = setting.created()  # in 2023, and never started
            setting.close()
            said(capsys, "export", run, str(tmp_path / "x.tar"))
            assert told(capsys, "gc", "--older-than", "52w")["runs"] == []
        else:
            said(capsys, "import", str(tmp_path / "x.tar"))
            assert told(capsys, "gc", "--older-than", "52w")["runs"] == [run]


def test_verify_and_import_need_something_that_can_be_read(capsys: Captured) -> None:
    assert "--all" in error(capsys, "verify", code=2)
    assert "not-found" in error(capsys, "verify", "run_0", code=4)
    assert "not-found" in error(capsys, "verify", "./missing.tar", code=4)
    for verb in ("verify", "import"):
        for path in ("/dev/null", "/"):
            assert f"{path} is not a regular file" in error(capsys, verb, path, code=2)
    assert said(capsys, "verify", "--all") == "no runs\n"


def test_a_file_that_is_named_like_a_run_is_not_verified_in_its_place(
    kept: Kept,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("-", kept.run_id[:8], kept.run_id):
        Path(name).write_text("no archive")
        assert said(capsys, "verify", name).startswith(f"{kept.run_id}: verified")
        assert "archive" in error(capsys, "verify", f"./{name}", code=2)
    Path("talk").write_text("no archive")
    assert "archive" in error(capsys, "verify", "talk", code=2)


def test_a_run_goes_out_as_a_private_file_is_proved_and_comes_back_to_be_looked_at(
    kept: Kept,  # noqa: F811
    elsewhere: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    monkeypatch.setenv("HOSTLER_HOME", str(kept.home.root))
    file = tmp_path / "-odd name\n.tar"
    before = said(capsys, "show", "-")
    shape = told(capsys, "export", "-", f"./{os.path.relpath(file)}")
    data = file.read_bytes()
    assert (shape["run_id"], shape["bytes"], shape["sha256"]) == (kept.run_id, len(data), data[-64:].decode())
    assert hashlib.sha256(data[:-64]).hexdigest() == shape["sha256"]
    assert file.stat().st_mode & 0o777 == 0o600
    said(capsys, "export", "-", str(file))
    assert file.read_bytes() == data
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".hostler")] == []

    monkeypatch.setenv("HOSTLER_HOME", str(elsewhere))
    assert f"{kept.run_id}: verified; completed" in said(capsys, "verify", str(file))
    assert told(capsys, "verify", str(file))["results"][0]["file"] == str(file)
    assert not elsewhere.exists(), "an archive is proved without any home"
    assert told(capsys, "import", str(file)) == {
        "format_version": 1, "run_id": kept.run_id, "sha256": shape["sha256"], "new": True,
    }  # fmt: skip
    assert told(capsys, "import", str(file))["new"] is False
    assert "there already" in said(capsys, "import", str(file))

    assert (
        said(capsys, "show", "-").replace("imported: a record of what was done elsewhere, to be looked at\n", "")
        == before
    )
    assert told(capsys, "show", "-")["imported"] == {"sha256": shape["sha256"]}
    assert told(capsys, "runs")["runs"][0]["imported"] is True
    assert "imported" in said(capsys, "runs")
    assert said(capsys, "logs", "-", "made") == "said\n"
    assert f"{kept.run_id}: verified" in said(capsys, "verify", "-")
    for arguments in (
        ["resume", "-"],
        ["retry", "-", "made"],
        ["cancel", "-", "--node", "made"],
        ["replay", "-", "size"],
    ):
        assert "imported" in error(capsys, *arguments, code=5)


def test_an_unfinished_run_comes_back_with_no_advice_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    run_id = setting.claimed().fence.run_id
    said(capsys, "export", "-", str(tmp_path / "x.tar"))
    setting.close()
    monkeypatch.setenv("HOSTLER_HOME", str(tmp_path / "elsewhere"))
    said(capsys, "import", str(tmp_path / "x.tar"))
    for arguments, code in (
        (["show", "-"], 0),
        (["runs"], 0),
        (["watch", "-"], 3),
        (["why", "-"], 0),
        (["why", "-", "a"], 0),
    ):
        text = said(capsys, *arguments, code=code)
        assert run_id in text
        assert "imported" in text
        assert "hostler resume" not in text
    assert "imported" in error(capsys, "resume", "-", code=5)
    assert "imported" in error(capsys, "cancel", "-", code=5)


def test_of_an_imported_run_that_waits_nothing_is_offered_to_be_typed_or_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """What waits is still told; `approve` refuses before it shows anything, whatever it was to answer."""
    workflow = graph(tmp_path, command("first", "true"), gate("look", after=("first",)))
    said(capsys, "run", workflow, code=3)
    (waiting,) = told(capsys, "show", "-")["waiting_on"]
    assert waiting.pop("command").startswith("hostler approve")
    said(capsys, "export", "-", str(tmp_path / "x.tar"))
    monkeypatch.setenv("HOSTLER_HOME", str(tmp_path / "elsewhere"))
    said(capsys, "import", str(tmp_path / "x.tar"))
    assert told(capsys, "show", "-")["waiting_on"] == [waiting]
    for arguments in (["-"], ["-", "look"], ["-", "look", "--plan", waiting["plan_sha256"]], ["-", "--json"]):
        assert "imported" in error(capsys, "approve", *arguments, code=5)


def test_a_hostile_file_is_one_clean_error_and_nothing_special_is_overwritten(
    kept: Kept,  # noqa: F811
    tmp_path: Path,
    capsys: Captured,
) -> None:
    bad = tmp_path / "bad.tar"
    for data in (b"", b"\x1b[31m" * 1000, bytes(5000)):
        bad.write_bytes(data)
        assert "not a sound archive" in error(capsys, "import", str(bad), code=2)
        assert "not a sound archive" in error(capsys, "verify", str(bad), code=2)
    link = tmp_path / "link"
    link.symlink_to(bad)
    for target in (link, tmp_path):
        assert "not a regular file" in error(capsys, "export", "-", str(target), code=5)
    assert bad.read_bytes() == bytes(5000)
    for own in (
        kept.home.root / "runs.db",
        kept.home.root / "logs" / "x.tar",
        Path(os.environ["HOSTLER_MACHINE_DIR"], "x"),
    ):
        own.parent.mkdir(exist_ok=True)
        assert "which Hostler keeps" in error(capsys, "export", "-", str(own), code=5)
    missing = tmp_path / "missing"
    said_of_it = error(capsys, "export", "-", str(missing / "x.tar"), code=69)
    assert f"{missing}/x.tar cannot be written: there is no folder {missing}; make it, or name another" in said_of_it
    assert ".hostler-" not in error(capsys, "export", "-", f"{bad}/x.tar", code=69), "nobody has heard of the draft"


def test_gc_says_what_it_would_do_then_does_it(kept: Kept, capsys: Captured) -> None:  # noqa: F811
    assert said(capsys, "gc").startswith("removed 0 runs, 0 plans, 0 code bundles, 0 leftovers; 0 bytes")
    assert told(capsys, "gc", "--older-than", "0s", "--keep", "1")["runs"] == []
    would = said(capsys, "gc", "--older-than", "0s", "--dry-run")
    assert would.startswith("would remove 1 run, 1 plan, 1 code bundle, 2 leftovers; about ")
    assert f"\n  {kept.run_id}\n" in would
    done = told(capsys, "gc", "--older-than", "0s")
    assert (done["format_version"], done["dry_run"], done["runs"], done["failed"]) == (1, False, [kept.run_id], [])
    assert done["bytes"]["files"] > 600_000
    assert said(capsys, "runs") == "no runs\n"


def test_gc_goes_by_the_configuration_and_what_is_typed_goes_before_it(kept: Kept, capsys: Captured) -> None:  # noqa: F811
    config = Path(os.environ["HOSTLER_CONFIG"])
    config.write_text('[retention]\nolder_than = "0s"\nkeep = 1\n', encoding="utf-8")
    assert told(capsys, "gc", "--dry-run")["runs"] == []
    assert told(capsys, "gc", "--dry-run", "--keep", "0")["runs"] == [kept.run_id]
    config.write_text('[retention]\nolder_than = "0s"\n', encoding="utf-8")
    assert told(capsys, "gc", "--dry-run")["runs"] == [kept.run_id]
    assert told(capsys, "gc", "--dry-run", "--older-than", "1d")["runs"] == []
    config.write_text("[retention]\nmost_gigabytes = 0.00001\n", encoding="utf-8")
    assert told(capsys, "gc", "--dry-run")["runs"] == [kept.run_id], "it takes more than 10 kB"
    assert told(capsys, "gc", "--dry-run", "--most-gigabytes", "1")["runs"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--older-than", "30"],
        ["--older-than", "-1d"],
        ["--older-than", "9999999w"],
        ["--keep", "-1"],
        ["--most-gigabytes", "1e3"],
    ],
)
def test_gc_refuses_an_age_that_is_none(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as left:
        main(["gc", *arguments])
    assert left.value.code == 2


def test_gc_says_in_a_line_what_it_keeps_where_the_store_was_lost(kept: Kept, capsys: Captured) -> None:  # noqa: F811
    for path in kept.home.root.glob("runs.db*"):
        path.unlink()
    for more in (["--dry-run"], []):
        first, line = said(capsys, "gc", "--older-than", "0s", *more).splitlines()
        assert "0 runs, 0 plans, 0 code bundles, 0 leftovers; " in first
        assert line == ("kept 4 that no run names: there is no run in this store; if runs.db was lost, put a copy back")
    assert told(capsys, "gc", "--older-than", "0s")["kept"] == {"no-runs": 4}
    assert kept.home.logs_of(kept.run_id, "made", 1)


def test_gc_where_nothing_is_makes_nothing(capsys: Captured) -> None:
    assert told(capsys, "gc")["runs"] == []
    assert not Path(os.environ["HOSTLER_HOME"]).exists()


@pytest.fixture
def many() -> Home:
    """Give a store of 10,000 runs, written without the care that real ones get."""
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    plan = plan_of({"a": []})
    setting.store.create(record_of(plan, run_id="run_" + "0" * 26), plan, bundle=None)
    columns = "workflow, plan_sha256, created_at, record, sha256, counts, event_seq, event_sha256"
    connection = setting.store._connection
    connection.execute("BEGIN")
    connection.executemany(
        f"INSERT INTO runs (run_id, status, {columns}) SELECT ?, ?, {columns} FROM runs WHERE run = 1",
        [(f"run_{n:026}", ("completed", "failed")[n % 2]) for n in range(1, 10_000)],
    )
    connection.execute("COMMIT")
    setting.close()
    return setting.home


def steps(home: Home, **wanted: Any) -> int:
    """How much SQLite does for a page, in thousands of its instructions, and that it does it by an index alone."""
    queries: list[str] = []
    done = [0]

    def step() -> int:
        done[0] += 1
        return 0

    with Reader.open(home) as reader:
        assert reader._connection is not None
        reader._connection.set_trace_callback(queries.append)
        reader._connection.set_progress_handler(step, 10)
        assert len(reader.runs(limit=PAGE, **wanted)) == PAGE
        reader._connection.set_progress_handler(None, 0)
        reader._connection.set_trace_callback(None)
        (query,) = [query for query in queries if " FROM runs" in query]
        plan = " ".join(row[3] for row in reader._connection.execute(f"EXPLAIN QUERY PLAN {query}"))
        assert "USING INDEX" in plan
        assert "TEMP B-TREE" not in plan, plan
    return done[0]


def test_a_page_of_10_000_runs_costs_what_is_on_it(many: Home) -> None:
    """Field case 69."""
    middle = f"run_{5000:026}"
    for wanted in (
        {},
        {"before": middle},
        {"status": RunStatus.FAILED},
        {"status": RunStatus.FAILED, "before": middle},
    ):
        assert steps(many, **wanted) * 10 < 60 * PAGE, wanted


def test_runs_are_shown_page_by_page(many: Home, capsys: Captured) -> None:
    seen: list[str] = []
    more: list[str] = []
    for _ in range(3):
        lines = said(capsys, "runs", "--status", "failed", *more).splitlines()
        seen += [line.split()[0] for line in lines[1:-1]]
        more = lines[-1].partition("hostler runs ")[2].split()[2:]
        assert more[:3] == ["--limit", str(PAGE), "--before"]
    assert seen == [f"run_{n:026}" for n in range(9_999, 9_999 - 6 * PAGE, -2)]
    shape = told(capsys, "runs", "--limit", "2", "--before", seen[0])
    assert ([run["run_id"] for run in shape["runs"]], shape["more"]) == ([f"run_{n:026}" for n in (9998, 9997)], True)
    assert "older ones" not in said(capsys, "runs", "--before", f"run_{3:026}")
    assert len(told(capsys, "runs")["runs"]) == 10_000
