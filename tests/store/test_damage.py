"""Damaged files: a clear refusal, nothing more is written, what can be read is right, and no log is thrown away."""

import os
import random
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from hostres.errors import EXIT_CODES, Code, HostlerError
from store import database_file
from store.contracts import RequestKind
from store.database_file import APPLICATION_ID
from store.home import Home
from store.hosts import HostIdentity
from store.proving import check_file
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from store.schema import SCHEMA_VERSION
from tests.store.support import CLOCK, NOTE, Setting, assert_refused, finish_node, plan_of, request_of, run_id

PAGE = 4096


def filled(folder: Path, runs: int = 12) -> Home:
    """Make a store of several pages a table, closed in good order."""
    setting = Setting(folder)
    for number in range(runs):
        claimed = setting.claimed(plan_of({f"n{index}": () for index in range(20)}, inputs={"number": number}))
        finish_node(setting, claimed, "n3", {"text": "x" * 500})
        setting.accept(claimed, events=(NOTE,) * 20, release=True)
    setting.close()
    database_file._opened.clear()  # who looks next is a new program
    return setting.home


def contents(home: Home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.root.iterdir() if path.is_file()}


def overwrite(home: Home, pages: Iterable[int], data: bytes = b"\xff" * 64) -> None:
    with home.database.open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(data)


def page_of(home: Home, table: str) -> int:
    """Return the number, from 0, of the root page of a table or index."""
    with Reader.open(home) as reader:
        ((number,),) = reader._rows("SELECT rootpage FROM sqlite_schema WHERE name = ?", table)
    return int(number) - 1


def children_of(home: Home, page: int) -> list[int]:
    """Return the numbers of the pages below an interior page of a table (https://www.sqlite.org/fileformat2.html)."""
    data = home.database.read_bytes()[page * PAGE :][:PAGE]
    assert data[0] == 5
    (cells,) = struct.unpack_from(">H", data, 3)
    places = struct.unpack_from(f">{cells}H", data, 12)
    return [struct.unpack_from(">I", data, place)[0] - 1 for place in places]


def refused(action: Callable[[], object]) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        action()
    return caught.value


def test_a_store_found_damaged_is_not_written_to_any_more_and_keeps_its_log(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "home")
    first, second, third = setting.claimed(), setting.claimed(), setting.created()
    setting.accept(first, events=(NOTE,) * 300)
    setting.store._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    setting.store._connection.execute("PRAGMA wal_autocheckpoint = 0")
    setting.accept(second, events=(NOTE,))
    overwrite(setting.home, [page_of(setting.home, "summaries")])  # of which other writes see nothing
    with Reader.open(setting.home) as reader:
        damage = refused(lambda: reader.run(first.fence.run_id))
    assert_refused(damage, Code.UNSAFE_STATE, str(setting.home.database), "damaged")
    assert "put a copy in its place" in damage.todo
    assert EXIT_CODES[damage.code] == 73
    before = contents(setting.home)
    del before["runs.db-shm"]
    for action in (
        setting.created,
        lambda: setting.store.claim(third, setting.identity),
        lambda: post(setting.home, request_of(first.fence.run_id, RequestKind.CANCEL), clock=CLOCK),
        lambda: RunStore.open(setting.home, clock=CLOCK),
    ):
        assert_refused(refused(action), Code.UNSAFE_STATE, "damaged")
    assert_refused(setting.write(second, events=(NOTE,)), Code.UNSAFE_STATE, "damaged")
    setting.close()
    after = contents(setting.home)
    after.pop("runs.db-shm", None)
    assert after == before


def test_of_a_damaged_list_the_runs_that_can_be_read_are_shown_and_it_says_so(tmp_path: Path) -> None:
    home = filled(tmp_path / "home", runs=40)
    with Reader.open(home) as reader:
        whole = reader.runs()
        assert reader.damage is None
    leaves = children_of(home, page_of(home, "runs"))
    assert len(leaves) > 3
    overwrite(home, [leaves[1]])
    with Reader.open(home) as reader:
        left = reader.runs()
        assert_refused(reader.damage, Code.UNSAFE_STATE, "damaged")
        assert 0 < len(left) < len(whole)
        assert left == [row for row in whole if row in left]
        assert reader.runs(limit=2) == left[:2]
        for row in left:
            assert list(reader.events(row.run_id))


def test_looking_through_the_whole_file_finds_a_damaged_page_that_no_look_has_touched(tmp_path: Path) -> None:
    home = filled(tmp_path / "home", runs=2)
    with Reader.open(home) as reader:
        assert reader.examine() is None
    overwrite(home, [page_of(home, "grants")])
    with Reader.open(home) as reader:
        assert reader.runs()
        assert_refused(reader.examine(), Code.UNSAFE_STATE, str(home.database), "damaged")


