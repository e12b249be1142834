"""What is known of a run when somebody asks why it does not move: read from the store, the machine and its code."""

import os

from hostler.run_code import code_for_run
from hostler.stored_runs import whole
from hostler.views.deferred import deferred
from hostler.views.why import Scene
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.holders import holders_of
from hostres.leftovers import find_leftovers
from hostres.procfs import STOPPED, read_process
from hostres.rows import Row
from hostres.top import snapshot
from store.home import Home
from store.lifecycle import NEEDS_CODE, RUN_FINAL
from store.reader import Reader


def scene_of(home: Home, reader: Reader, run_id: str, *, load: bool = True) -> Scene:
    """Return what is known of a run when somebody asks why.

    Args:
        home: The state folder.
        reader: The store.
        run_id: The run.
        load: Load its code, to find out whether this program has what it takes; that executes what people wrote.

    Raises:
        HostlerError: not-found; invalid-data for a damaged store.

    """
    stored, plan, nodes = whole(reader, run_id)
    missing = None
    if load and not stored.owned and not stored.imported and stored.status not in RUN_FINAL:
        needing = {node.key for node in nodes if node.status in NEEDS_CODE}
        try:
            code_for_run(stored.record, plan, reader.bundle, home.bundles, nodes=needing)
        except HostlerError as error:
            missing = error.what
    unknown = deferred(nodes, reader.deferrals(run_id, owned=stored.owned))
    stopped = [process for process in find_leftovers(run_id) if process.stopped]
    return Scene(
        run=stored,
        plan=plan,
        nodes=nodes,
        tickets=_tickets(run_id),
        missing=missing,
        stopped=stopped,
        stopped_host=None if stored.owner is None else _stopped_host(home, stored.owner.host),
        deferred=unknown,
        given_up=None if stored.owned else reader.given_up(run_id),
    )


def _stopped_host(home: Home, host_id: str) -> int | None:
    """Return the process of a host that does nothing until somebody continues it, if it is one."""
    try:
        file = (home.hosts / host_id).lstat()
    except FileNotFoundError:  # it has just ended
        return None
    for holders in holders_of([file]).values():
        for holder in holders:
            process = read_process(holder.pid)
            if process is not None and process.state in STOPPED:
                return holder.pid
    return None


def _tickets(run_id: str) -> dict[str, Row]:
    """Return the tickets of a run's nodes; the machine is only looked at, and what cannot be seen is left out."""
    try:
        rows = snapshot(machine_folder(os.environ)).tickets
    except HostlerError as error:
        if error.code is not Code.UNSAFE_STATE:
            raise
        return {}
    mark = f"{run_id} "
    return {row.name.removeprefix(mark): row for row in rows if row.name.startswith(mark)}
