"""Who works on a run, and what to type if nobody does. Light, as the list of runs is."""

from typing import Final

from store.lifecycle import RunStatus
from store.run_list import Owner

IMPORTED: Final = "imported"


def owner_note(run_id: str, status: RunStatus, owner: Owner | None) -> str:
    """Return who works on a run, or what to type if nobody does though there is work left; else nothing.

    Args:
        run_id: The run.
        status: Its status.
        owner: Who claims it.

    """
    go_on = f"go on with: hostler resume {run_id}"
    if owner is not None and owner.alive:
        return f"host {owner.host} works on it"
    if owner is not None:
        return f"no host works on it: {owner.host} is gone; {go_on}"
    match status:
        case RunStatus.PLANNED:
            return f"no host works on it; start it with: hostler resume {run_id}"
        case RunStatus.RUNNING:
            return f"stopped; {go_on}"
        case _:
            return ""