def test_a_copy_in_the_place_of_a_damaged_file_is_used(tmp_path: Path) -> None:
    home = filled(tmp_path / "home")
    good = tmp_path / "good"
    shutil.copy(home.database, good)
    overwrite(home, range(1, home.database.stat().st_size // PAGE))
    assert_refused(refused(lambda: RunStore.open(home, clock=CLOCK)), Code.UNSAFE_STATE, "damaged")
    good.chmod(0o600)
    good.replace(home.database)
    for name in ("runs.db-wal", "runs.db-shm"):
        (home.root / name).unlink(missing_ok=True)
    Setting(home.root).close()


@pytest.mark.parametrize(
    ("break_it", "part"),
    [
        (lambda home: home.database.write_bytes(b"hello" * 100), "not a run store"),
        (lambda home: os.truncate(home.database, 50), "not a run store"),
        (lambda home: os.truncate(home.database, 3 * PAGE), "damaged"),
        (lambda home: overwrite(home, range(1)), "not a run store"),
        (lambda home: overwrite(home, range(1, 400)), "damaged"),
    ],
    ids=["text", "header cut", "pages cut", "header overwritten", "pages overwritten"],
)
def test_a_damaged_file_is_refused_by_everybody_naming_it_and_the_mend(
    tmp_path: Path, break_it: Callable[[Home], None], part: str
) -> None:
    home = filled(tmp_path / "home")
    break_it(home)
    broken = home.database.read_bytes()

    def look() -> None:
        with Reader.open(home) as reader:
            for run in reader.runs():
                list(reader.events(run.run_id))
            reader.find("-")

    for action in (look, lambda: RunStore.open(home, clock=CLOCK)):
        error = refused(action)
        assert_refused(error, Code.UNSAFE_STATE, str(home.database), part)
        assert error.todo
    assert home.database.read_bytes() == broken


@pytest.mark.parametrize(
    ("version", "application"),
    [(0, APPLICATION_ID), (0, 0), (-1, APPLICATION_ID), *((n, APPLICATION_ID) for n in range(1, SCHEMA_VERSION))],
)
@pytest.mark.parametrize("logged", [False, True])
def test_a_version_that_the_tables_are_not_of_is_damage_and_nothing_is_written(
    tmp_path: Path, version: int, application: int, logged: bool
) -> None:
    """One changed byte of the header says so; the file would be taken for an empty or an older one."""
    home = filled(tmp_path / "home", runs=1)
    with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {application}")
        if logged:
            left = Home.open(tmp_path / "left", create=True)
            for name in ("runs.db", "runs.db-wal"):
                shutil.copy(home.root / name, left.root / name)
            home = left
    kept = ("runs.db", "runs.db-wal") if logged else ("runs.db",)
    before = {name: contents(home)[name] for name in kept}
    for action in (
        lambda: Reader.open(home),
        lambda: check_file(home),
        lambda: RunStore.open(home, clock=CLOCK),
        lambda: post(home, request_of(run_id(), RequestKind.CANCEL), clock=CLOCK),
        lambda: Reader.open(home),
    ):
        assert_refused(refused(action), Code.UNSAFE_STATE, str(home.database), "damaged", "version")
    after = contents(home)
    assert {name: after[name] for name in kept} == before
    assert not [name for name in after if name.startswith("runs.db.v")]
    assert not after.get("runs.db-wal", b"") or logged


def test_a_log_beside_a_file_that_is_empty_or_gone_is_kept_and_named(tmp_path: Path) -> None:
    """SQLite itself would throw such a log away, with everything acknowledged that is in it."""
    setting = Setting(tmp_path / "home")
    setting.accept(setting.claimed(), events=(NOTE,) * 9)
    left = Home.open(tmp_path / "left", create=True)
    shutil.copy(setting.home.root / "runs.db-wal", left.root / "runs.db-wal")
    setting.close()
    log = (left.root / "runs.db-wal").read_bytes()
    everybody = (
        lambda: RunStore.open(left, clock=CLOCK),
        lambda: Reader.open(left),
        lambda: check_file(left),
        lambda: post(left, request_of(run_id(), RequestKind.CANCEL), clock=CLOCK),
    )
    for opens in everybody:
        assert_refused(refused(opens), Code.UNSAFE_STATE, "runs.db is gone")
    assert not left.database.exists()
    left.database.touch(0o600)
    for opens in everybody:
        assert_refused(refused(opens), Code.UNSAFE_STATE, "it is empty, but its log is not")
    assert (left.root / "runs.db-wal").read_bytes() == log


def test_of_a_log_cut_short_anywhere_what_is_whole_counts_and_nothing_else(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "home")
    claimed = setting.claimed()
    run = claimed.fence.run_id
    lengths = [2]
    for number in range(1, 9):
        setting.accept(claimed, events=(NOTE,) * number)
        lengths.append(lengths[-1] + number)
    with Reader.open(setting.home) as reader:
        truth = list(reader.events(run))
    log = (setting.home.root / "runs.db-wal").read_bytes()
    used = len(log.rstrip(b"\0"))
    rng, seen = random.Random(2), set()
    for cut in [0, 1, 31, 32, used, *(rng.randrange(used) for _ in range(40))]:
        image = Home.open(tmp_path / f"cut{cut}", create=True)
        shutil.copy(setting.home.database, image.database)
        place = image.root / "runs.db-wal"
        place.write_bytes(log[:cut])
        place.chmod(0o600)
        with Reader.open(image) as reader:
            found: list[Any] = []
            with suppress(HostlerError):  # before the run, or even the schema, was there
                found = list(reader.events(run))
        assert found == truth[: len(found)]
        assert len(found) in {0, 1, *lengths}
        seen.add(len(found))
        again = Setting(image.root)
        if found:
            assert again.store.claim(run, again.identity).fence.generation in (1, 2)
        again.close()
        shutil.rmtree(image.root)
    assert len(seen) > 6
    setting.close()


def everything(home: Home) -> dict[tuple[str, ...], Any]:
    """Return all that can be read and whose digest is right, by what it is."""
    found: dict[tuple[str, ...], Any] = {}
    with suppress(HostlerError), Reader.open(home) as reader:
        for run in reader.runs():
            run_id = run.run_id
            with suppress(HostlerError):
                record = reader.run(run_id).record
                found["record", run_id] = record
                found["plan", record.plan_sha256] = reader.plan(record.plan_sha256)
            with suppress(HostlerError):
                found["nodes", run_id] = reader.nodes(run_id)
            with suppress(HostlerError):
                for event in reader.events(run_id):
                    found["event", run_id, str(event.seq)] = event
            with suppress(HostlerError):
                found["output", run_id] = reader.output(run_id, "n3")
    return found


def test_whatever_byte_of_the_header_is_another_every_error_is_a_clear_one(tmp_path: Path) -> None:
    """The header is that of https://www.sqlite.org/fileformat2.html#the_database_header."""
    home = filled(tmp_path / "home", runs=1)
    good = home.database.read_bytes()

    def look() -> None:
        with Reader.open(home) as reader:
            for run in reader.runs():
                list(reader.events(run.run_id))

    said = {}
    for place in range(100):
        for name in ("runs.db-wal", "runs.db-shm"):
            (home.root / name).unlink(missing_ok=True)
        home.database.write_bytes(good[:place] + bytes([good[place] ^ 0x21]) + good[place + 1 :])
        for action in (look, lambda: RunStore.open(home, clock=CLOCK).close()):
            database_file._opened.clear()
            try:
                action()
            except HostlerError as error:
                said[place] = error
    assert {error.code for error in said.values()} <= {Code.UNSAFE_STATE, Code.NEWER_SCHEMA}, said
    assert_refused(said[47], Code.UNSAFE_STATE, "unsupported file format")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_damaged_nothing_wrong_is_read_and_every_error_is_a_clear_one(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    home = filled(tmp_path / "home", runs=4)
    truth, good = everything(home), home.database.read_bytes()
    assert len(truth) > 100
    lost = 0
    for _ in range(20):
        broken = bytearray(good)
        how = rng.randrange(4)
        place = rng.randrange(len(broken))
        if how == 0:
            for _ in range(rng.randrange(1, 30)):
                broken[rng.randrange(len(broken))] ^= 1 << rng.randrange(8)
        elif how == 1:
            broken[place : place + rng.randrange(1, 3 * PAGE)] = b""
        elif how == 2:
            start = place // PAGE * PAGE
            broken[start : start + PAGE] = bytes(PAGE)
        else:
            other = rng.randrange(len(broken)) // PAGE * PAGE
            start = place // PAGE * PAGE
            broken[start : start + PAGE] = broken[other : other + PAGE]
        for name in ("runs.db-wal", "runs.db-shm"):
            (home.root / name).unlink(missing_ok=True)
        home.database.write_bytes(broken)
        database_file._opened.clear()
        seen = everything(home)
        for key, value in seen.items():
            assert truth.get(key, value) == value
            assert key in truth or key[0] in ("record", "nodes", "output")
        lost += len(seen) < len(truth)
        work_on(home, truth)
    assert lost > 5


def work_on(home: Home, truth: dict[tuple[str, ...], Any]) -> None:
    """Claim every run, as far as it goes."""
    with suppress(HostlerError):
        store = RunStore.open(home, clock=CLOCK)
        identity = HostIdentity.register(home)
        for kind, run_id, *_ in truth:
            if kind == "record":
                with suppress(HostlerError):
                    claimed = store.claim(run_id, identity)
                    assert claimed.record == truth["record", run_id]
        store.close()
        identity.close()
