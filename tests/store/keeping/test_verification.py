"""Verification: a clean run is clean, and whatever is changed, a byte or more, is found and named."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from hostres.errors import Code, HostlerError
from store import faults as file_faults
from store.chain import seal
from store.clock import Stamp, instant, unix_ms
from store.contracts import EventKind, RequestKind
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RunStatus, Status
from store.reader import Reader
from store.records import encode
from store.requests import cancel_id
from store.row_ids import row_id
from store.run_store import RunStore
from store.transactions import NewEvent
from store.values import Domain, canonical, digest_bytes
from store.verification.findings import Absence, Fault
from tests.store.keeping.conftest import Kept
from tests.store.keeping.support import proved
from tests.store.support import CLOCK, STAMP, Setting, moved, request_of

TABLES = (
    "bundles",
    "graph_plans",
    "runs",
    "nodes",
    "node_plans",
    "outputs",
    "summaries",
    "events",
    "grants",
    "requests",
    "receipts",
)
Cell = tuple[str, str, tuple[int, int]]


@contextmanager
def opened(home: Home) -> Iterator[sqlite3.Connection]:
    """A connection that may do harm."""
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        yield connection


def place(table: str) -> tuple[str, str]:
    return {"nodes": ("run", "position"), "events": ("run", "seq")}.get(table, ("rowid", "0"))


def where(table: str) -> str:
    return " AND ".join(f"{column} = ?" for column in place(table))


def cells(connection: sqlite3.Connection) -> dict[tuple[str, str], list[Cell]]:
    """Every text and blob of the store that is not empty, by table and column."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for table in TABLES:
        columns = [row for row in connection.execute(f"PRAGMA table_info({table})") if row[2] in {"TEXT", "BLOB"}]
        for column in (row[1] for row in columns):
            query = f"SELECT {', '.join(place(table))} FROM {table} WHERE length({column}) > 0"
            rows = [(table, column, row) for row in connection.execute(query)]
            if rows:
                found[table, column] = rows
    return found


@contextmanager
def flipped(connection: sqlite3.Connection, cell: Cell, rng: random.Random) -> Iterator[None]:
    """Let one bit of a cell be another."""
    table, column, row = cell
    query = f"SELECT CAST({column} AS BLOB), typeof({column}) FROM {table} WHERE {where(table)}"
    value, kind = connection.execute(query, row).fetchone()
    data = bytearray(value)
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    update = f"UPDATE {table} SET {column} = CAST(? AS {kind}) WHERE {where(table)}"
    connection.execute(update, (bytes(data), *row))
    yield
    connection.execute(update, (value, *row))


def faults(kept: Kept) -> set[tuple[str, str, str | None]]:
    return {(problem.table, problem.fault.value, problem.node) for problem in proved(kept.home, kept.run_id).problems}


def test_a_clean_run_is_clean(kept: Kept) -> None:
    verdict = proved(kept.home, kept.run_id)
    assert verdict.problems == ()
    assert verdict.notes == ()
    assert (verdict.status, verdict.nodes, verdict.grants) == (RunStatus.COMPLETED, 8, 4)


@pytest.mark.parametrize("seed", range(2))
def test_one_changed_byte_in_any_row_of_a_run_is_found_and_its_table_named(kept: Kept, seed: int) -> None:
    rng = random.Random(seed)
    with opened(kept.home) as connection:
        found = cells(connection)
        assert {("runs", "counts"), ("runs", "started_at"), ("events", "event"), ("requests", "request_id")} <= {*found}
        assert len(found) > 30
        for (table, column), every in found.items():
            for cell in rng.sample(every, min(6, len(every))):
                with flipped(connection, cell, rng):
                    if column == "run_id":
                        with pytest.raises(HostlerError) as caught:
                            proved(kept.home, kept.run_id)
                        assert caught.value.code is Code.NOT_FOUND
                        continue
                    problems = proved(kept.home, kept.run_id).problems
                    assert table in {problem.table for problem in problems}, (cell, problems)
                    if table in {"nodes", "outputs"}:
                        assert any(problem.node for problem in problems if problem.table == table), (cell, problems)
                    if table == "events":
                        assert cell[2][1] in {problem.event for problem in problems}, (cell, problems)
    assert proved(kept.home, kept.run_id).problems == ()


