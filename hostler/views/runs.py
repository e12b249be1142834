"""A list of runs: JSON and a table."""

from collections.abc import Sequence
from typing import Any

from hostler.views.colours import Paint, plain
from hostler.views.owners import IMPORTED, owner_note
from hostler.views.terminal import table
from store.run_list import Owner, RunRow


def run_row_json(row: RunRow) -> dict[str, Any]:
    """Return one run of `runs --json`."""
    shape: dict[str, Any] = {
        "run_id": row.run_id,
        "workflow": row.workflow,
        "status": row.status.value,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
    }
    if row.imported:
        shape["imported"] = True
    if row.host is not None:
        shape["owner"] = {"host": row.host, "alive": row.alive}
    return shape


def runs_text(rows: Sequence[RunRow], *, width: int | None = None, paint: Paint = plain) -> str:
    """Return a table of runs for people.

    Args:
        rows: The runs.
        width: Columns of the terminal; None for as many as it takes.
        paint: How a status is printed.

    """
    return table(
        ("RUN", "WORKFLOW", "STATUS", "CREATED", ""),
        [(row.run_id, row.workflow, row.status.value, row.created_at, _note(row)) for row in rows],
        width=width,
        elastic=(1,),
        paint={2: paint},
    )


def _note(row: RunRow) -> str:
    if row.imported:
        return IMPORTED
    return owner_note(row.run_id, row.status, None if row.host is None else Owner(host=row.host, alive=row.alive))
