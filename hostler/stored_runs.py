"""Looking a run up in the store: a reader on it, the run with its plan and nodes at one moment, a node by its key."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hostler.config import Config
from hostler.state_folder import state_folder
from hostres.errors import Code, HostlerError
from hostres.suggestions import did_you_mean
from store.contracts import NodeRecord
from store.home import Home
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
        to_write: As for `opened`; only then is the configuration read, which may be wrong in what nobody needs to look.

    Raises:
        HostlerError: not-found, if there is no store yet; unsafe-state, if it is not private.

    """
    folder = Config.load().home if to_write else state_folder(os.environ)
    home = Home.open(folder, create=False)
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
    return node_named(reader.nodes(run_id), run_id, key)


def node_named(nodes: Iterable[NodeRecord], run_id: str, key: str) -> NodeRecord:
    """Return that one of the nodes of a run which has this key.

    Raises:
        HostlerError: not-found.

    """
    found = {node.key: node for node in nodes}
    if key in found:
        return found[key]
    todo = did_you_mean(key, found, f"`hostler show {run_id}` lists its nodes")
    raise HostlerError(Code.NOT_FOUND, f"run {run_id} has no node {key!r}", todo)
