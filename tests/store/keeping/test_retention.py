"""Tidying: what nobody needs goes, nothing else does, and the room comes back."""

import os
import random
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from store import schema
from store.clock import instant
from store.contracts import RequestKind, RunRecord, Summary
from store.database import open_writer
from store.home import Home
from store.lifecycle import RunStatus, Status, counts
from store.reader import Reader
from store.requests import post
from store.retention import removal
from store.retention.collection import Collected, _folders, collect, preview
from store.retention.selection import Ended, ended, outdated
from store.retention.strays import Doubt
from store.retention.waste import size_of
from store.run_store import RunStore
from store.schema import MIGRATIONS
from store.staged import Staged
from store.transactions import Output
from store.upgrade import upgrade
from tests.store.keeping.conftest import Kept
from tests.store.support import (
    CLOCK,
    EPOCH_MS,
    STAMP,
    Setting,
    finish_node,
    moved,
    plan_of,
    request_of,
    run_id,
    transaction,
)

NOW_S = EPOCH_MS / 1000 + 1_000_000
LATER = instant(EPOCH_MS + 500_000_000)
ONE = plan_of({"a": []})
CHILDREN = ("nodes", "node_plans", "outputs", "summaries", "events", "grants", "requests", "receipts")


def gone(home: Home, *, before: str = LATER, keep: int = 0) -> Collected:
    return collect(home, before=before, keep=keep, now_unix_s=NOW_S)


def finished(setting: Setting, value: Any = 1, plan: Any = ONE, **more: Any) -> str:
    """A run of one node that has completed, with folders as a host makes them."""
    claimed = setting.claimed(plan, **more)
    done = finish_node(setting, claimed, "a", value)
    summary = Summary(status=RunStatus.COMPLETED, counts=counts({Status.COMPLETED: 1}))
    setting.accept(claimed, nodes=(done,), summary=summary, status=RunStatus.COMPLETED, release=True)
    run = claimed.fence.run_id
    (setting.home.workspace(run, "a", "0" * 64) / "made").write_bytes(b"x" * 5000)
    setting.home.log_path(run, "a", 1, "stdout").write_bytes(b"said")
    (setting.home.logs / f"{run}.log").write_bytes(b"view")
    return run


def aged(path: Path, unix_s: float = EPOCH_MS / 1000 + 3600) -> None:
    """Let all of it have changed for the last time then."""
    for one in (*path.rglob("*"), path):
        os.utime(one, (unix_s, unix_s))


def unknown(home: Home, unix_s: float) -> list[Path]:
    """Workspace, logs and view of a run that no row names."""
    run = run_id()
    paths = [home.staging / run, home.logs / run, home.logs / f"{run}.log"]
    for folder in paths[:2]:
        (folder / "a").mkdir(parents=True, mode=0o700)
        (folder / "a" / "file").write_bytes(b"x")
    paths[2].write_bytes(b"x")
    for path in paths:
        aged(path, unix_s)
    return paths


def told_and_done(home: Home, *, before: str = LATER) -> Collected:
    """Tidy, having asked before what that would do: it is the same."""
    told = preview(home, before=before, keep=0, now_unix_s=NOW_S)
    done = gone(home, before=before)
    for name in ("runs", "plans", "bundles", "leftovers", "kept"):
        assert getattr(told, name) == getattr(done, name), name
    return done


def orphans(home: Home) -> dict[str, int]:
    """Rows of runs that are not there, by table."""
    with closing(sqlite3.connect(home.database)) as connection:
        found = {
            table: connection.execute(
                f"SELECT count(*) FROM {table} WHERE run NOT IN (SELECT run FROM runs)"
            ).fetchone()[0]
            for table in (*CHILDREN, "removals")
        }
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == [] or any(found.values())
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return {table: count for table, count in found.items() if count}


def files(home: Home) -> set[str]:
    return {
        str(path.relative_to(home.root))
        for folder in (home.staging, home.logs, home.content, home.bundles)
        for path in folder.rglob("*")
        if path.is_file()
    }


def listed(home: Home) -> set[str]:
    with Reader.open(home) as reader:
        return {row.run_id for row in reader.runs()}