def test_a_changed_number_in_any_row_of_a_run_is_found(kept: Kept) -> None:
    with opened(kept.home) as connection:
        for table in TABLES:
            rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
            numbers = {row[1] for row in rows if row[2] == "INTEGER"} - {"run"}
            for column in numbers:
                row = connection.execute(f"SELECT max({column}) FROM {table}").fetchone()
                for change in (1, -1):
                    update = f"UPDATE {table} SET {column} = ? WHERE {column} = ?"
                    if column == "id" and change < 0:
                        continue  # there is one of that number
                    connection.execute(update, (row[0] + change, row[0]))
                    assert table in {problem.table for problem in proved(kept.home, kept.run_id).problems}, (
                        table,
                        column,
                    )
                    connection.execute(update, (row[0], row[0] + change))
    assert proved(kept.home, kept.run_id).problems == ()


@pytest.mark.parametrize("seed", range(2))
def test_with_one_changed_byte_a_claim_and_a_look_give_the_truth_or_a_clean_refusal(kept: Kept, seed: int) -> None:
    rng = random.Random(seed)

    def look() -> dict[str, Any]:
        with Reader.open(kept.home) as reader:
            run = reader.run(kept.run_id)
            return {
                "record": run.record, "summary": run.summary, "plan": reader.plan(run.record.plan_sha256),
                "bundle": reader.bundle(run.record.bundle_sha256 or ""), "nodes": reader.nodes(kept.run_id),
                "grants": reader.grants(kept.run_id), "requests": reader.requests(kept.run_id),
                "events": tuple(reader.events(kept.run_id)),
                "outputs": [reader.output(kept.run_id, node.key) for node in reader.nodes(kept.run_id)],
            }  # fmt: skip

    truth = look()
    with opened(kept.home) as connection:
        for every in cells(connection).values():
            for cell in rng.sample(every, min(2, len(every))):
                with flipped(connection, cell, rng):
                    try:
                        assert look() == truth, cell
                        assert [row.run_id for row in rows_of(kept)] == [kept.run_id]
                    except HostlerError as error:
                        check_clean(error, cell)
                    file_faults._damaged.clear()  # ask anew; a program that has found it keeps away from then on
                    check_claim(kept, truth, cell)
                    file_faults._damaged.clear()


def rows_of(kept: Kept) -> list[Any]:
    with Reader.open(kept.home) as reader:
        return list(reader.runs())


def check_clean(error: HostlerError, cell: Cell) -> None:
    assert error.code in {Code.INVALID_DATA, Code.NOT_FOUND, Code.UNSAFE_STATE}, (cell, error)


def check_claim(kept: Kept, truth: dict[str, Any], cell: Cell) -> None:
    """What a claim reads, without the claim itself: nothing is written to the damaged store."""
    store = RunStore.open(kept.home, clock=CLOCK)
    try:
        loaded = store._load(kept.run_id, None)
        assert (loaded.record, loaded.plan, loaded.nodes) == (truth["record"], truth["plan"], truth["nodes"]), cell
        assert loaded.grants == truth["grants"], cell
        assert [*loaded.outputs.values()] == truth["outputs"], cell
    except HostlerError as error:
        check_clean(error, cell)
    finally:
        store.close()


def test_a_changed_byte_in_a_large_value_beside_the_database_is_found_and_so_is_its_loss(kept: Kept) -> None:
    files = sorted(kept.home.content.iterdir())
    assert len(files) == 2, "the output of `large`, and the plan of the node that is given it"
    tables = {"outputs": "large", "node_plans": "size"}
    for file in files:
        data = bytearray(file.read_bytes())
        data[100] ^= 1
        for content in (bytes(data), b"", None):
            file.unlink() if content is None else file.write_bytes(content)
            ((table, fault, node),) = faults(kept)
            assert (fault, node) == (Fault.DIGEST.value, tables[table])
        data[100] ^= 1
        file.write_bytes(data)
        file.chmod(0o600)
    assert faults(kept) == set()


