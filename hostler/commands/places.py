"""Where a command looks: configuration, home and a reader on it."""

from collections.abc import Iterator
from contextlib import contextmanager

from hostler.config import Config
from hostres.errors import Code, HostlerError
from store.contracts import GraphPlan, NodeRecord
from store.home import Home
from store.reader import Reader, RunView


@contextmanager
def reading() -> Iterator[tuple[Home, Reader]]:
    """Give the home and a reader on its store, without making anything.

    Raises:
        HostlerError: not-found, if there is no store yet; unsafe-state, if it is not private.

    """
    home = Home.open(Config.load().home, create=False)
    with Reader.open(home) as reader:
        yield home, reader


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
    for node in reader.nodes(run_id):
        if node.key == key:
            return node
    raise HostlerError(Code.NOT_FOUND, f"run {run_id} has no node {key!r}", f"`hostler show {run_id}` lists its nodes")