def test_which_runs_go_is_a_question_of_age_and_of_the_newest_that_stay() -> None:
    runs = [Ended(n, f"run{n}", instant(EPOCH_MS + n * 1000), None, asked=False) for n in range(10, 0, -1)]

    def going(seconds: int, keep: int) -> list[int]:
        before = instant(EPOCH_MS + seconds * 1000)
        return [run.run for run in outdated(runs, before=before, keep=keep, alive=lambda _: False)]

    assert going(4, 0) == [3, 2, 1]
    assert going(100, 8) == [2, 1]
    assert going(100, 10) == []
    assert going(0, 0) == []
    held = [Ended(1, "a", instant(0), "host_x", asked=False), Ended(2, "b", instant(0), None, asked=True)]
    assert outdated(held, before=LATER, keep=0, alive=lambda _: True) == []
    assert [run.run for run in outdated(held, before=LATER, keep=0, alive=lambda _: False)] == [1]


def test_a_run_goes_with_all_that_was_its_own_and_what_is_shared_stays(setting: Setting) -> None:
    code = b"code"
    plan = plan_of({"a": []}, inputs={"large": "x" * 400_000})
    old = finished(setting, "y" * 400_000, plan, bundle=code)
    lone = finished(setting, "z" * 400_000, plan_of({"a": []}, inputs={"other": 1}), bundle=b"other code")
    young = setting.created(plan, bundle=code)
    assert len([*setting.home.content.iterdir()]) == 3
    done = gone(setting.home)
    assert {*done.runs} == {old, lone}
    assert (done.plans, done.bundles, done.leftovers, done.failed) == (1, 1, 2, [])
    assert done.file_bytes >= 800_000
    assert listed(setting.home) == {young}
    assert orphans(setting.home) == {}
    with Reader.open(setting.home) as reader:
        record = reader.run(young).record
        assert reader.plan(record.plan_sha256) == plan
        assert reader.bundle(record.bundle_sha256 or "") == code
    assert files(setting.home) == {f"content/{record.plan_sha256}"}
    assert gone(setting.home).runs == []


def test_what_rests_is_claimed_was_never_started_or_is_asked_for_stays(setting: Setting) -> None:
    resting = setting.claimed()
    ready = resting.nodes[0]
    running = moved(ready, Status.RUNNING, attempt=1)
    setting.accept(resting, started=True, nodes=(running,))
    setting.accept(resting, nodes=(moved(running, Status.AMBIGUOUS),), release=True)
    planned = setting.created()
    live = setting.claimed().fence.run_id
    asked, claimed = finished(setting), finished(setting)
    post(setting.home, request_of(asked, RequestKind.RETRY, node="a"), clock=CLOCK)
    setting.store.claim(claimed, setting.identity)
    goes = finished(setting)
    assert preview(setting.home, before=LATER, keep=0, now_unix_s=NOW_S).runs == [goes]
    assert gone(setting.home).runs == [goes]
    assert listed(setting.home) == {resting.fence.run_id, planned, live, asked, claimed}
    for run in (asked, claimed):
        assert setting.home.logs_of(run, "a", 1)
        assert (setting.home.staging / run).is_dir()


def test_a_run_that_is_wanted_between_the_choice_and_the_removal_stays(setting: Setting) -> None:
    run = finished(setting)
    with closing(open_writer(setting.home.database, schema.SCHEMA_VERSION, create=False)) as connection:
        one = removal.Removal(connection, setting.home.database)
        chosen = [Ended(1, run, instant(0), None, asked=False)]
        setting.store.claim(run, setting.identity)
        assert [*one.hide(chosen, before=LATER, alive=lambda _: True)] == [[]]
    assert listed(setting.home) == {run}


def test_a_trial_says_what_would_go_and_touches_nothing(setting: Setting) -> None:
    runs = [finished(setting, f"{n}" * 400_000) for n in range(3)]
    left = setting.home.staging / run_id()
    left.mkdir(mode=0o700)
    aged(left)
    before = {path: path.stat().st_mtime_ns for path in setting.home.root.rglob("*")}
    told = preview(setting.home, before=LATER, keep=1, now_unix_s=NOW_S)
    assert {path: path.stat().st_mtime_ns for path in setting.home.root.rglob("*")} == before
    assert told.runs == [runs[1], runs[0]]
    assert (told.plans, told.leftovers) == (0, 3), "the values, too, that go with the runs"
    done = gone(setting.home, keep=1)
    assert (done.runs, done.plans, done.leftovers) == (told.runs, told.plans, told.leftovers)


