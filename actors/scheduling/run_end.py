"""Where a run stands after a turn, and whether this host is done with it."""

from typing import Final

from pydantic import JsonValue

from actors.actions import RunLeft
from actors.scheduling.spending import look_at_offers, shortages
from actors.scheduling.state import RunState
from actors.scheduling.turn import Turn
from hostres.errors import HostlerError
from store.contracts import EventKind, Summary
from store.lifecycle import LIVE, RUN_FINAL, RUN_RESTING, RunStatus, Status, counts, run_status
from store.references import resolve

MOST_TOLD: Final = 20
"""Of the nodes that no budget lets go, so many are named in the log."""


def conclude(turn: Turn) -> None:
    """Derive the run's status; if it ended, rests, is drained or has no room, hand it back in the same transaction."""
    state = turn.state
    look_at_offers(state)
    short = 0 if state.shares is None else state.shares.short
    status = run_status(state.tally, started=state.started, short=short)
    if status is not state.status:
        _change(turn, status)
    elif turn.begins and status in RUN_RESTING:
        turn.tell_status()  # whoever waits for it here has not heard yet that it rests
    if state.active or state.judging:
        return
    over = (
        status in RUN_FINAL
        or (status in RUN_RESTING and state.release_at_rest)
        or _only_deferred(state)
        or state.draining
        or (state.full and status not in RUN_RESTING)  # what rests goes on when there is room and a word
        or state.jobs == 0
    )
    if over:
        _leave(turn, status)


def _only_deferred(state: RunState) -> bool:
    """Say whether nothing can go on here but what only a later owner can find out."""
    if not state.deferred:
        return False
    live = sum(state.tally[status] for status in LIVE - {Status.PENDING})
    if state.shares is not None:
        live -= state.shares.lanes.short  # which wait for what the deferred ones have reserved
    return live == len(state.deferred)


def _change(turn: Turn, status: RunStatus) -> None:
    state = turn.state
    totals = dict(counts(state.tally))
    if state.status in RUN_FINAL:
        turn.event(EventKind.RUN_REOPENED, status=status.value)
    if status in RUN_FINAL:
        summary = Summary(status=status, counts=totals, outputs=_outputs(state, status))
        turn.event(EventKind.RUN_FINALIZED, status=status.value, counts=dict(totals))
        turn.set_status(status, summary)
    else:
        short = [{"node": key, **misfit.to_json()} for key, misfit in shortages(state)[:MOST_TOLD]]
        if short:
            turn.event(EventKind.RUN_STATUS, status=status.value, counts=dict(totals), short=list(short))
        else:
            turn.event(EventKind.RUN_STATUS, status=status.value, counts=dict(totals))
        turn.set_status(status, None)


def _outputs(state: RunState, status: RunStatus) -> JsonValue:
    if status is not RunStatus.COMPLETED:
        return None
    try:
        return resolve(state.plan.outputs, state.outputs)
    except HostlerError as error:  # every node is done; a path that leads nowhere must not undo that
        return {"error": error.what}


def _leave(turn: Turn, status: RunStatus) -> None:
    state = turn.state
    turn.release()
    turn.after.append(
        RunLeft(
            run_id=state.run_id,
            status=status,
            counts=counts(state.tally),
            outputs=_outputs(state, status),
            drained=status not in RUN_FINAL | RUN_RESTING,
        )
    )
