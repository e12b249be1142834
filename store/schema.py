"""The tables, as the list of steps that lead to them; `store.upgrade` takes a file along that list.

One record is one row: its canonical JSON and its digest, besides the columns that queries need. `content` is
NULL where the bytes lie in a file beside the database.

To change the schema: append a step to `MIGRATIONS` and its release to `RELEASES`; a step that was released never
changes. `tests/store/schemas/` keeps what each released version left, as text.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError
from store.versions import newer_schema, stored_version

Migration = tuple[str, ...]

_VERSION_1: Final[Migration] = (
    """
    CREATE TABLE bundles (
        sha256 TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    """
    CREATE TABLE graph_plans (
        sha256 TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    """
    CREATE TABLE hosts (
        host_id TEXT PRIMARY KEY,
        pid INTEGER NOT NULL,
        since TEXT NOT NULL
    ) STRICT
    """,
    # The number is never used again, so that what a process knows of a run cannot come to mean another.
    """
    CREATE TABLE runs (
        run INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL UNIQUE,
        workflow TEXT NOT NULL,
        plan_sha256 TEXT NOT NULL REFERENCES graph_plans,
        bundle_sha256 TEXT REFERENCES bundles,
        created_at TEXT NOT NULL,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        status TEXT NOT NULL,
        started_at TEXT,
        finished_at TEXT,
        generation INTEGER NOT NULL DEFAULT 0,
        host_id TEXT REFERENCES hosts,
        token TEXT,
        counts TEXT NOT NULL,
        event_seq INTEGER NOT NULL,
        event_sha256 TEXT NOT NULL,
        CHECK ((host_id IS NULL) = (token IS NULL))
    ) STRICT
    """,
    "CREATE INDEX runs_by_status ON runs (status, run_id)",
    "CREATE INDEX runs_by_host ON runs (host_id) WHERE host_id IS NOT NULL",
    """
    CREATE TABLE nodes (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        position INTEGER NOT NULL,
        key TEXT NOT NULL,
        status TEXT NOT NULL,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (run, position)
    ) STRICT, WITHOUT ROWID
    """,
    "CREATE UNIQUE INDEX nodes_by_key ON nodes (run, key)",
    """
    CREATE TABLE node_plans (
        sha256 TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        node TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    "CREATE INDEX node_plans_by_run ON node_plans (run)",
    """
    CREATE TABLE outputs (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        position INTEGER NOT NULL,
        sha256 TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB,
        PRIMARY KEY (run, position)
    ) STRICT
    """,
    """
    CREATE TABLE summaries (
        run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
        sha256 TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    """
    CREATE TABLE events (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        seq INTEGER NOT NULL,
        event BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID
    """,
    """
    CREATE TABLE grants (
        grant_id TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX grants_by_run ON grants (run)",
    """
    CREATE TABLE requests (
        request_id TEXT PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        consumed_generation INTEGER
    ) STRICT
    """,
    "CREATE INDEX requests_by_run ON requests (run)",
    "CREATE INDEX requests_waiting ON requests (run) WHERE consumed_generation IS NULL",
)

_VERSION_2: Final[Migration] = (
    # Digest of the archive that a run was brought in from; such a run is a record, and nobody goes on with it.
    "ALTER TABLE runs ADD COLUMN imported_sha256 TEXT",
    # Runs that are out of the list for good, and whose rows and files are still to go.
    """
    CREATE TABLE removals (
        run INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL
    ) STRICT
    """,
    "CREATE INDEX runs_by_plan ON runs (plan_sha256)",
    "CREATE INDEX runs_by_bundle ON runs (bundle_sha256) WHERE bundle_sha256 IS NOT NULL",
    "CREATE INDEX outputs_in_files ON outputs (sha256) WHERE content IS NULL",
    "CREATE INDEX summaries_in_files ON summaries (sha256) WHERE content IS NULL",
)

_VERSION_3: Final[Migration] = (
    # What whoever asked for the run calls it, so that asking twice gives one run.
    "ALTER TABLE runs ADD COLUMN submission TEXT",
    "CREATE UNIQUE INDEX runs_by_submission ON runs (submission) WHERE submission IS NOT NULL",
)

_VERSION_4: Final[Migration] = (
    # Runs that are left to the background service.
    """
    CREATE TABLE entrusted (
        run INTEGER PRIMARY KEY REFERENCES runs ON DELETE CASCADE
    ) STRICT
    """,
    # Work that a worker outside has taken, and until when it is its own; the worker itself moves that on.
    """
    CREATE TABLE leases (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        node TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        worker TEXT NOT NULL,
        seconds REAL NOT NULL,
        boot_id TEXT NOT NULL,
        until_boot_ns INTEGER NOT NULL,
        expires_at TEXT NOT NULL,
        budget TEXT,
        PRIMARY KEY (run, node)
    ) STRICT
    """,
    "CREATE INDEX leases_by_worker ON leases (worker)",
    # What each node reserved and spent; the run itself has no name. A node that did neither has no row.
    """
    CREATE TABLE ledgers (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        node TEXT NOT NULL,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (run, node)
    ) STRICT, WITHOUT ROWID
    """,
    # The worktree of a node, or who makes it.
    """
    CREATE TABLE workspaces (
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        node TEXT NOT NULL,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL,
        PRIMARY KEY (run, node)
    ) STRICT, WITHOUT ROWID
    """,
    # Leave that people give beforehand, and what became of it.
    """
    CREATE TABLE receipts (
        receipt_id TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT
    """,
    "CREATE UNIQUE INDEX receipts_by_run ON receipts (run, receipt_id)",
)

_ID: Final = "id INTEGER PRIMARY KEY, run INTEGER NOT NULL AS (id >> 32) VIRTUAL"
"""Of tables whose rows lie by run and place, see `store.row_ids`."""

_VERSION_5: Final[Migration] = (
    # What a step adds goes to the end of few pages, and no row is too long for its page: a table with a key of its
    # own, or an index that leads to it, would write twice as many.
    "DROP INDEX nodes_by_key",
    "ALTER TABLE nodes RENAME TO old_nodes",
    f"""
    CREATE TABLE nodes (
        {_ID},
        position INTEGER NOT NULL AS (id & 4294967295) VIRTUAL,
        key TEXT NOT NULL,
        status TEXT NOT NULL,
        record BLOB NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT
    """,
    (
        "INSERT INTO nodes (id, key, status, record, sha256)"
        " SELECT run << 32 | position, key, status, record, sha256 FROM old_nodes ORDER BY run, position"
    ),
    "DROP TABLE old_nodes",
    "CREATE UNIQUE INDEX nodes_by_key ON nodes (run, key)",
    "DROP INDEX node_plans_by_run",
    "ALTER TABLE node_plans RENAME TO old_node_plans",
    f"""
    CREATE TABLE node_plans (
        {_ID},
        sha256 TEXT NOT NULL UNIQUE,
        node TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    (
        "INSERT INTO node_plans (id, sha256, node, size, content)"
        " SELECT run << 32 | row_number() OVER (PARTITION BY run ORDER BY rowid), sha256, node, size, content"
        " FROM old_node_plans ORDER BY run, rowid"
    ),
    "DROP TABLE old_node_plans",
    "DROP INDEX outputs_in_files",
    "ALTER TABLE outputs RENAME TO old_outputs",
    f"""
    CREATE TABLE outputs (
        {_ID},
        position INTEGER NOT NULL AS (id & 4294967295) VIRTUAL,
        sha256 TEXT NOT NULL,
        size INTEGER NOT NULL,
        content BLOB
    ) STRICT
    """,
    (
        "INSERT INTO outputs (id, sha256, size, content)"
        " SELECT run << 32 | position, sha256, size, content FROM old_outputs ORDER BY run, position"
    ),
    "DROP TABLE old_outputs",
    "CREATE INDEX outputs_in_files ON outputs (sha256) WHERE content IS NULL",
    "ALTER TABLE events RENAME TO old_events",
    f"""
    CREATE TABLE events (
        {_ID},
        seq INTEGER NOT NULL AS (id & 4294967295) VIRTUAL,
        event BLOB NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT
    """,
    ("INSERT INTO events (id, event, sha256) SELECT run << 32 | seq, event, sha256 FROM old_events ORDER BY run, seq"),
    "DROP TABLE old_events",
)

MIGRATIONS: Final[Sequence[Migration]] = (_VERSION_1, _VERSION_2, _VERSION_3, _VERSION_4, _VERSION_5)
"""The first makes version 1 of an empty file, each next one the next version."""

SCHEMA_VERSION: Final = len(MIGRATIONS)

RELEASES: Final[Sequence[str]] = ("0.1.0", "0.1.0", "0.1.0", "0.1.0", "0.1.0")
"""The first Hostler that knows each version: what a program that is too old for a file tells its user to get."""


class OlderSchemaError(HostlerError):
    """The file is still to be brought up to date, which looking into it does not do."""


def check_version(connection: sqlite3.Connection, database: Path) -> None:
    """Refuse a file that is not exactly of this version.

    Raises:
        HostlerError: newer-schema, or unavailable for an older one.

    """
    version = stored_version(connection)
    if version > SCHEMA_VERSION:
        raise newer_schema(connection, database, version, SCHEMA_VERSION)
    if version < SCHEMA_VERSION:
        what = f"{database} has schema version {version}, this program needs {SCHEMA_VERSION}"
        raise OlderSchemaError(Code.UNAVAILABLE, what, "run any command that writes, which brings it up to date")