def test_what_killed_hosts_left_goes_and_what_is_being_written_stays(setting: Setting) -> None:
    home, live = setting.home, setting.created()
    folders = [home.staging / run_id(), home.logs / run_id(), home.bundles / ("a" * 64), home.logs / ".gone.1"]
    for folder in folders:
        folder.mkdir(mode=0o700)
        (folder / "file").write_bytes(b"x")
        aged(folder)
    lone = [home.logs / f"{run_id()}.log", home.content / ("b" * 64), home.content / f".new.{'c' * 64}.0000"]
    for file in lone:
        file.write_bytes(b"x")
        aged(file)
    kept = [home.content / f".new.{'d' * 64}.0000", home.logs / "notes.txt", home.logs / f"{live}.log"]
    for file in kept:
        file.write_bytes(b"x")
        os.utime(file, (NOW_S, NOW_S))
    workspace = home.workspace(live, "a", "0" * 64)
    dead = home.hosts / f"host_{'0' * 26}"
    os.mkfifo(dead, 0o600)
    done = gone(home)
    assert done.leftovers == len(folders) + len(lone)
    assert not any(path.exists() for path in (*folders, *lone, dead))
    assert all(path.exists() for path in (*kept, workspace))
    assert setting.identity.still_there()


def test_folders_of_unknown_runs_stay_until_the_newest_thing_in_them_is_old_enough(setting: Setting) -> None:
    setting.created()
    old, young, grown = (unknown(setting.home, EPOCH_MS / 1000 + age) for age in (60, 7200, 60))
    os.utime(grown[0] / "a" / "file", (EPOCH_MS / 1000 + 7200,) * 2)
    done = told_and_done(setting.home, before=instant(EPOCH_MS + 3_600_000))
    assert (done.leftovers, done.kept) == (5, {Doubt.YOUNG: 4})
    assert not any(path.exists() for path in (*old, *grown[1:]))
    assert all(path.exists() for path in (*young, grown[0]))
    assert told_and_done(setting.home).leftovers == 4


def test_nothing_goes_where_runs_db_is_gone_empty_or_new(setting: Setting) -> None:
    home = setting.home
    finished(setting, "x" * 400_000, bundle=b"code")
    before = files(home)
    setting.close()
    for path in home.root.glob("runs.db*"):
        path.unlink()
    for make in (lambda: None, lambda: home.database.touch(0o600), lambda: RunStore.open(home, clock=CLOCK).close()):
        make()
        done = told_and_done(home)
        assert (done.leftovers, done.kept, files(home)) == (0, {Doubt.NO_RUNS: 4}, before)


def test_values_stay_where_the_store_never_had_a_run_even_if_no_run_left_a_folder(setting: Setting) -> None:
    value = setting.home.content / ("b" * 64)
    value.write_bytes(b"x")
    assert told_and_done(setting.home).kept == {Doubt.NO_RUNS: 1}
    assert value.exists()
    setting.created()
    assert told_and_done(setting.home).leftovers == 1
    assert not value.exists()


def test_nothing_that_is_older_than_every_run_of_the_store_goes_with_it(setting: Setting) -> None:
    """The file was replaced: by a new one, in which somebody has worked since."""
    setting.created()
    paths = unknown(setting.home, EPOCH_MS / 1000 - 1)
    value = setting.home.content / ("b" * 64)
    value.write_bytes(b"x")
    done = told_and_done(setting.home)
    assert (done.leftovers, done.kept) == (0, {Doubt.OLDER_THAN_STORE: 4})
    assert all(path.exists() for path in (*paths, value))


def test_nothing_of_a_run_goes_whose_own_row_was_lost(setting: Setting) -> None:
    lost = finished(setting, "x" * 400_000, bundle=b"code")
    goes = finished(setting, plan=plan_of({"a": []}, inputs={"other": 1}))
    before = {path for path in files(setting.home) if goes not in path}
    with closing(sqlite3.connect(setting.home.database, isolation_level=None)) as connection:
        connection.execute("DELETE FROM runs WHERE run_id = ?", (lost,))
        for path in (setting.home.staging / lost, setting.home.logs / lost, setting.home.logs / f"{lost}.log"):
            aged(path)
        done = told_and_done(setting.home)
        assert (done.runs, done.leftovers, done.kept) == ([goes], 0, {Doubt.ROWS_LOST: 3})
        assert files(setting.home) == before
        assert connection.execute("SELECT count(*) FROM bundles").fetchone() == (1,)


