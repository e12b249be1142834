"""Looking: one snapshot a call, beside a writer, in an empty home."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.chain import seal
from store.contracts import EventKind, RequestKind
from store.home import Home
from store.lifecycle import RunStatus, Status
from store.reader import Reader
from store.requests import cancel_id, post
from store.transactions import NewEvent
from tests.store.support import (
    CLOCK,
    NOTE,
    STAMP,
    Setting,
    assert_refused,
    finish_node,
    moved,
    plan_of,
    record_of,
    request_of,
    run_id,
)


def refused(action: object, code: Code, *parts: str) -> None:
    assert callable(action)
    with pytest.raises(HostlerError) as caught:
        action()
    assert_refused(caught.value, code, *parts)


def test_an_empty_or_missing_home_has_no_runs_and_is_left_alone(tmp_path: Path) -> None:
    for home in (
        Home.open(tmp_path / "missing", create=False),
        Home.open(tmp_path / "empty", create=True),
    ):
        with Reader.open(home) as reader:
            assert reader.runs() == []
            refused(lambda reader=reader: reader.find("-"), Code.NOT_FOUND)
            refused(lambda reader=reader: reader.find("run_x"), Code.NOT_FOUND, "run_x")
            for action in (reader.run, reader.nodes, reader.grants, reader.requests):
                refused(lambda action=action: action("run_x"), Code.NOT_FOUND, "run_x")
            refused(lambda reader=reader: list(reader.events("run_x")), Code.NOT_FOUND, "run_x")
        assert not home.database.exists()
    assert not (tmp_path / "missing").exists()


def test_a_store_that_was_cut_short_before_its_first_table_looks_empty(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home", create=True)
    home.database.touch(0o600)
    with Reader.open(home) as reader:
        assert reader.runs() == []
    setting = Setting(tmp_path / "home")
    setting.created()
    setting.close()
    with Reader.open(home) as reader:
        assert len(reader.runs()) == 1


def test_runs_are_listed_newest_first_by_status_and_up_to_a_limit(setting: Setting) -> None:
    made = [setting.created() for _ in range(5)]
    claimed = setting.store.claim(made[2], setting.identity)
    setting.accept(claimed, started=True)
    with Reader.open(setting.home) as reader:
        assert [row.run_id for row in reader.runs()] == made[::-1]
        assert [row.run_id for row in reader.runs(limit=2)] == made[:2:-1]
        assert [row.run_id for row in reader.runs(status=RunStatus.PLANNED)] == [made[n] for n in (4, 3, 1, 0)]
        (row,) = reader.runs(status=RunStatus.RUNNING)
    assert (row.host, row.alive) == (setting.identity.host_id, True)


def test_listing_and_finding_use_an_index(setting: Setting) -> None:
    """Field case 69."""
    queries: list[str] = []
    with Reader.open(setting.home) as reader:
        assert reader._connection is not None
        reader._connection.set_trace_callback(queries.append)
        reader.runs(limit=20)
        reader.runs(status=RunStatus.RUNNING, limit=20)
        refused(lambda: reader.find("run_0"), Code.NOT_FOUND)
        reader._connection.set_trace_callback(None)
        for query in [query for query in queries if " FROM runs" in query]:
            plan = " ".join(row[3] for row in reader._connection.execute(f"EXPLAIN QUERY PLAN {query}"))
            assert "INDEX" in plan
            assert "TEMP B-TREE" not in plan, (query, plan)


def test_a_run_is_found_by_any_unique_prefix_and_the_newest_by_a_dash(setting: Setting) -> None:
    plan = plan_of({"a": []})
    ids = [f"run_{'0' * 20}aaaaa{last}" for last in "12"] + [f"run_{'0' * 19}{'z' * 7}"]
    for one in ids:
        setting.store.create(record_of(plan, run_id=one), plan, bundle=None)
    with Reader.open(setting.home) as reader:
        for one in ids:
            assert reader.find(one) == one
            assert reader.find(one.removeprefix("run_")) == one
        assert reader.find(ids[2][:-6]) == ids[2]
        assert reader.find("-") == ids[2]
        refused(lambda: reader.find(ids[0][:-1]), Code.CONFLICT, ids[0], ids[1])
        refused(lambda: reader.find("run_"), Code.CONFLICT, ids[2])
        refused(lambda: reader.find(f"{ids[0]}x"), Code.NOT_FOUND)
        refused(lambda: reader.find(""), Code.NOT_FOUND)
        refused(lambda: reader.find("%"), Code.NOT_FOUND)


def test_of_very_many_runs_with_a_prefix_a_few_are_named(setting: Setting) -> None:
    for _ in range(8):
        setting.created()
    with Reader.open(setting.home) as reader:
        refused(lambda: reader.find("run_0"), Code.CONFLICT, ", …")


def test_a_reader_sees_what_was_committed_and_works_beside_a_writer_in_mid_transaction(setting: Setting) -> None:
    claimed = setting.claimed()
    run = claimed.fence.run_id
    with Reader.open(setting.home) as reader:
        connection = setting.store._connection
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE runs SET status = 'failed'")
        assert reader.run(run).status is RunStatus.PLANNED
        connection.execute("ROLLBACK")
        setting.accept(claimed, started=True, nodes=(moved(claimed.nodes[0], Status.QUEUED),))
        assert reader.run(run).status is RunStatus.RUNNING


def test_who_looks_again_and_again_knows_whether_anything_was_committed(setting: Setting) -> None:
    claimed = setting.claimed()
    with Reader.open(setting.home) as reader:
        before = reader.data_version()
        reader.nodes(claimed.fence.run_id)
        assert reader.data_version() == before
        setting.accept(claimed, started=True, nodes=(moved(claimed.nodes[0], Status.QUEUED),))
        assert reader.data_version() != before


def test_events_can_be_followed_while_they_are_written_without_keeping_a_snapshot(setting: Setting) -> None:
    claimed = setting.claimed()
    setting.accept(claimed, events=(NOTE,) * 700)
    with Reader.open(setting.home) as reader:
        following = reader.events(claimed.fence.run_id)
        assert next(following).seq == 1
        setting.accept(claimed, events=(NOTE,) * 800)
        setting.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert setting.home.database.with_name("runs.db-wal").stat().st_size == 0
        assert [event.seq for event in following] == list(range(2, 1503))
        assert list(reader.events(claimed.fence.run_id, after=1502)) == []


def test_the_last_word_on_what_could_not_be_found_out_is_the_owners_own_or_the_last_owners(setting: Setting) -> None:
    claimed = setting.claimed()
    run, kind = claimed.fence.run_id, EventKind.CLEANUP_ERROR
    told = [
        NewEvent(kind=kind, node="a", attempt=1, data={"reconciling": True, "message": text}) for text in ("old", "new")
    ]
    other = NewEvent(kind=kind, node="b", attempt=1, data={"message": "it does not end"})
    setting.accept(claimed, events=(*told, other))
    with Reader.open(setting.home) as reader:
        assert {key: event.data["message"] for key, event in reader.deferrals(run, owned=True).items()} == {"a": "new"}
        setting.accept(claimed, release=True)
        setting.store.claim(run, setting.identity)
        assert reader.deferrals(run, owned=True) == {}, "its next owner asks anew"
        assert list(reader.deferrals(run, owned=False)) == ["a"]


def test_a_missing_event_is_named(setting: Setting) -> None:
    claimed = setting.claimed()
    setting.accept(claimed, events=(NOTE,) * 5)
    setting.store._connection.execute("DELETE FROM events WHERE seq = 4")
    with Reader.open(setting.home) as reader:
        refused(lambda: list(reader.events(claimed.fence.run_id)), Code.INVALID_DATA, "event 4", "missing")


def test_an_event_put_in_the_place_of_another_is_found(setting: Setting) -> None:
    claimed = setting.claimed()
    setting.accept(claimed, events=(NOTE,) * 5)
    connection = setting.store._connection
    event, sha256 = connection.execute("SELECT event, sha256 FROM events WHERE seq = 5").fetchone()
    connection.execute("UPDATE events SET event = ?, sha256 = ? WHERE seq = 4", (event, sha256))
    with Reader.open(setting.home) as reader:
        refused(lambda: list(reader.events(claimed.fence.run_id)), Code.INVALID_DATA, "event 4")


def test_an_event_changed_together_with_its_digest_breaks_the_chain_at_the_next_one(setting: Setting) -> None:
    claimed = setting.claimed()
    run = claimed.fence.run_id
    setting.accept(claimed, events=(NOTE,) * 5)
    with Reader.open(setting.home) as reader:
        before = list(reader.events(run))
        forged = NewEvent(kind=NOTE.kind, node="a", data={"to": "completed"})
        data, sha256 = seal(forged, run_id=run, seq=4, stamp=STAMP, prev_sha256=before[2].sha256)
        setting.store._connection.execute("UPDATE events SET event = ?, sha256 = ? WHERE seq = 4", (data, sha256))
        refused(lambda: list(reader.events(run)), Code.INVALID_DATA, "event 5", "does not follow")


def test_a_plan_or_code_that_a_run_names_and_that_is_gone_is_damage(setting: Setting) -> None:
    plan, bundle = plan_of({"a": ()}), b"code"
    record = record_of(plan, bundle=bundle)
    setting.store.create(record, plan, bundle=bundle)
    assert record.bundle_sha256 is not None
    with closing(sqlite3.connect(setting.home.database, isolation_level=None)) as connection:
        connection.execute("UPDATE graph_plans SET sha256 = 'f' || substr(sha256, 2)")
        connection.execute("UPDATE bundles SET sha256 = 'f' || substr(sha256, 2)")
    with Reader.open(setting.home) as reader:
        refused(lambda: reader.plan(record.plan_sha256), Code.INVALID_DATA, "graph plan", "missing")
        refused(lambda: reader.bundle(record.bundle_sha256 or ""), Code.INVALID_DATA, "code bundle", "missing")
        for action in (reader.plan, reader.bundle):
            refused(lambda action=action: action("0" * 64), Code.NOT_FOUND)


def test_what_a_run_does_not_have_is_not_found(setting: Setting) -> None:
    claimed = setting.claimed()
    run = claimed.fence.run_id
    finish_node(setting, claimed, "a", [1])
    with Reader.open(setting.home) as reader:
        assert reader.output(run, "a") == [1]
        refused(lambda: reader.output(run, "b"), Code.NOT_FOUND, "node b")
        refused(lambda: reader.output(run, "zz"), Code.NOT_FOUND, "node zz")
        refused(lambda: reader.output(run_id(), "a"), Code.NOT_FOUND)
        for action in (reader.plan, reader.node_plan, reader.bundle):
            refused(lambda action=action: action("0" * 64), Code.NOT_FOUND, "0" * 64)


def test_the_requests_of_a_run_are_listed_also_after_they_were_consumed(setting: Setting) -> None:
    claimed = setting.claimed()
    run = claimed.fence.run_id
    post(setting.home, request_of(run, RequestKind.CANCEL, request_id=cancel_id(run)), clock=CLOCK)
    setting.accept(claimed, consumed=(cancel_id(run),))
    with Reader.open(setting.home) as reader:
        assert [one.request_id for one in reader.requests(run)] == [cancel_id(run)]
        assert not reader.run(run).cancel_waits
