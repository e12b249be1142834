"""The ledgers of a run in the store: a row each, which must be what the run's log adds up to."""

import sqlite3
from collections.abc import Collection, Generator, Mapping
from contextlib import closing
from typing import Final

from hostres.errors import Code, HostlerError
from store import chain
from store.contracts import EventKind, NodeRecord
from store.faults import damaged
from store.heads import Head
from store.ledgers import HOLDING, Entry, InconsistentError, Ledger, fold
from store.records import decode, encode, verified
from store.row_ids import of_run
from store.values import Domain, digest_bytes

OF_RUN: Final = ""
"""What stands for the run where a node's key would."""

_SPENDING: Final = f'"kind":"{EventKind.SPENDING}"'.encode()


def ledger_name(node: str | None, run_id: str) -> str:
    """Return what a ledger is called in errors."""
    return f"ledger of run {run_id}" if node is None else f"ledger of node {node} of run {run_id}"


def put_ledger(connection: sqlite3.Connection, head: Head, nodes: Collection[str], ledger: Ledger) -> None:
    """Store a ledger in place of what it was before.

    Args:
        connection: Inside a write transaction.
        head: The run.
        nodes: Keys of its nodes.
        ledger: The whole ledger.

    Raises:
        HostlerError: not-found, for a node that the run does not have.

    """
    if ledger.node is not None and ledger.node not in nodes:
        what = f"run {head.run_id} has no node {ledger.node}"
        raise HostlerError(Code.NOT_FOUND, what, f"see `hostler show {head.run_id}`")
    data = encode(ledger)
    connection.execute(
        "INSERT OR REPLACE INTO ledgers (run, node, record, sha256) VALUES (?, ?, ?, ?)",
        (head.run, ledger.node or OF_RUN, data, digest_bytes(Domain.RECORD, data)),
    )


def read_ledgers(connection: sqlite3.Connection, run: int, run_id: str) -> tuple[Ledger, ...]:
    """Return the ledgers of a run, their digests verified.

    Args:
        connection: Inside a transaction.
        run: The run's number in this file.
        run_id: The run, for errors.

    Raises:
        HostlerError: invalid-data, naming the ledger.

    """
    ledgers = []
    with closing(
        connection.execute("SELECT node, record, sha256 FROM ledgers WHERE run = ? ORDER BY node", (run,))
    ) as rows:
        for node, data, sha256 in rows:
            what = ledger_name(node or None, run_id)
            ledger = decode(Ledger, verified(Domain.RECORD, data, sha256, what), what)
            if (ledger.node or OF_RUN) != node:
                raise damaged(what, "it is of another node")
            ledgers.append(ledger)
    return tuple(ledgers)


def load_ledgers(
    connection: sqlite3.Connection, head: Head, nodes: Mapping[str, NodeRecord], *, limited: bool
) -> tuple[Ledger, ...]:
    """Return the ledgers of a run, having proved that they are what its log tells, and agree with its nodes.

    Args:
        connection: Inside a transaction.
        head: The run.
        nodes: Its nodes by key.
        limited: Whether its plan has any budget; without one, and without a ledger, its log is not read for them.

    Raises:
        HostlerError: invalid-data, naming the first ledger that is not.

    """
    ledgers = read_ledgers(connection, head.run, head.run_id)
    if not (ledgers or limited):
        return ()
    try:
        with closing(_entries(connection, head)) as entries:  # else whoever keeps the error keeps the cursor
            told = fold(entries)
    except InconsistentError as error:
        raise damaged(f"log of run {head.run_id}", f"of its spending it says that {error}") from None
    stand = {ledger.node: ledger for ledger in ledgers}
    for node in sorted({*told, *stand}, key=lambda key: key or OF_RUN):
        what = ledger_name(node, head.run_id)
        if node not in stand:
            raise damaged(what, "it is missing")
        if stand[node] != told.get(node):
            raise damaged(what, "it is not what the log adds up to")
    for node, ledger in stand.items():
        record = nodes.get(node or OF_RUN)
        if ledger.reserved is not None and (record is None or record.status not in HOLDING):
            raise damaged(ledger_name(node, head.run_id), "it reserves something for a node that does not run")
    return ledgers


def _entries(connection: sqlite3.Connection, head: Head) -> Generator[Entry]:
    query = of_run("seq, event, sha256", "events", only="instr(event, ?)")
    with closing(connection.execute(query, (head.run, _SPENDING))) as rows:
        for seq, data, sha256 in rows:
            event = chain.unseal(data, sha256, run_id=head.run_id, seq=seq, prev_sha256=None)
            if event.kind is not EventKind.SPENDING:
                continue
            try:
                yield Entry.from_data(event.node, event.attempt, event.data)
            except ValueError as error:
                why = str(error).partition("\n")[0]
                raise damaged(f"event {seq} of run {head.run_id}", why) from None