def test_a_trial_also_tells_of_what_a_killed_one_left(setting: Setting) -> None:
    run = finished(setting, "x" * 400_000)
    with closing(open_writer(setting.home.database, schema.SCHEMA_VERSION, create=False)) as connection:
        one = removal.Removal(connection, setting.home.database)
        assert list(one.hide(ended(connection), before=LATER, alive=lambda _: False)) != [[]]
    done = told_and_done(setting.home)
    assert (done.runs, done.leftovers) == ([run], 1)
    assert orphans(setting.home) == {}


def test_a_folder_that_a_program_closed_to_us_goes_too_and_a_link_in_it_is_not_followed(
    setting: Setting, tmp_path: Path
) -> None:
    run = finished(setting)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    closed = setting.home.staging / run / "a" / "closed"
    closed.mkdir()
    (closed / "link").symlink_to(outside)
    closed.chmod(0o000)
    assert gone(setting.home).failed == []
    assert not (setting.home.staging / run).exists()
    assert (outside / "precious").exists()


def test_a_large_value_that_is_taken_for_waste_just_before_its_commit_is_written_again(setting: Setting) -> None:
    """A host puts large bytes beside the database before it takes the write lock that names them."""
    claimed = setting.claimed(ONE)
    ready = claimed.nodes[0]
    setting.accept(claimed, started=True, nodes=(moved(ready, Status.RUNNING, attempt=1, started_at=STAMP.at),))
    output = Output.of("a", "x" * 400_000)
    done = moved(ready, Status.COMPLETED, attempt=1, started_at=STAMP.at, output_sha256=output.sha256)
    summary = Summary(status=RunStatus.COMPLETED, counts=counts({Status.COMPLETED: 1}), outputs="y" * 400_000)
    staged = setting.store._stage(
        transaction(claimed, nodes=(done,), outputs=(output,), summary=summary, status=RunStatus.COMPLETED)
    )
    assert isinstance(staged, Staged)
    assert gone(setting.home).leftovers == 2
    assert setting.store._write([staged]) == [None]
    with Reader.open(setting.home) as reader:
        assert reader.output(claimed.fence.run_id, "a") == "x" * 400_000
        assert reader.run(claimed.fence.run_id).summary == summary


def test_a_new_run_whose_plan_is_taken_for_waste_just_before_its_commit_is_whole(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = setting.store._writing
    monkeypatch.setattr(setting.store, "_writing", lambda: (gone(setting.home), writing())[1])
    plan, code = plan_of({"a": []}, inputs={"large": "x" * 400_000}), b"c" * 400_000
    run = setting.created(plan, bundle=code)
    with Reader.open(setting.home) as reader:
        record: RunRecord = reader.run(run).record
        assert reader.plan(record.plan_sha256) == plan
        assert reader.bundle(record.bundle_sha256 or "") == code


def pages(home: Home) -> tuple[int, int]:
    with closing(sqlite3.connect(home.database)) as connection:
        return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))


def test_the_room_on_the_disk_comes_back_beside_a_program_that_works(setting: Setting) -> None:
    for number in range(20):
        finished(setting, f"{number}" + "x" * 200_000)
    live = setting.claimed()
    setting.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = setting.home.database.stat().st_size
    assert before > 4_000_000
    done = gone(setting.home)
    assert len(done.runs) == 20
    assert setting.home.database.stat().st_size < before / 10
    assert pages(setting.home)[1] == 0
    assert (done.database_bytes > 4_000_000, done.reserved_bytes) == (True, 0)
    setting.accept(live, started=True)


def old_make(folder: Path) -> Home:
    """A home whose file is of the first make, which could not shrink."""
    home = Home.open(folder, create=True)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE x (y)")
        connection.execute("DROP TABLE x")
        upgrade(connection, home.database, home.hosts, MIGRATIONS[:1])
    home.database.chmod(0o600)
    return home


def test_a_file_of_the_first_make_is_written_anew_when_nobody_works_and_else_says_what_it_keeps(tmp_path: Path) -> None:
    home = old_make(tmp_path / "home")
    RunStore.open(home, clock=CLOCK).close()
    setting = Setting(home.root)
    for number in range(5):
        finished(setting, f"{number}" + "x" * 200_000)
    done = gone(home)
    assert done.reserved_bytes > 1_000_000
    setting.close()
    done = gone(home)
    assert done.reserved_bytes == 0
    assert done.database_bytes > 1_000_000
    assert home.database.stat().st_size < 300_000


