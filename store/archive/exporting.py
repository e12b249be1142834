"""A run written as an archive: what is stored of it, and what its processes wrote; the same run, the same bytes."""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import orjson

from hostres.logs import read_log
from store.archive.container import ArchiveWriter
from store.archive.tables import PART_BYTES, TABLES, line, rows_of
from store.content import Content
from store.home import node_folder
from store.row_ids import of_run
from store.values import Domain

FORMAT: Final = 1
RUN: Final = "run.json"
PLAN: Final = "plan.json"
BUNDLE: Final = "bundle.zip"
RUN_COLUMNS: Final = (
    "bundle_sha256", "counts", "created_at", "event_seq", "event_sha256", "finished_at", "generation", "plan_sha256",
    "run_id", "sha256", "started_at", "status", "workflow",
)  # fmt: skip
"""Of the row of a run; not its claim, which means nothing elsewhere."""

LOG: Final = re.compile(r"(0|[1-9][0-9]{0,5})\.([a-z]{1,32}(?:\.[1-9][0-9]{0,5})?)")


def write_archive(connection: sqlite3.Connection, content: Content, run: int, logs: Path, file: BinaryIO) -> str:
    """Write a run.

    Args:
        connection: In a transaction that shows one snapshot.
        content: Where large bytes lie.
        run: The run's number in this file.
        logs: The folder of its logs, which need not be there.
        file: Where the archive goes.

    Returns:
        The digest that ends the archive.

    Raises:
        HostlerError: invalid-data, for bytes that are not what was stored.

    """
    archive = ArchiveWriter(file)
    names = ", ".join((*RUN_COLUMNS, "record"))
    row = connection.execute(f"SELECT {names} FROM runs WHERE run = ?", (run,)).fetchone()  # noqa: S608 - names of our own
    columns = dict(zip(RUN_COLUMNS, row, strict=False))
    archive.add(RUN, run_document(columns, row[-1]))
    archive.add(PLAN, _by_digest(connection, content, "graph_plans", Domain.GRAPH_PLAN, columns["plan_sha256"]))
    if columns["bundle_sha256"] is not None:
        archive.add(BUNDLE, _by_digest(connection, content, "bundles", Domain.BUNDLE, columns["bundle_sha256"]))
    for table in TABLES:
        lines = (line(table, one) for one in rows_of(connection, content, table, run))
        for number, part in enumerate(_parts(lines), start=1):
            archive.add(f"{table.folder}/{number:06}.jsonl", part)
    for position, key in connection.execute(of_run("position, key", "nodes"), (run,)):
        for name, data in _logs(logs / node_folder(key)):
            archive.add(f"logs/{position:06}/{name}", data)
    return archive.finish()


class _Counted:
    """A file that is only measured."""

    def write(self, data: bytes) -> int:
        return len(data)


def archive_digest(connection: sqlite3.Connection, content: Content, run: int, logs: Path) -> str:
    """Return the digest that the archive of a run ends with, without writing it; see `write_archive`."""
    return write_archive(connection, content, run, logs, cast("BinaryIO", _Counted()))


def run_document(columns: Mapping[str, Any], record: bytes) -> bytes:
    """Return the first part of an archive.

    Args:
        columns: The row of the run, by `RUN_COLUMNS`.
        record: The bytes of its record.

    """
    head = orjson.dumps({"format": FORMAT, **columns}, option=orjson.OPT_SORT_KEYS)
    return head[:-1] + b',"record":' + record + b"}\n"


def _by_digest(connection: sqlite3.Connection, content: Content, table: str, domain: Domain, sha256: str) -> bytes:
    row = connection.execute(f"SELECT content FROM {table} WHERE sha256 = ?", (sha256,)).fetchone()  # noqa: S608 - names of our own
    return content.get(domain, sha256, row[0], f"{sha256} in {table}")


def _parts(lines: Iterator[bytes]) -> Iterator[bytes]:
    part = bytearray()
    for one in lines:
        part += one
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    if part:
        yield bytes(part)


def _logs(folder: Path) -> Iterator[tuple[str, bytes]]:
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return
    found = [match for match in map(LOG.fullmatch, names) if match]
    for match in sorted(found, key=lambda match: (int(match[1]), match[2])):
        yield match[0], b"".join(read_log(folder / match[0]))
