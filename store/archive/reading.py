"""An archive laid out in a store of its own, which vanishes with its connection: there it is proved like any run."""

import contextlib
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from hostres.errors import Code, HostlerError
from hostres.folders import open_private, private_folder
from store.archive.container import ArchiveReader
from store.archive.exporting import BUNDLE, FORMAT, LOG, PLAN, RUN, RUN_COLUMNS, run_document
from store.archive.tables import TABLES, Table, insert, line, parse
from store.content import Content
from store.faults import translated
from store.home import node_folder
from store.lazy_dataclass import dataclass
from store.limits import MIB, Limits
from store.schema import MIGRATIONS
from store.verification.findings import Verdict
from store.verification.run import verify

SCRATCH_RUN: Final = 1
"""The number of the run in its store."""

_NOWHERE: Final = Path(os.devnull)
_PART: Final = re.compile(r"([a-z-]+)/([0-9]{6})\.jsonl")
_LOG_PART: Final = re.compile(r"logs/([0-9]{6})/(.+)")
_LOG_BYTES: Final = 64 * MIB
_RUN_BYTES: Final = 1 * MIB
_RECORD: Final = b',"record":'
_OPTIONAL: Final = frozenset({"bundle_sha256", "finished_at", "started_at"})
_NUMBERS: Final = frozenset({"event_seq", "generation"})
_BY_FOLDER: Final = {table.folder: (place, table) for place, table in enumerate(TABLES)}


@dataclass(frozen=True, slots=True)
class Opened:
    """An archive that was read to its end.

    Attributes:
        connection: Of its store; in no transaction.
        content: Holds nothing: there are no files beside that store.
        run_id: The run.
        digest: The digest that ends the archive.
        verdict: What is wrong with the run.

    """

    connection: sqlite3.Connection
    content: Content
    run_id: str
    digest: str
    verdict: Verdict


@contextlib.contextmanager
def opened(file: BinaryIO, what: str, *, logs: Path | None = None, limits: Limits | None = None) -> Iterator[Opened]:
    """Read an archive and prove the run in it.

    Args:
        file: At its beginning.
        what: What to call it in errors.
        logs: An empty private folder to lay the logs out in; None leaves them.
        limits: What is taken; the documented bounds by default.

    Raises:
        HostlerError: invalid-data, saying what is wrong with the file; newer-schema, for a format of a newer program.

    """
    limits = limits or Limits()
    archive = ArchiveReader(file, what)
    scratch = Path(tempfile.gettempdir())
    with translated(scratch), contextlib.closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")  # nobody needs it after a fault
        connection.execute("BEGIN")
        for migration in MIGRATIONS:
            for statement in migration:
                connection.execute(statement)
        intake = _Intake(connection, archive, logs, limits)
        try:
            for name, data in archive.members(intake.limit):
                intake.take(name, data)
        except sqlite3.IntegrityError:
            raise archive.bad("it has something twice, or out of place") from None
        run_id = intake.finish()
        connection.execute("UPDATE runs SET imported_sha256 = ?", (archive.digest,))  # it is proved as what it is
        content = Content(_NOWHERE)
        verdict = verify(connection, content, SCRATCH_RUN, limits=limits)
        connection.execute("COMMIT")
        yield Opened(connection, content, run_id, archive.digest, verdict)