@contextmanager
def forged(
    kept: Kept, table: str, domain: Domain, column: str, change: Callable[[dict[str, Any]], Any], more: str = "TRUE"
):
    """Change a record and its digest along with it."""
    with opened(kept.home) as connection:
        rows = connection.execute(f"SELECT {column}, {', '.join(place(table))} FROM {table} WHERE {more}").fetchall()
        data, *row = rows[0]
        fields = orjson.loads(data)
        change(fields)
        data = canonical(fields, largest=2**63)
        query = f"UPDATE {table} SET {column} = ?, sha256 = ? WHERE {where(table)}"
        connection.execute(query, (data, digest_bytes(domain, data), *row))
        yield connection


def changed(field: str, value: Any, fields: dict[str, Any]) -> None:
    fields[field] = value


def test_a_node_record_that_was_forged_with_its_digest_contradicts_the_log(kept: Kept) -> None:
    for field, value in {
        "attempt": 7, "started_at": "2020-01-01T00:00:00.000Z", "plan_sha256": "0" * 64, "output_sha256": "0" * 64,
    }.items():  # fmt: skip
        home = kept.home
        before = home.database.read_bytes()
        with forged(kept, "nodes", Domain.RECORD, "record", partial(changed, field, value)):
            assert ("nodes", Fault.STATUS.value, "a/upper") in faults(kept), field
        home.database.write_bytes(before)


def test_a_status_that_was_forged_everywhere_but_in_the_log_contradicts_the_log(kept: Kept) -> None:
    with forged(kept, "nodes", Domain.RECORD, "record", lambda fields: fields.update(status="failed")) as connection:
        connection.execute("UPDATE nodes SET status = 'failed' WHERE position = 0")
        connection.execute("""UPDATE runs SET status = 'partial', counts = '{"completed":7,"failed":1}'""")
        found = faults(kept)
    assert ("nodes", Fault.STATUS.value, "a/upper") in found
    assert ("runs", Fault.STATUS.value, None) in found


def test_a_grant_for_another_plan_one_used_twice_and_one_that_is_gone_are_found(kept: Kept) -> None:
    before = kept.home.database.read_bytes()
    with forged(kept, "grants", Domain.RECORD, "record", lambda fields: fields.update(plan_sha256="0" * 64)):
        assert ("grants", Fault.GRANT.value, "paid") in faults(kept)
    kept.home.database.write_bytes(before)
    with opened(kept.home) as connection:
        data, run = connection.execute("SELECT record, run FROM grants").fetchone()
        again = canonical({**orjson.loads(data), "grant_id": "again"})
        connection.execute(
            "INSERT INTO grants VALUES ('again', ?, ?, ?)", (run, again, digest_bytes(Domain.RECORD, again))
        )
        said = [problem.what for problem in proved(kept.home, kept.run_id).problems]
        assert any("uses request" in text for text in said)
        assert any("there are 5 grants" in text for text in said), said
        connection.execute("DELETE FROM grants WHERE grant_id = 'again'")
        connection.execute("DELETE FROM grants WHERE rowid = 1")
        assert ("grants", Fault.GRANT.value, None) in faults(kept)


def test_a_correction_that_was_forged_with_its_digest_contradicts_the_log_and_the_plan_that_followed_it(
    kept: Kept,
) -> None:
    """What a person gave the node, how often, and the plan that was made of it hold each other."""

    def other_input(fields: dict[str, Any]) -> None:
        fields["revision"]["input"] = {"text": "bob"}

    def other_number(fields: dict[str, Any]) -> None:
        fields["revision"]["number"] = 2

    before = kept.home.database.read_bytes()
    corrected = """CAST(record AS TEXT) LIKE '%"action":"correct"%'"""
    with forged(kept, "grants", Domain.RECORD, "record", other_input, more=corrected):
        found = faults(kept)
    assert {("grants", Fault.GRANT.value, "flaky"), ("node_plans", Fault.PLAN.value, "flaky")} <= found
    kept.home.database.write_bytes(before)
    with forged(kept, "grants", Domain.RECORD, "record", other_number, more=corrected):
        assert ("grants", Fault.GRANT.value, "flaky") in faults(kept)
    kept.home.database.write_bytes(before)
    with forged(kept, "nodes", Domain.RECORD, "record", partial(changed, "revision", 2), more="key = 'flaky'"):
        assert ("nodes", Fault.STATUS.value, "flaky") in faults(kept)