def test_no_bite_is_larger_than_it_is_said_to_be(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 69."""
    plan = plan_of({f"n{number}": [] for number in range(30)} | {"a": []})
    claimed = setting.claimed(plan)
    setting.accept(claimed, events=(), nodes=tuple(moved(node, Status.CANCELLED) for node in claimed.nodes), started=True,
                   summary=Summary(status=RunStatus.CANCELLED, counts=counts({Status.CANCELLED: 31})), release=True)  # fmt: skip
    monkeypatch.setattr(removal, "BITE_ROWS", 7)
    changes: list[int] = []
    before = [0]

    def between() -> None:
        with closing(sqlite3.connect(setting.home.database)) as connection:
            left = sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in CHILDREN)
        changes.append(before[0] - left)
        before[0] = left

    monkeypatch.setattr(removal, "pause", between)
    between()
    assert gone(setting.home).runs == [claimed.fence.run_id]
    assert max(changes[2:]) == 7
    assert orphans(setting.home) == {}


def test_tidying_and_working_at_once_leave_a_store_in_which_everything_is_whole(setting: Setting) -> None:
    rng = random.Random(4)
    over = threading.Event()
    errors: list[BaseException] = []

    def tidy() -> None:
        while not over.is_set():
            try:
                gone(setting.home, keep=2)
            except BaseException as error:
                errors.append(error)
                return

    tidying = [threading.Thread(target=tidy) for _ in range(2)]
    for thread in tidying:
        thread.start()
    made = [finished(setting, rng.choice(["x" * 300_000, number, "x" * 100_000])) for number in range(25)]
    over.set()
    for thread in tidying:
        thread.join()
    assert errors == []
    gone(setting.home, keep=2)
    assert listed(setting.home) == {*made[-2:]}
    assert orphans(setting.home) == {}
    with Reader.open(setting.home) as reader:
        for run in made[-2:]:
            reader.output(run, "a")
            reader.plan(reader.run(run).record.plan_sha256)


def test_a_finished_run_of_a_real_host_leaves_nothing(kept: Kept) -> None:
    assert gone(kept.home, before="2100-01-01T00:00:00.000Z").runs == [kept.run_id]
    assert (files(kept.home), orphans(kept.home), listed(kept.home)) == (set(), {}, set())
    with closing(sqlite3.connect(kept.home.database)) as connection:
        for table in ("bundles", "graph_plans", "hosts"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def taken_together(home: Home) -> int:
    return size_of(home.staging) + size_of(home.logs)


EARLY = instant(EPOCH_MS - 1)
"""Nothing is older than that."""


@pytest.mark.parametrize("go", range(4))
def test_a_total_limit_lets_the_oldest_runs_go_until_the_rest_fits(setting: Setting, go: int) -> None:
    """Field case 27: however young they are; what has not ended stays, whatever it takes."""
    runs = [finished(setting, number) for number in range(3)]
    unfinished = setting.claimed(ONE).fence.run_id
    (setting.home.workspace(unfinished, "a", "0" * 64) / "made").write_bytes(bytes(50_000))
    before = [0, *(sum(map(size_of, _folders(setting.home, run))) for run in runs)]
    most = taken_together(setting.home) - sum(before[:go]) - bool(go)
    told = preview(setting.home, before=EARLY, keep=0, now_unix_s=NOW_S, most_bytes=most)
    done = collect(setting.home, before=EARLY, keep=0, now_unix_s=NOW_S, most_bytes=most)
    assert told.runs == done.runs == runs[:go]
    assert taken_together(setting.home) <= most
    assert (setting.home.staging / unfinished).exists()


def test_a_total_limit_counts_what_goes_for_its_age_and_keeps_the_newest(setting: Setting) -> None:
    """Nothing goes twice, and not more than need be."""
    runs = [finished(setting, number) for number in range(3)]
    assert preview(setting.home, before=LATER, keep=1, now_unix_s=NOW_S, most_bytes=0).runs == runs[1::-1]
    assert collect(setting.home, before=LATER, keep=1, now_unix_s=NOW_S, most_bytes=0).runs == runs[1::-1]
    assert (setting.home.staging / runs[2]).exists()
