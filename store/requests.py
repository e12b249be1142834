"""What people and other processes want of a run: unfenced, unique by id, first writer wins."""

import re
import sqlite3
from typing import Final

from store.clock import Clock
from store.contracts import Request
from store.database import opened_writer, writing
from store.heads import refuse_if_imported
from store.home import Home
from store.hosts import wake
from store.records import decode, encode, verified
from store.run_list import unknown_run
from store.schema import SCHEMA_VERSION, check_version
from store.service import wake_service
from store.values import Domain, digest_bytes

CANCELS: Final = "cancel:"
"""How the id of a cancel begins."""


def cancel_id(run_id: str, node: str | None = None, *, answered: int = 0) -> str:
    """Return the id of the one cancel request that may wait of a run, or of a node of it.

    Args:
        run_id: The run.
        node: The node; None for the whole run.
        answered: How many cancels of the same were answered before, as of a run that was reopened since.

    """
    first = f"{CANCELS}{run_id}:{node or '*'}"
    return f"{first}:{answered}" if answered else first


def is_cancel_id(request_id: str, run_id: str, node: str | None) -> bool:
    """Say whether *request_id* is one that a cancel of that run, or of that node of it, may have."""
    first = cancel_id(run_id, node)
    return request_id == first or re.fullmatch(r":[1-9][0-9]*", request_id.removeprefix(first)) is not None


def next_cancel_id(connection: sqlite3.Connection, run_id: str, node: str | None) -> str:
    """Return the id of the cancel that may wait now; whoever asks for the same meanwhile gets the same id."""
    first = cancel_id(run_id, node)
    answered = connection.execute(
        "SELECT count(*) FROM requests WHERE consumed_generation IS NOT NULL"
        " AND (request_id = ?1 OR request_id > ?1 || ':' AND request_id < ?1 || ';')",
        (first,),
    ).fetchone()[0]
    return cancel_id(run_id, node, answered=answered)


def decode_request(data: bytes, sha256: str, request_id: str) -> Request:
    """Return a stored request, its digest verified.

    Raises:
        HostlerError: invalid-data, naming the request.

    """
    what = f"request {request_id}"
    return decode(Request, verified(Domain.RECORD, data, sha256, what), what)


def waiting(connection: sqlite3.Connection, run: int) -> list[Request]:
    """Return the requests of a run that nobody has answered, oldest first.

    Args:
        connection: The connection.
        run: The run's number in this file.

    """
    rows = connection.execute(
        "SELECT record, sha256, request_id FROM requests WHERE run = ? AND consumed_generation IS NULL ORDER BY rowid",
        (run,),
    ).fetchall()
    return [decode_request(*row) for row in rows]


def cancel_waits(connection: sqlite3.Connection, run_id: str) -> bool:
    """Say whether a cancel of the whole run waits for its owner."""
    row = connection.execute(
        "SELECT 1 FROM requests WHERE request_id = ? AND consumed_generation IS NULL",
        (next_cancel_id(connection, run_id, None),),
    ).fetchone()
    return row is not None


def post(home: Home, request: Request, *, clock: Clock) -> bool:
    """Store *request*, then wake the run's owner if it lives.

    Args:
        home: The state folder.
        request: What is wanted; its `at` becomes the moment of storing.
        clock: Says which moment that is.

    Returns:
        False if there is a request of that id already, which then stands.

    Raises:
        HostlerError: not-found, for an unknown run or no store at all; conflict, for an imported one; unavailable.

    """
    with (
        opened_writer(home.database, SCHEMA_VERSION, create=False) as connection,
        writing(connection, home.database),
    ):
        check_version(connection, home.database)
        run, owner = _find(connection, request.run_id)
        stored = request.model_copy(update={"at": clock.now().at})
        data = encode(stored)
        inserted = connection.execute(
            "INSERT INTO requests (request_id, run, record, sha256) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (request.request_id, run, data, digest_bytes(Domain.RECORD, data)),
        ).rowcount
    if owner is None or not wake(home, owner):
        wake_service(home)
    return inserted == 1


def _find(connection: sqlite3.Connection, run_id: str) -> tuple[int, str | None]:
    row = connection.execute(
        "SELECT run, host_id, imported_sha256 IS NOT NULL FROM runs WHERE run_id = ?", (run_id,)
    ).fetchone()
    if row is None:
        raise unknown_run(run_id)
    run, owner, imported = row
    refuse_if_imported(run_id, imported=bool(imported))
    return run, owner