def test_a_request_that_is_said_to_wait_again_and_one_that_is_gone_are_found(kept: Kept) -> None:
    with opened(kept.home) as connection:
        connection.execute("UPDATE requests SET consumed_generation = NULL WHERE rowid = 2")
        assert ("requests", Fault.REQUEST.value, None) in faults(kept)
        connection.execute("DELETE FROM requests WHERE rowid = 2")
        assert ("requests", Fault.MISSING.value, None) in faults(kept)


def test_a_request_in_the_name_of_the_cancel_of_another_run_is_found(kept: Kept) -> None:
    alien = cancel_id("run_" + "0" * 26)
    with opened(kept.home) as connection:
        data = encode(request_of(kept.run_id, RequestKind.CANCEL, request_id=alien))
        row = 1, alien, data, digest_bytes(Domain.RECORD, data)
        connection.execute("INSERT INTO requests (run, request_id, record, sha256) VALUES (?, ?, ?, ?)", row)
        (problem,) = proved(kept.home, kept.run_id).problems
    assert problem.fault is Fault.REQUEST
    assert alien in problem.what


def test_an_exact_plan_that_is_not_what_the_graph_plan_makes_is_found(kept: Kept) -> None:
    def other_input(fields: dict[str, Any]) -> None:
        fields["input"] = {"text": "bob"}
        fields["input_sha256"] = digest_bytes(Domain.INPUT, canonical(fields["input"]))

    with forged(kept, "node_plans", Domain.NODE_PLAN, "content", other_input, more="node = 'a/upper'"):
        assert ("node_plans", Fault.PLAN.value, "a/upper") in faults(kept)


def test_outputs_and_a_summary_that_were_forged_with_their_digests_are_found(kept: Kept) -> None:
    before = kept.home.database.read_bytes()
    with forged(
        kept, "summaries", Domain.RECORD, "content", lambda fields: fields["outputs"].update(name="BOB")
    ) as one:
        one.execute("UPDATE summaries SET size = length(content)")
        assert faults(kept) == {("summaries", Fault.SUMMARY.value, None)}
    kept.home.database.write_bytes(before)
    with forged(kept, "outputs", Domain.OUTPUT, "content", lambda fields: fields.update(text="BOB")):
        assert ("outputs", Fault.COLUMN.value, "a/upper") in faults(kept)


def test_an_event_that_is_gone_and_one_that_tells_of_an_impossible_move_are_found(kept: Kept) -> None:
    before = kept.home.database.read_bytes()
    with opened(kept.home) as connection:
        connection.execute("DELETE FROM events WHERE seq = 5")
        (problem,) = [one for one in proved(kept.home, kept.run_id).problems if one.fault is Fault.MISSING]
        assert (problem.table, problem.event) == ("events", 5)
    kept.home.database.write_bytes(before)
    with opened(kept.home) as connection:
        run, seq, prev = connection.execute("SELECT run, event_seq, event_sha256 FROM runs").fetchone()
        told = NewEvent(
            kind=EventKind.NODE_STATUS, node="gate", attempt=None, data={"from": "completed", "status": "ready"}
        )
        stamp = Stamp(at="2030-01-01T00:00:00.000Z", boot_ns=1)
        data, sha256 = seal(told, run_id=kept.run_id, seq=seq + 1, stamp=stamp, prev_sha256=prev)
        connection.execute("INSERT INTO events VALUES (?, ?, ?)", (row_id(run, seq + 1), data, sha256))
        connection.execute("UPDATE runs SET event_seq = ?, event_sha256 = ?", (seq + 1, sha256))
        found = proved(kept.home, kept.run_id).problems
    assert any(one.fault is Fault.LOG and one.event == seq + 1 and one.node == "gate" for one in found)


