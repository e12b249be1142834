"""A node that has failed gets another input; whatever waits for it goes on waiting for it."""

from typing import Any

from actors.scheduling.state import NodeState, RunState
from actors.scheduling.turn import Turn
from hostres.errors import Code, HostlerError
from store.approvals import Refused
from store.contracts import Request, RequestKind, Revision
from store.revisions import check_revision, input_sha256, revised


def misfit_of(state: RunState, node: NodeState, request: Request) -> Refused | None:
    """Refuse a correction whose input cannot be that of *node*."""
    if request.kind is not RequestKind.CORRECT:
        return None
    subject = f"the new input of node {node.key}"
    if "input" not in request.data:
        todo = f"see `hostler show {request.run_id}` for what it is given now"
        return Refused(code=Code.INVALID_DATA, what=f"{subject}: there is none", todo=todo)
    value, folder = request.data["input"], state.record.folder
    try:
        check_revision(node.planned, value, folder=folder, envelope=node.envelope, outputs=state.outputs)
    except HostlerError as error:
        return Refused(code=error.code, what=f"{subject}: {error.what}", todo=error.todo)
    return None


def revision_of(node: NodeState, request: Request) -> Revision:
    """Return what *node* becomes by a correction."""
    return Revision(number=node.record.revision + 1, input=request.data["input"])


def revise(turn: Turn, node: NodeState, revision: Revision) -> None:
    """Give a reopened node its new input; it has no plan yet, and what was granted for the old one does not count."""
    node.planned = revised(node.planned, revision)
    node.plan = None
    turn.change(node, revision=revision.number, plan_sha256=None, preparation_sha256=None)


def told(revision: Revision | None) -> dict[str, Any]:
    """Return what the event of a grant tells of a revision."""
    return {} if revision is None else {"revision": revision.number, "input_sha256": input_sha256(revision.input)}
