"""Proving the runs of a store where they lie: rows, archives that they came from, files that they told of."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace

from store.archive.exporting import archive_digest
from store.home import Home
from store.hosts import host_alive
from store.orphans import name_of, orphans
from store.run_list import unknown_run
from store.snapshots import Snapshot, snapshot
from store.verification.files import examine_files
from store.verification.findings import Fault, Problem, Verdict, printable
from store.verification.run import lenient_texts, verify


def numbers(home: Home) -> dict[int, str]:
    """Return the id of every run by its number in the file, oldest first, also of one that is damaged."""
    with snapshot(home) as seen:
        if seen is None:
            return {}
        with lenient_texts(seen.connection):
            rows = seen.connection.execute("SELECT run, run_id FROM runs ORDER BY run").fetchall()
    return {run: printable(run_id) for run, run_id in rows}


def prove(home: Home, run: int, *, files: bool = True) -> Verdict:
    """Prove a run.

    Args:
        home: The state folder.
        run: The run's number in its file.
        files: Whether to look at the files, too, that a sound run told of.

    Raises:
        HostlerError: not-found; newer-schema, unsafe-state or unavailable; invalid-data, where the file cannot be
            read at all.

    """
    with snapshot(home) as seen:
        if seen is None:
            raise unknown_run(f"number {run}")
        with lenient_texts(seen.connection):
            verdict = verify(seen.connection, seen.content, run, alive=lambda host: host_alive(home, host))
            imported = _imported_sha256(seen, run)
            if imported is not None and not verdict.problems:
                verdict = replace(verdict, problems=tuple(_of_its_archive(home, seen, run, verdict.run_id, imported)))
            elif files and not verdict.problems:  # those of an imported run are elsewhere
                notes = examine_files(seen.connection, seen.content, home, run, verdict.run_id)
                verdict = replace(verdict, notes=tuple(notes))
    if verdict.problems and run not in numbers(home):
        raise unknown_run(verdict.run_id)  # it was just being removed, and its files go before its rows
    return verdict


def _imported_sha256(seen: Snapshot, run: int) -> str | None:
    sha256: str | None = seen.connection.execute("SELECT imported_sha256 FROM runs WHERE run = ?", (run,)).fetchone()[0]
    return sha256


def _of_its_archive(home: Home, seen: Snapshot, run: int, run_id: str, imported: str) -> Iterator[Problem]:
    """Compare a run that was imported with the archive that it came from, its logs too."""
    if archive_digest(seen.connection, seen.content, run, home.logs_of_run(run_id)) != imported:
        what = f"it, or one of its logs, is not what was imported with the digest {imported}"
        yield Problem(fault=Fault.ARCHIVE, table="runs", what=printable(what))


def check_file(home: Home) -> list[Problem]:
    """Return what SQLite finds wrong with the file as a whole; if that is nothing, which runs have lost their row."""
    with snapshot(home) as seen:
        if seen is None:
            return []
        rows = seen.connection.execute("PRAGMA integrity_check(20)").fetchall()
        said = [printable(str(row[0])) for row in rows if row[0] != "ok"]
        if not said:
            return [_without_row(seen.connection, *orphan) for orphan in orphans(seen.connection).items()]
    return [Problem(fault=Fault.MALFORMED, table="sqlite", what=" ".join(text.split())) for text in said]


def _without_row(connection: sqlite3.Connection, run: int, tables: tuple[str, ...]) -> Problem:
    name = name_of(connection, run)
    which = f"the row of run {run} is" if name is None else f"the row of run {run}, {name}, is"
    what = printable(f"{which} missing, while it has rows in {', '.join(tables)}")
    return Problem(fault=Fault.MISSING, table="runs", what=what)
