"""The page of the event log, from its closed list of kinds."""

from collections.abc import Mapping
from typing import Final

from scripts.reference.tables import table
from scripts.reference.told import rows_of
from store.contracts import Event, EventKind

HEAD: Final = """\
# Events

*Written from `store/contracts.py` by `scripts/docs`.*

`hostler events RUN --json` prints the log of a run, one object a line. It only grows. Each event names the digest
of the one before, and its own `sha256` covers every other field, so a log that was changed or cut in the middle
is found by `hostler verify`.

"""

FIELDS: Final[Mapping[str, str]] = {
    "run_id": "the run",
    "seq": "its place in the log, from 1",
    "at": "the wall clock, RFC 3339 in UTC with milliseconds; for people, it decides nothing",
    "boot_ns": "nanoseconds since the machine booted (CLOCK_BOOTTIME); comparable between programs of one boot",
    "kind": "one of those below",
    "node": "the node, where it is about one",
    "attempt": "which attempt of the node, where it is about one",
    "principal": "who wanted it, where somebody did: `human:…`, `agent:…` or `service:…`",
    "data": "what the kind tells besides",
    "prev_sha256": "the digest of the event before; zeros for the first",
    "sha256": "the digest of this one",
}

KINDS: Final[Mapping[EventKind, tuple[str, str]]] = {
    EventKind.RUN_CREATED: ("the run was stored", "workflow, version, plan_sha256, nodes"),
    EventKind.RUN_CLAIMED: (
        "a host works on it from now on",
        "generation, host, token_sha256, dead (the host that left it)",
    ),
    EventKind.RUN_RELEASED: ("its host has handed it back", "generation, host"),
    EventKind.RUN_STATUS: ("it runs, or rests", "status, counts, short (budgets that are exhausted)"),
    EventKind.RUN_FINALIZED: ("it has ended", "status, counts"),
    EventKind.RUN_REOPENED: ("somebody had a failed node of an ended run tried again", "status"),
    EventKind.NODE_STATUS: ("a node has another status", "status, from, via (statuses between), failure"),
    EventKind.NODE_PLAN: ("the exact plan of a node is frozen", "plan_sha256, input_sha256, phase"),
    EventKind.NODE_RUNNING: (
        "the machine has admitted it and it runs, or is found out about",
        "status, from, via, ticket, claims, admitted_boot_ns; reconciling where it is found out about",
    ),
    EventKind.LEASE_RELEASED: ("the machine has its units back", "ticket, released_boot_ns"),
    EventKind.NODES_REUSED: ("a new owner found so many completed nodes and runs none of them again", "nodes"),
    EventKind.APPROVAL_REQUIRED: ("a person must say so first", "plan_sha256, rule, phase"),
    EventKind.GRANT: ("a person or a rule has decided", "action, allowed, plan_sha256, rule, revision, receipt_id"),
    EventKind.RECEIPT: (
        "a receipt was made, used or taken back",
        "receipt_id, state, action, plan_sha256, approver, subject, rule, expires_at, request_id",
    ),
    EventKind.REQUEST: ("what somebody asked for was taken up", "request_id, request, reason"),
    EventKind.LOG_CUT: (
        "the disk did not take all that a process of a node wrote into its log",
        "attempt, stream, bytes (that are missing, at most), message",
    ),
    EventKind.REQUEST_REFUSED: ("it was refused", "request_id, request, code, message, todo"),
    EventKind.SPENDING: ("a budget was reserved, spent, corrected or given back", "change, amount, assumed"),
    EventKind.LATE_RESULT: ("an attempt that no longer counts brought something", "outcome"),
    EventKind.LEFTOVER: ("processes of an earlier attempt were found and ended", "ended"),
    EventKind.CLEANUP_ERROR: (
        "something could not be ended or cleaned up or found out, or the run was given up",
        "message; reconciling and todo where it is about what an attempt did; given_up",
    ),
}


def events_page() -> str:
    """Return the page."""
    here = "in scripts/reference/events.py"
    fields = table("field", "is", rows=rows_of(Event.model_fields, FIELDS, where=f"FIELDS {here}"))
    kinds = rows_of(EventKind, KINDS, where=f"KINDS {here}")
    told = table("kind", "tells that", "data", rows=kinds)
    return f"{HEAD}{fields}\n## Kinds\n\nOf its data, what does not apply is left out.\n\n{told}"
