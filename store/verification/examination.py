"""One run under examination: how its rows are read, and where what is wrong with them is noted."""

import re
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

from hostres.errors import HostlerError
from store.content import Content
from store.patterns import SHA256_PATTERN
from store.records import Model, decode, is_written
from store.values import Domain, digest_bytes
from store.verification.findings import Fault, Problem, printable

_SHA256: Final = re.compile(SHA256_PATTERN.strip("^$"))


class Examination:
    """Reads the rows of one run inside a transaction of the caller's and gathers what is wrong.

    Args:
        connection: Its texts may hold what is not UTF-8; see `lenient`.
        content: Where large bytes lie.
        run: The run's number in this file.
        run_id: The run.

    Attributes:
        problems: In the order in which they were found.

    """

    def __init__(self, connection: sqlite3.Connection, content: Content, run: int, run_id: str) -> None:
        self.run = run
        self.run_id = run_id
        self.problems: list[Problem] = []
        self._connection = connection
        self._content = content

    def wrong(self, fault: Fault, table: str, what: str, *, node: str | None = None, event: int | None = None) -> None:
        """Note that something is wrong.

        Args:
            fault: Its code.
            table: Where it stands.
            what: What is wrong with it.
            node: Key of the node it is about.
            event: Number of the event it is about.

        """
        named = None if node is None else printable(node)
        self.problems.append(Problem(fault=fault, table=table, what=printable(what), node=named, event=event))

    def rows(self, query: str, *values: object) -> Iterator[Any]:
        """Yield rows; without *values* of those of the run."""
        try:
            return iter(self._connection.execute(query, values or (self.run,)))
        except UnicodeEncodeError:  # a damaged text, see `lenient`; no sound row has it
            return iter(())

    def record(
        self, model: type[Model], data: bytes, sha256: str, *, table: str, what: str, node: str | None = None
    ) -> Model | None:
        """Return a record whose bytes stand in its row; None if they are not what was stored."""
        if digest_bytes(Domain.RECORD, data) != sha256:
            self.wrong(Fault.DIGEST, table, f"the digest of {what} does not match", node=node)
            return None
        return self.model(model, data, table=table, what=what, node=node)

    def model(self, model: type[Model], data: bytes, *, table: str, what: str, node: str | None = None) -> Model | None:
        """Return the model that *data* holds, taken apart by its contract and put together to the same bytes.

        What a program of another day did not know may be left out.
        """
        try:
            found = decode(model, data, what)
            if is_written(found, data):
                return found
            why = f"{what} is not in canonical form"
        except HostlerError as error:
            why = error.what
        self.wrong(Fault.MALFORMED, table, why, node=node)
        return None

    def content(
        self,
        domain: Domain,
        row: tuple[str, int, bytes | None],
        *,
        table: str,
        what: str,
        node: str | None = None,
    ) -> bytes | None:
        """Return bytes that are stored by their digest; None if they are not what was stored.

        Args:
            domain: What the digest is of.
            row: Digest, size, and the bytes, or None if they are in a file.
            table: Where the row stands.
            what: What they are.
            node: Key of the node they are of.

        """
        sha256, size, inline = row
        if not _SHA256.fullmatch(sha256):
            self.wrong(Fault.MALFORMED, table, f"{what} is named by {sha256!r}, which is no digest", node=node)
            return None
        try:
            data = self._content.get(domain, sha256, inline, what)
        except HostlerError as error:
            self.wrong(Fault.DIGEST, table, error.what, node=node)
            return None
        if len(data) != size:
            self.wrong(Fault.SIZE, table, f"{what} has {len(data)} bytes, its row says {size}", node=node)
        return data


def lenient(data: bytes) -> str:
    """Return a text of the file, also one that is not UTF-8: it is damage to be named, not an end of reading."""
    return data.decode("utf-8", "surrogateescape")