def test_a_live_claim_is_checked_to_the_letter_and_one_that_was_wiped_is_found(setting: Setting) -> None:
    claimed = setting.claimed()
    kept = Kept(setting.home, claimed.fence.run_id)
    assert faults(kept) == set()
    rng = random.Random(1)
    with opened(setting.home) as connection:
        for column in ("host_id", "token"):
            for _ in range(10):
                with flipped(connection, ("runs", column, (1, 0)), rng):
                    assert ("runs", Fault.CLAIM.value, None) in faults(kept)
        connection.execute("UPDATE runs SET host_id = NULL, token = NULL")
        assert ("runs", Fault.CLAIM.value, None) in faults(kept)
        setting.identity.close()
        assert faults(kept) == set(), "a dead owner's claims are wiped without a word"


def test_a_try_that_is_due_at_another_moment_than_the_log_says_is_found(setting: Setting) -> None:
    claimed = setting.claimed()
    kept = Kept(setting.home, claimed.fence.run_id)
    running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
    due = instant(unix_ms(STAMP.at) + 500)
    put_off = moved(running, Status.CORRECTIVE, failures=1, due_at=due, delay_ms=500)
    events = (
        NewEvent(kind=EventKind.NODE_RUNNING, node="a", attempt=1, data=told("ready", "queued", "running")),
        NewEvent(
            kind=EventKind.NODE_STATUS, node="a", attempt=1, data={**told("running", "corrective"), "delay_ms": 500}
        ),
        NewEvent(kind=EventKind.RUN_STATUS, data={"status": "running"}),
    )
    setting.accept(claimed, stamp=STAMP, started=True, nodes=(running,), events=(events[0], events[2]))
    setting.accept(claimed, stamp=STAMP, nodes=(put_off,), events=(events[1],))
    assert proved(setting.home, kept.run_id).problems == ()
    for change in ({"due_at": instant(unix_ms(STAMP.at) + 501)}, {"delay_ms": 499}):
        setting.accept(claimed, nodes=(moved(put_off, Status.CORRECTIVE, **change),))
        assert faults(kept) == {("nodes", Fault.STATUS.value, "a")}


def told(before: str, *path: str) -> dict[str, Any]:
    return {"from": before, "via": [*path[:-1]], "status": path[-1]}


def test_a_claim_that_was_never_given_is_found(setting: Setting, tmp_path: Path) -> None:
    kept = Kept(setting.home, setting.created())
    other = HostIdentity.register(setting.home)
    with opened(setting.home) as connection:
        connection.execute("UPDATE runs SET host_id = ?, token = 'x'", (other.host_id,))
        assert ("runs", Fault.CLAIM.value, None) in faults(kept)
    other.close()


def test_files_and_logs_that_the_person_moved_are_told_apart_from_damage(kept: Kept) -> None:
    with Reader.open(kept.home) as reader:
        output: Any = reader.output(kept.run_id, "made")
    file = Path(output["outputs"]["file"]["path"])
    content = file.read_bytes()
    try:
        file.write_bytes(b"other")
        assert [note.absence for note in proved(kept.home, kept.run_id).notes] == [Absence.FILE_CHANGED]
        file.unlink()
        (note,) = proved(kept.home, kept.run_id).notes
        assert (note.absence, note.node, note.path) == (Absence.FILE_MISSING, "made", str(file))
        log = kept.home.log_path(kept.run_id, "made", 1, "stderr")
        log.unlink()
        verdict = proved(kept.home, kept.run_id)
        assert [note.absence for note in verdict.notes] == [Absence.FILE_MISSING, Absence.LOG_MISSING]
        assert verdict.notes[1].path == str(log)
        assert verdict.problems == ()
    finally:
        file.write_bytes(content)
