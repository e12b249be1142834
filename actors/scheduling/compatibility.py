"""Nodes whose code this host does not have: it leaves their run alone, unless a person accepts to go on without them.

A host claims such a run only when it was asked to by `resume --accept-incompatible`; whatever the reason for which it
still lacks code of a live node after that, it hands the run back as it found it.
"""

from actors.outcomes import storable
from actors.scheduling.endings import fail
from actors.scheduling.outcomes import unreconciled
from actors.scheduling.retrying import forget_try
from actors.scheduling.state import NodeState, RunState
from actors.scheduling.turn import Turn
from hostres.errors import Code
from store.approvals import Refused
from store.contracts import Failure, Request, RequestKind
from store.lifecycle import NEEDS_CODE, Status
from store.policy import FailureCode


def lacked(state: RunState) -> list[NodeState]:
    """Return the nodes that still need code which this host does not have, in the order of the plan."""
    return [node for key, node in state.nodes.items() if key in state.lacking and node.status in NEEDS_CODE]


def leave_alone(turn: Turn, *, asked: bool) -> None:
    """Hand the run back untouched if its code is not here, unless what was asked of it may change that.

    Args:
        turn: The turn.
        asked: Whether a request to go on without is still to be judged.

    """
    if turn.state.jobs and not asked and lacked(turn.state):
        turn.state.draining = True


def is_acceptance(request: Request) -> bool:
    """Say whether *request* accepts that nodes without code become incompatible."""
    return request.kind is RequestKind.ACCEPT_INCOMPATIBLE


def must_wait(state: RunState, request: Request) -> bool:
    """Say whether *request* must wait until leftovers of what it ends have been ended."""
    return is_acceptance(request) and any(node.recovering for node in lacked(state))


def nothing_to_accept(state: RunState, request: Request) -> Refused | None:
    """Refuse a request that names nothing which this host lacks: who has the code can go on."""
    if _named(state, request):
        return None
    return Refused(
        code=Code.CONFLICT,
        what="this host has the code of all that the request names",
        todo=f"resume it without: hostler resume {state.run_id}",
    )


def code_is_lacking(state: RunState, node: NodeState) -> Refused | None:
    """Refuse to reopen a node here that could not run here; who only settles requests may."""
    reopened = [node, *(each for each in state.dependents_of(node) if each.status is Status.SKIPPED)]
    lacking = [each.key for each in reopened if each.key in state.lacking]
    if not state.jobs or not lacking:
        return None
    return Refused(
        code=Code.CONFLICT,
        what=f"the host that works on it lacks the code of {lacking[0]}: {state.lacking[lacking[0]]}",
        todo="bring the code back, end that host, then ask again",
    )


def accept(turn: Turn, request: Request) -> None:
    """Make what the request names incompatible, and skip what depends on it."""
    state = turn.state
    for node in _named(state, request):
        if node.status not in NEEDS_CODE:  # it was skipped with one before it
            continue
        state.deferred.discard(node.key)
        if node.status is Status.RUNNING:  # of a dead host; nobody here can find out what it did
            fail(turn, node, *unreconciled(node.planned.policy.resume), principal=request.principal)
            continue
        if node.status is Status.CORRECTIVE:
            forget_try(turn, node)
        failure = Failure(
            code=FailureCode.INCOMPATIBLE,
            message=storable(f"this host lacks its code: {state.lacking[node.key]}", 4000),
            todo="start a new run with the code as it is now",
        )
        fail(turn, node, Status.INCOMPATIBLE, failure, principal=request.principal)


def _named(state: RunState, request: Request) -> list[NodeState]:
    named = request.data.get("nodes")
    return [node for node in lacked(state) if isinstance(named, list) and node.key in named]
