"""Who has what a node waits for, in a few words. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from hostler.views.terminal import harmless
from hostres.rows import WAITING, Blocked, Row

MOST: Final = 2
"""Names and reasons that are told; more would say less."""


def held(run_id: str, rows: Sequence[Row]) -> Mapping[str, str]:
    """Return for each node of a run that waits for the machine what it lacks and who has it.

    Args:
        run_id: The run.
        rows: The tickets of the machine.

    """
    mark = f"{run_id} "
    names = {row.ticket: _name(row, mark) for row in rows}
    return {
        row.name.removeprefix(mark): _reasons(row, names)
        for row in rows
        if row.state == WAITING and row.name.startswith(mark)
    }


def _name(row: Row, mark: str) -> str:
    """Return what a ticket is called in a view of the run: its node if it is the run's own, else its whole name."""
    return harmless(row.name.removeprefix(mark)) if row.name else f"ticket {row.ticket}"


def _reasons(row: Row, names: Mapping[int, str]) -> str:
    told = [_reason(why, names) for why in row.blocked_by]
    if not told:
        return "is about to be admitted"
    more = f", and {len(told) - MOST} more" if len(told) > MOST else ""
    return f"waits for {', '.join(told[:MOST])}{more}"


def _reason(why: Blocked, names: Mapping[int, str]) -> str:
    what = f"{harmless(why.resource)} ({why.free} of {why.wanted} free)" if why.free else harmless(why.resource)
    if why.lacks_memory:
        return f"{what}, which others really use"
    if why.reserved_for is not None:
        return f"{what}, kept for {names.get(why.reserved_for, f'ticket {why.reserved_for}')}"
    holders = list(dict.fromkeys(names.get(ticket, f"ticket {ticket}") for ticket in why.tickets))
    more = f" and {len(holders) - MOST} more" if len(holders) > MOST else ""
    return f"{what}, held by {', '.join(holders[:MOST])}{more}" if holders else what