class _Intake:
    """Takes the members in the one order in which they are written."""

    def __init__(
        self, connection: sqlite3.Connection, archive: ArchiveReader, logs: Path | None, limits: Limits
    ) -> None:
        self._connection = connection
        self._bad = archive.bad
        self._logs = logs
        self._limits = limits
        self._rank: tuple[Any, ...] = ()
        self._columns: dict[str, Any] = {}

    def limit(self, name: str) -> int:
        """Return how many bytes a member may have."""
        if name == RUN:
            return _RUN_BYTES
        if name == PLAN:
            return self._limits.value_bytes
        if name == BUNDLE:
            return self._limits.bundle_bytes
        if part := _PART.fullmatch(name):
            table = self._table(part[1])
            return 4 * MIB + table.line_bytes(self._limits)
        return _LOG_BYTES

    def _table(self, folder: str) -> Table:
        if folder not in _BY_FOLDER:
            raise self._bad(f"it has a part that no archive of a run has: {folder}")
        return _BY_FOLDER[folder][1]

    def take(self, name: str, data: bytes) -> None:
        """Take a member."""
        if not self._columns and name != RUN:
            raise self._bad(f"it begins with {name}, not with {RUN}")
        if name == RUN:
            self._follow((0,), name)
            self._run(data)
        elif name == PLAN:
            self._follow((1,), name)
            self._put("graph_plans", self._columns["plan_sha256"], data)
        elif name == BUNDLE and self._columns["bundle_sha256"] is not None:
            self._follow((2,), name)
            self._put("bundles", self._columns["bundle_sha256"], data)
        elif part := _PART.fullmatch(name):
            self._rows(name, self._table(part[1]), int(part[2]), data)
        elif log := _LOG_PART.fullmatch(name):
            self._log(name, int(log[1]), log[2], data)
        else:
            raise self._bad(f"it has a part that no archive of a run has: {name}")

    def finish(self) -> str:
        """Return the id of the run that was taken in."""
        if not self._columns:
            raise self._bad("there is no run in it")
        run_id: str = self._columns["run_id"]
        return run_id

    def _follow(self, rank: tuple[Any, ...], name: str) -> None:
        if rank <= self._rank:
            raise self._bad(f"its part {name} is there twice, or out of place")
        self._rank = rank

    def _put(self, table: str, sha256: str, data: bytes) -> None:
        self._connection.execute(
            f"INSERT INTO {table} (sha256, size, content) VALUES (?, ?, ?)",  # noqa: S608 - names of our own
            (sha256, len(data), data),
        )

    def _run(self, data: bytes) -> None:
        head, _, rest = data.partition(_RECORD)
        try:
            columns = orjson.loads(head + b"}")
        except ValueError:
            raise self._bad(f"{RUN} is not JSON") from None
        found = columns.pop("format", None) if isinstance(columns, dict) else None
        if type(found) is int and found > FORMAT:
            what = f"the archive is of format {found}, this program knows up to {FORMAT}"
            raise HostlerError(Code.NEWER_SCHEMA, what, "use the newer Hostler that wrote it")
        if found != FORMAT or tuple(sorted(columns)) != RUN_COLUMNS or not all(map(_fits, columns, columns.values())):
            raise self._bad(f"{RUN} is not the row of a run")
        record = rest[:-2]
        if run_document(columns, record) != data:
            raise self._bad(f"{RUN} is not written as an archive writes it")
        names = ", ".join((*RUN_COLUMNS, "record"))
        marks = ", ".join("?" * (len(RUN_COLUMNS) + 1))
        self._connection.execute(
            f"INSERT INTO runs (run, {names}) VALUES ({SCRATCH_RUN}, {marks})",  # noqa: S608 - names of our own
            (*(columns[name] for name in RUN_COLUMNS), record),
        )
        self._columns = columns

    def _rows(self, name: str, table: Table, number: int, data: bytes) -> None:
        self._follow((3, _BY_FOLDER[table.folder][0], number), name)
        longest = table.line_bytes(self._limits)
        for index, text in enumerate(data.split(b"\n")[:-1]):
            try:
                row = parse(table, text)
                sound = len(text) <= longest and line(table, row) == text + b"\n"
            except ValueError:
                sound = False
            if not sound:
                raise self._bad(f"line {index + 1} of {name} is not a row of {table.name}")
            insert(self._connection, table, SCRATCH_RUN, row, row[-1])
        if not data.endswith(b"\n"):
            raise self._bad(f"{name} does not end with a line")

    def _log(self, name: str, position: int, log: str, data: bytes) -> None:
        match = LOG.fullmatch(log)
        if match is None:
            raise self._bad(f"it has a part that no archive of a run has: {name}")
        self._follow((4, position, int(match[1]), match[2]), name)
        row = self._connection.execute("SELECT key FROM nodes WHERE position = ?", (position,)).fetchone()
        if row is None:
            raise self._bad(f"{name} is the log of a node that the run does not have")
        if self._logs is not None:
            _lay_out(self._logs, row[0], log, data)


def _fits(name: str, value: object) -> bool:
    if name in _NUMBERS:
        return type(value) is int and 0 <= value < 1 << 63
    return isinstance(value, str) or (value is None and name in _OPTIONAL)


def _lay_out(logs: Path, key: str, name: str, data: bytes) -> None:
    path = private_folder(logs / node_folder(key)) / name
    with open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:  # noqa: PTH123
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
