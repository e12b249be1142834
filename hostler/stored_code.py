"""The code of a run that is stored: what there is of it here, and how it is started in a process of its own."""

from collections.abc import Collection

from hostler.run_code import RunCode, find_code
from hostler.worker_code import RunEntries
from store.home import Home
from store.lifecycle import NEEDS_CODE, Status
from store.reader import Reader


def code_of(home: Home, run_id: str, statuses: Collection[Status]) -> tuple[RunCode, RunEntries, set[str]]:
    """Return what there is here of the code of a stored run's nodes that have one of these statuses.

    Args:
        home: Where it is stored.
        run_id: The run.
        statuses: Which nodes.

    Returns:
        The code, how it is started in a process of its own, and which nodes cannot go on without theirs.

    Raises:
        HostlerError: not-found; invalid-data, what is stored of it is damaged.

    """
    with Reader.open(home) as reader:
        record = reader.run(run_id).record
        plan = reader.plan(record.plan_sha256)
        found = {node.key: node.status for node in reader.nodes(run_id)}
        nodes = {key for key, status in found.items() if status in statuses}
        code = find_code(record, plan, reader.bundle, home.bundles, nodes=nodes)
    needing = {key for key, status in found.items() if status in NEEDS_CODE}
    return code, entries_of(home, record.source, plan.bundle_sha256), needing


def entries_of(home: Home, source: str | None, bundle_sha256: str | None) -> RunEntries:
    """Return how the code of a run is started in a process of its own.

    Args:
        home: Where its bundle is stored.
        source: The workflow file it was planned from.
        bundle_sha256: Digest of its bundle, if it has one.

    """

    def read_bundle(sha256: str) -> bytes:
        with Reader.open(home) as reader:
            return reader.bundle(sha256)

    return RunEntries(source=source, bundle_sha256=bundle_sha256, read_bundle=read_bundle)
