"""What is done to a store, in one place of it, by chance."""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from store.values import Domain, digest_bytes

COVERED: Final = {
    ("runs", "record"): Domain.RECORD,
    ("nodes", "record"): Domain.RECORD,
    ("grants", "record"): Domain.RECORD,
    ("requests", "record"): Domain.RECORD,
    ("summaries", "content"): Domain.RECORD,
    ("events", "event"): Domain.EVENT,
    ("graph_plans", "content"): Domain.GRAPH_PLAN,
    ("node_plans", "content"): Domain.NODE_PLAN,
    ("outputs", "content"): Domain.OUTPUT,
    ("bundles", "content"): Domain.BUNDLE,
}
"""The columns of documents, and what the digest beside each is of."""

PARTS: Final[dict[str, tuple[bytes, ...]]] = {
    "type": (b"null", b"true", b"-1", b"1.5", b'"x"', b"[]", b"{}", b'{"a":[]}'),
    "huge": (b'"' + b"x" * 2_000_000 + b'"',),
    "deep": (b"[" * 100_000 + b"]" * 100_000, b"[" * 300 + b"]" * 300),
    "surrogate": (b'"\\ud800"', b'"\xed\xa0\x80"'),
    "nan": (b"NaN", b"-Infinity", b"1e400"),
    "bigint": (b"9" * 16, b"9" * 20, b"9" * 5000),
    "newline": (b'"a\\nb\\u001b[31m"',),
}
"""What comes in the place of a value somewhere in a document."""

TEXTS: Final = (
    None, "", "\0", "a\nb", "é", "x" * 100_000, "[" * 5000, "null", "{}", '{"ready": -1}', '{"x": 1}', "[]",
    '{"completed": 1e400}', "completed", "running", "host_" + "0" * 26, "../../x",
)  # fmt: skip
"""What comes in the place of a text beside the documents."""

WHOLE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "empty": lambda _: b"",
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "tail": lambda data: data + b" x",
    "twice": lambda data: b"{" + data[1:-1] + b"," + data[1:],
    "another": lambda data: b'{"another":1,' + data[1:],
}
"""What is done to a document as a whole."""


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to the store.

    Attributes:
        what: In words.
        found: Whether somebody must name it.
        same: Whether every answer must be the one of before, or an error.

    """

    what: str
    found: bool
    same: bool


class Damage:
    """Makes one change after another.

    Args:
        chance: Decides which.

    """

    def __init__(self, chance: random.Random) -> None:
        self.random = chance

    def change(self, place: Path) -> Change:
        """Change the store in *place*."""
        kind = self.random.choices(["document", "refitted", "column", "content", "bytes"], [40, 25, 15, 10, 10])[0]
        match kind:
            case "content":
                return self._content(place)
            case "bytes":
                return self._bytes(place)
        with closing(sqlite3.connect(place / "runs.db", isolation_level=None)) as connection:
            connection.execute("PRAGMA foreign_keys = OFF")
            return (
                self._column(connection) if kind == "column" else self._document(connection, refit=kind == "refitted")
            )

    def _content(self, place: Path) -> Change:
        file = self.random.choice(sorted((place / "content").iterdir()))
        data = file.read_bytes()
        changed, how = self._damaged(data)
        file.write_bytes(changed)
        if self.random.random() < 0.1:
            file.unlink()
            changed, how = b"", "gone"
        return Change(f"file {file.name[:8]}: {how}", found=changed != data, same=True)

    def _bytes(self, place: Path) -> Change:
        name = self.random.choice(["runs.db", "runs.db", "runs.db-wal"])
        data = bytearray((place / name).read_bytes() if (place / name).exists() else b"")
        start = self.random.randrange(len(data) + 1)
        noise = self.random.randbytes(self.random.choice([1, 1, 2, 64, 4096]))
        if name.endswith("-wal") or self.random.random() < 0.8:
            data[start : start + len(noise)] = noise
        else:
            del data[start:]
        (place / name).write_bytes(bytes(data))
        (place / name).chmod(0o600)
        return Change(f"{name}: {len(noise)} bytes at {start}", found=False, same=False)

    def _document(self, connection: sqlite3.Connection, *, refit: bool) -> Change:
        (table, column), domain = self.random.choice(sorted(COVERED.items()))
        rows = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} NOT NULL").fetchall()
        if not rows:
            return Change("nothing", found=False, same=True)
        row, data = self.random.choice(rows)
        changed, how = self._damaged(data)
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row))
        if refit:
            with suppress(sqlite3.IntegrityError):
                sha256 = digest_bytes(domain, changed)
                connection.execute(f"UPDATE {table} SET sha256 = ? WHERE rowid = ?", (sha256, row))
        what = f"{table}.{column} {row}: {how}{' with its digest' if refit else ''}"
        return Change(what, found=not refit and changed != data, same=not refit)

    def _column(self, connection: sqlite3.Connection) -> Change:
        tables = [
            row[0]
            for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'")
        ]
        table = self.random.choice(sorted(tables))
        columns = [
            (row[1], row[2])
            for row in connection.execute(f"PRAGMA table_info({table})")
            if (table, row[1]) not in COVERED
        ]
        column, kind = self.random.choice(columns)
        values = [row[0] for row in connection.execute(f"SELECT {column} FROM {table}")]
        if not values:
            return Change("nothing", found=False, same=True)
        before = self.random.choice(values)
        after = self._other(kind, before)
        with suppress(sqlite3.IntegrityError, OverflowError):
            connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} IS ?", (after, before))
        return Change(f"{table}.{column}: {before!r:.60} -> {after!r:.60}", found=False, same=False)

    def _other(self, kind: str, before: Any) -> Any:
        if kind == "INTEGER":
            return self.random.choice([None, -1, 0, 1, 3, 2**31, 2**53, 2**63 - 1, -(2**63)])
        text = str(before)
        return self.random.choice([text[:-1], text + "x", *TEXTS])

    def _damaged(self, data: bytes) -> tuple[bytes, str]:
        """Return other bytes in the place of a document, and how they came to be."""
        how = self.random.choice([*PARTS, *WHOLE, "cut", "flip", "flip", "noise"])
        position = self.random.randrange(len(data) or 1)
        match how:
            case "cut":
                changed = data[:position]
            case "flip":
                flipped = bytearray(data or b"x")
                flipped[position] ^= 1 << self.random.randrange(8)
                changed = bytes(flipped)
            case "noise":
                changed = self.random.randbytes(200)
            case _ if how in WHOLE:
                changed = WHOLE[how](data)
            case _:
                changed = self._with(data, self.random.choice(PARTS[how]))
        return changed, f"{how} at {position}"

    def _with(self, data: bytes, part: bytes) -> bytes:
        """Return a document with *part* in the place of one of its values."""
        try:
            value = json.loads(data)
        except ValueError:
            return part
        places = list(_places(value))
        if not places:
            return part
        inside, key = self.random.choice(places)
        inside[key] = "\0here"
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        return text.replace(b'"\\u0000here"', part)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])
