"""Where a command looks: configuration, home and a reader on it."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from hostler.config import Config
from hostres.errors import Code, HostlerError
from hostres.suggestions import did_you_mean
from store.contracts import NodeRecord
from store.home import Home
from store.patterns import NEWEST, PREFIX
from store.plans import GraphPlan
from store.reader import Reader
from store.run_list import RunList
from store.run_view import RunView
from store.schema import OlderSchemaError

Looking = TypeVar("Looking", bound=RunList)


@contextmanager
def reading(*, to_write: bool = False) -> Iterator[tuple[Home, Reader]]:
    """Give the home and a reader on its store, without making anything.

    Args:
        to_write: As for `opened`.

    Raises:
        HostlerError: not-found, if there is no store yet; unsafe-state, if it is not private.

    """
    home = Home.open(Config.load().home, create=False)
    with opened(Reader, home, to_write=to_write) as reader:
        yield home, reader


def opened(kind: type[Looking], home: Home, *, to_write: bool) -> Looking:
    """Return a reader on the store of *home*.

    Args:
        kind: Its class.
        home: The state folder.
        to_write: Whether what is found is going to be written to; then an older store is brought up to date first.

    Raises:
        HostlerError: unavailable, newer-schema, unsafe-state or invalid-data.

    """
    try:
        return kind.open(home)
    except OlderSchemaError:
        if not to_write:
            raise
        from store.upgrade import bring_up_to_date  # noqa: PLC0415 - once for each version

        bring_up_to_date(home)
        return kind.open(home)


def archive_named(text: str) -> Path | None:
    """Return the file that *text* names, where a run or an archive may be named; None if it names a run.

    What can only be a run is one, whatever lies in the current folder; a slash makes it a file.
    """
    if "/" in text:
        return Path(text)
    return None if text == NEWEST or text.startswith(PREFIX) or not os.path.lexists(text) else Path(text)


@contextmanager
def open_archive(path: Path) -> Iterator[BinaryIO]:
    """Open an archive for reading; a pipe or a device is none, and is not waited for.

    Raises:
        HostlerError: not-found; invalid-data, if it is no regular file or cannot be read.

    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise HostlerError(Code.NOT_FOUND, f"there is no file {path}", "check the path") from None
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}"
        raise HostlerError(Code.INVALID_DATA, what, "check the path and its permissions") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise HostlerError(Code.INVALID_DATA, f"{path} is not a regular file", "give what `hostler export` wrote")
    with os.fdopen(descriptor, "rb") as file:
        yield file


def whole(reader: Reader, run_id: str) -> tuple[RunView, GraphPlan, tuple[NodeRecord, ...]]:
    """Return a run, its plan and its nodes as they stood at one moment.

    Raises:
        HostlerError: not-found, or invalid-data for a damaged store.

    """
    run = reader.run(run_id)
    plan = reader.plan(run.record.plan_sha256)
    while True:
        nodes = reader.nodes(run_id)
        again = reader.run(run_id)
        if again.status is run.status:
            return again, plan, nodes
        run = again


def node_of(reader: Reader, run_id: str, key: str) -> NodeRecord:
    """Return a node of a run.

    Raises:
        HostlerError: not-found.

    """
    nodes = {node.key: node for node in reader.nodes(run_id)}
    if key in nodes:
        return nodes[key]
    todo = did_you_mean(key, nodes, f"`hostler show {run_id}` lists its nodes")
    raise HostlerError(Code.NOT_FOUND, f"run {run_id} has no node {key!r}", todo)
