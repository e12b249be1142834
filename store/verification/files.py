"""Files that a run told of: not what is stored, but what a person may have moved, changed or thrown away since."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import orjson
from pydantic import JsonValue

from hostres.errors import HostlerError
from hostres.regular_files import NotRegularError, open_regular
from store.content import Content, sha256_of
from store.home import Home, node_folder
from store.lifecycle import Status
from store.plans import CommandExecutor, GraphPlan
from store.records import decode
from store.row_ids import of_run
from store.values import Domain
from store.verification.findings import Absence, Note, printable

_STREAMS: Final = ("stdout", "stderr")


def examine_files(
    connection: sqlite3.Connection, content: Content, home: Home, run: int, run_id: str
) -> Iterator[Note]:
    """Yield what has become of files that the outputs of a sound run name with their digests, and of its logs.

    Args:
        connection: In a transaction that shows one snapshot.
        content: Where large bytes lie.
        home: Where the logs are.
        run: The run's number in this file.
        run_id: The run.

    """
    rows = connection.execute(of_run("n.key, o.sha256, o.content", "outputs AS o JOIN nodes AS n USING (id)"), (run,))
    for key, sha256, inline in rows:
        value = orjson.loads(content.get(Domain.OUTPUT, sha256, inline, f"output of node {key}"))
        for path, size, digest in _told_files(value):
            note = _look(key, path, size, digest)
            if note is not None:
                yield note
    yield from _missing_logs(connection, content, home, run, run_id)


def _told_files(value: JsonValue) -> Iterator[tuple[str, int, str]]:
    match value:
        case {"path": str(path), "bytes": int(size), "sha256": str(sha256)}:
            yield path, size, sha256
        case dict():
            for item in value.values():
                yield from _told_files(item)
        case list():
            for item in value:
                yield from _told_files(item)


def _look(key: str, path: str, size: int, sha256: str) -> Note | None:
    shown = printable(path)
    told = f"node {key} left {size} bytes, sha256 {sha256}"
    try:
        with open_regular(Path(path)) as file:
            same = os.fstat(file.fileno()).st_size == size and sha256_of(file) == sha256
    except NotRegularError:
        same = False
    except (OSError, ValueError):
        return Note(absence=Absence.FILE_MISSING, node=key, path=shown, what=f"{told}; it is not there now")
    if same:
        return None
    return Note(absence=Absence.FILE_CHANGED, node=key, path=shown, what=f"{told}; it holds something else now")


def _missing_logs(
    connection: sqlite3.Connection, content: Content, home: Home, run: int, run_id: str
) -> Iterator[Note]:
    """Yield the logs that are gone of the programs that completed; what an operation starts by itself is not known."""
    sha256, inline = connection.execute(
        "SELECT p.sha256, p.content FROM runs AS r JOIN graph_plans AS p ON p.sha256 = r.plan_sha256 WHERE r.run = ?",
        (run,),
    ).fetchone()
    plan = decode(GraphPlan, content.get(Domain.GRAPH_PLAN, sha256, inline, "graph plan"), "graph plan")
    commands = {node.key for node in plan.nodes if isinstance(node.executor, CommandExecutor)}
    for key, status, data in connection.execute(of_run("key, status, record", "nodes"), (run,)):
        if key not in commands or status != Status.COMPLETED.value:
            continue
        attempt = orjson.loads(data)["attempt"]
        try:
            found = home.logs_of(run_id, key, attempt)
        except HostlerError as error:
            yield Note(absence=Absence.LOG_MISSING, node=key, path="", what=error.what)
            continue
        for stream in _STREAMS:
            if attempt and stream not in found:
                path = home.logs_of_run(run_id) / node_folder(key) / f"{attempt}.{stream}"
                yield Note(absence=Absence.LOG_MISSING, node=key, path=str(path), what="it is not there now")
