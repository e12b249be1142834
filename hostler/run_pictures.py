"""The pictures of a stored run: reads it, and hands what it read to the pure parts."""

import os

from hostler.pictures.chart import Chart, run_chart
from hostler.pictures.timeline import Subject, Timeline, timeline
from hostler.stored_runs import whole
from hostler.views.owners import owner_note
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.top import snapshot
from store.clock import SystemClock
from store.lifecycle import RUN_FINAL
from store.reader import Reader
from store.run_view import RunView


def timeline_of(reader: Reader, run_id: str) -> Timeline:
    """Return the timeline of a run as it is now.

    Raises:
        HostlerError: not-found; invalid-data for a damaged store.

    """
    run, plan, _ = whole(reader, run_id)
    events = list(reader.events(run_id))
    goes_on = run.status not in RUN_FINAL and not run.imported
    return timeline(
        Subject(
            title=_title(run),
            status=_status(run),
            nodes=[(node.key, node.label, bool(node.dependencies)) for node in plan.nodes],
            capacity={} if run.imported else _capacity(),
        ),
        events,
        now=SystemClock().now() if goes_on else None,
        owned=run.owned,
    )


def chart_of(reader: Reader, run_id: str) -> Chart:
    """Return the graph of a run as it is now.

    Raises:
        HostlerError: not-found; invalid-data for a damaged store.

    """
    run, plan, nodes = whole(reader, run_id)
    return run_chart(plan, nodes, title=_title(run), status=_status(run))


def _title(run: RunView) -> str:
    return f"{run.record.workflow}@{run.record.workflow_version} · {run.record.run_id}"


def _status(run: RunView) -> str:
    if run.imported:
        return f"{run.status} · imported"
    nobody = owner_note(run.record.run_id, run.status, run.owner) if not run.owned else ""
    return f"{run.status} · no host works on it" if nobody else run.status.value


def _capacity() -> dict[str, int]:
    """Return what the machine has now; nothing, if that cannot be seen: a picture does not fail for it."""
    try:
        return dict(snapshot(machine_folder(os.environ)).capacity)
    except HostlerError as error:
        if error.code is not Code.UNSAFE_STATE:
            raise
        return {}
