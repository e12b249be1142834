"""The rows of a run as lines of JSON: `{"sha256":…,…,"record":{…}}`, the record as the very bytes that are stored."""

import sqlite3
from collections.abc import Iterator
from typing import Any, Final

import orjson

from store.content import Content
from store.lazy_dataclass import dataclass
from store.limits import MIB, Limits
from store.row_ids import PLACES, next_id, of_run, row_id
from store.values import Domain

PART_BYTES: Final = 4 * MIB
"""A part of a table ends with the line that reaches this size."""

_RECORD: Final = b',"record":'
_HEAD_BYTES: Final = 8192
_LARGEST: Final = (1 << 63) - 1

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of the store and its place in an archive.

    Attributes:
        name: In the store.
        folder: In the archive.
        integers: Columns that hold whole numbers.
        optional: Columns that hold a whole number or nothing.
        texts: Columns that hold texts, the digest first.
        bytes: Column of the record's bytes.
        order: What orders the rows; their id is their run and their place in it, see `store.row_ids`.
        domain: Of the digest, where large bytes lie in files and the row has their size.

    """

    name: str
    folder: str
    integers: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    texts: tuple[str, ...] = ("sha256",)
    bytes: str
    order: str
    domain: Domain | None = None

    @property
    def by_id(self) -> bool:
        """Whether run and place are the row's id."""
        return self.order == "id"

    @property
    def place(self) -> str | None:
        """The column that says where in the run a row lies; None where that is how many there were before."""
        return self.integers[0] if self.by_id and self.integers else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns besides the bytes, in the order of the names."""
        return tuple(sorted((*self.integers, *self.optional, *self.texts)))

    def line_bytes(self, limits: Limits) -> int:
        """Return how long a line may be."""
        return (limits.entry_bytes if self.name == "events" else limits.value_bytes) + _HEAD_BYTES


TABLES: Final = (
    Table(name="nodes", folder="nodes", integers=("position",), texts=("key", "sha256", "status"), bytes="record",
          order="id"),
    Table(name="node_plans", folder="node-plans", texts=("node", "sha256"), bytes="content", order="id",
          domain=Domain.NODE_PLAN),
    Table(name="outputs", folder="outputs", integers=("position",), bytes="content", order="id",
          domain=Domain.OUTPUT),
    Table(name="summaries", folder="summary", bytes="content", order="run", domain=Domain.RECORD),
    Table(name="events", folder="events", integers=("seq",), bytes="event", order="id"),
    Table(name="grants", folder="grants", texts=("grant_id", "sha256"), bytes="record", order="rowid"),
    Table(name="requests", folder="requests", optional=("consumed_generation",), texts=("request_id", "sha256"),
          bytes="record", order="rowid"),
    Table(name="ledgers", folder="ledgers", texts=("node", "sha256"), bytes="record", order="node"),
    Table(name="workspaces", folder="workspaces", texts=("node", "sha256"), bytes="record", order="node"),
    Table(name="receipts", folder="receipts", texts=("receipt_id", "sha256"), bytes="record", order="rowid"),
)  # fmt: skip
"""In the order in which an archive holds them."""


def rows_of(connection: sqlite3.Connection, content: Content, table: Table, run: int) -> Iterator[Row]:
    """Yield the rows of a run: the values of `columns`, then the bytes.

    Raises:
        HostlerError: invalid-data, for bytes in a file that are not what was stored.

    """
    names = ", ".join((*table.columns, table.bytes))
    query = f"SELECT {names} FROM {table.name} WHERE run = ? ORDER BY {table.order}"  # noqa: S608 - names of our own
    if table.by_id:
        query = of_run(names, table.name)
    place = table.columns.index("sha256")
    for row in connection.execute(query, (run,)):
        if table.domain is None:
            yield row
        else:
            yield *row[:-1], content.get(table.domain, row[place], row[-1], f"a row of {table.name}")


def insert(connection: sqlite3.Connection, table: Table, run: int, row: Row, inline: bytes | None) -> None:
    """Insert a row of a run.

    Args:
        connection: In a write transaction.
        table: The table.
        run: The run's number in this file.
        row: From `rows_of` or `parse`.
        inline: What the row holds of its bytes; None if they are in a file.

    """
    fields: dict[str, Any] = dict(zip(table.columns, row[:-1], strict=True)) | {table.bytes: inline}
    if table.place is not None:
        fields["id"] = row_id(run, fields.pop(table.place))
    elif table.by_id:
        fields["id"] = connection.execute(f"SELECT {next_id(table.name)}", (run,)).fetchone()[0]
    else:
        fields["run"] = run
    if table.domain is not None:
        fields["size"] = len(row[-1])
    names, marks = ", ".join(fields), ", ".join("?" * len(fields))
    connection.execute(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", (*fields.values(),))  # noqa: S608 - names of our own


def line(table: Table, row: Row) -> bytes:
    """Write a row; what follows the head is the record as it is stored, and canonical JSON has no line ends."""
    head = orjson.dumps(dict(zip(table.columns, row[:-1], strict=True)), option=orjson.OPT_SORT_KEYS)
    record: bytes = row[-1]
    return head[:-1] + _RECORD + record + b"}\n"


def parse(table: Table, text: bytes) -> Row:
    """Read a row.

    Args:
        table: The table.
        text: The line without its end.

    Raises:
        ValueError: It is no row of that table.

    """
    head, found, rest = text.partition(_RECORD)  # which no text in the head can hold: its quotes are escaped there
    if not found or not rest.endswith(b"}") or len(head) > _HEAD_BYTES:
        raise ValueError
    fields = orjson.loads(head + b"}")
    if not isinstance(fields, dict) or tuple(sorted(fields)) != table.columns:
        raise ValueError
    for name in (*table.integers, *table.optional):
        value = fields[name]
        most = PLACES - 1 if name == table.place else _LARGEST
        if not (name in table.optional and value is None) and not (type(value) is int and 0 <= value <= most):
            raise ValueError
    if not all(isinstance(fields[name], str) for name in table.texts):
        raise ValueError
    return (*(fields[name] for name in table.columns), rest[:-1])
