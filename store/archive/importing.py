"""An archive brought into a store: whole in one transaction, as a record that nobody goes on with."""

import contextlib
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from hostres.errors import Code, HostlerError
from hostres.folders import private_folder
from hostres.replacement import sync
from store.archive.exporting import RUN_COLUMNS, archive_digest
from store.archive.reading import SCRATCH_RUN, Opened, opened
from store.archive.tables import TABLES, insert, rows_of
from store.clock import Clock
from store.content import Content
from store.database import opened_writer, writing
from store.home import Home
from store.lazy_dataclass import dataclass
from store.limits import INLINE_BYTES
from store.run_store import RunStore
from store.schema import SCHEMA_VERSION
from store.snapshots import snapshot

INCOMING: Final = ".import."
"""Prefix of a folder of logs that is not yet anyone's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of an archive.

    Attributes:
        run_id: The run in it.
        sha256: The digest that ends it.
        new: Whether it was brought in now; otherwise the same run was there already.

    """

    run_id: str
    sha256: str
    new: bool


def bring_in(home: Home, file: BinaryIO, what: str, *, clock: Clock) -> Imported:
    """Bring the run of an archive into a store, which is made if need be.

    Args:
        home: Opened with `create=True`.
        file: The archive, at its beginning.
        what: What to call it in errors.
        clock: For the opening of the store.

    Raises:
        HostlerError: invalid-data, saying what is wrong with the archive: nothing was brought in; conflict, if there
            is a run of that id with other content; unavailable.

    """
    RunStore.open(home, clock=clock).close()
    incoming = private_folder(home.logs / f"{INCOMING}{secrets.token_hex(6)}")
    try:
        with opened(file, what, logs=incoming) as archive:
            _refuse_damaged(archive, incoming, what)
            new = _put(home, archive, incoming)
            if not new:
                _refuse_other(home, archive)
            return Imported(run_id=archive.run_id, sha256=archive.digest, new=new)
    finally:
        shutil.rmtree(incoming, ignore_errors=True)


def _refuse_damaged(archive: Opened, logs: Path, what: str) -> None:
    problems = archive.verdict.problems
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise HostlerError(
            Code.INVALID_DATA,
            f"{what} holds a run that is not sound: {problems[0].table}: {problems[0].what}{more}",
            "see all of it with `hostler verify`, and export the run again",
        )
    if archive_digest(archive.connection, archive.content, SCRATCH_RUN, logs) != archive.digest:
        todo = "export the run again"
        raise HostlerError(Code.INVALID_DATA, f"{what} is not written as an archive of that run is", todo)


def _refuse_other(home: Home, archive: Opened) -> None:
    with snapshot(home) as seen:
        assert seen is not None
        run, logs = seen.number(archive.run_id), home.logs_of_run(archive.run_id)
        if archive_digest(seen.connection, seen.content, run, logs) == archive.digest:
            return
    raise HostlerError(
        Code.CONFLICT,
        f"there is a run {archive.run_id} already, with other content",
        "keep that one, or import into another HOSTLER_HOME",
    )


def _put(home: Home, archive: Opened, incoming: Path) -> bool:
    """Write the run; False if there is one of that id already."""
    content = Content(home.content)
    with snapshot(home) as seen:
        if seen is not None and _is_there(seen.connection, archive.run_id):
            return False
    for data, sha256 in _large(archive):  # on the disk before the transaction that names them
        content.put(sha256, data)
    with (
        opened_writer(home.database, SCHEMA_VERSION, create=False) as connection,
        writing(connection, home.database),
    ):
        if _is_there(connection, archive.run_id):
            return False
        if connection.execute("SELECT 1 FROM removals WHERE run_id = ?", (archive.run_id,)).fetchone():
            what = f"run {archive.run_id} is being removed"
            raise HostlerError(Code.CONFLICT, what, "let `hostler gc` come to its end, then import it again")
        try:
            _insert(connection, archive)
        except sqlite3.IntegrityError:
            what = f"something in the archive of run {archive.run_id} has the name of something in another run"
            raise HostlerError(Code.CONFLICT, what, "import it into another HOSTLER_HOME") from None
        for data, sha256 in _large(archive):
            content.keep(sha256, data)
        _place(home, incoming, home.logs_of_run(archive.run_id))
    return True


def _is_there(connection: sqlite3.Connection, run_id: str) -> bool:
    return connection.execute("SELECT 1 FROM runs WHERE run_id = ?", (run_id,)).fetchone() is not None


def _insert(connection: sqlite3.Connection, archive: Opened) -> None:
    for name in ("graph_plans", "bundles"):
        for sha256, size, data in archive.connection.execute(f"SELECT sha256, size, content FROM {name}"):  # noqa: S608 - names of our own
            connection.execute(
                f"INSERT INTO {name} (sha256, size, content) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608 - likewise
                (sha256, size, _inline(data)),
            )
    names = ", ".join((*RUN_COLUMNS, "record"))
    row = archive.connection.execute(f"SELECT {names} FROM runs").fetchone()  # noqa: S608 - names of our own
    marks = ", ".join("?" * (len(row) + 1))
    run = connection.execute(
        f"INSERT INTO runs ({names}, imported_sha256) VALUES ({marks})",  # noqa: S608 - likewise
        (*row, archive.digest),
    ).lastrowid
    assert run is not None
    for table in TABLES:
        for one in rows_of(archive.connection, archive.content, table, SCRATCH_RUN):
            insert(connection, table, run, one, one[-1] if table.domain is None else _inline(one[-1]))


def _inline(data: bytes) -> bytes | None:
    return data if len(data) <= INLINE_BYTES else None


def _large(archive: Opened) -> Iterator[tuple[bytes, str]]:
    names = ["graph_plans", "bundles", *(table.name for table in TABLES if table.domain is not None)]
    for name in names:
        yield from archive.connection.execute(
            f"SELECT content, sha256 FROM {name} WHERE length(content) > ?",  # noqa: S608 - names of our own
            (INLINE_BYTES,),
        )


def _place(home: Home, incoming: Path, logs: Path) -> None:
    """Give the logs their name, still under the write lock: whoever tidies takes away what belongs to no run."""
    with contextlib.suppress(FileNotFoundError):
        logs.rename(home.logs / f".gone.{secrets.token_hex(6)}")
    incoming.rename(logs)
    sync(home.logs)
