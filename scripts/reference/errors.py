"""The page of the stable codes: of errors, and of why a node failed."""

from collections.abc import Mapping
from typing import Final

from hostres.errors import EXIT_CODES, Code
from scripts.reference.tables import table
from scripts.reference.told import rows_of
from store.policy import FailureCode, Retry

HEAD: Final = """\
# Errors

*Written from `hostres/errors.py` and `store/policy.py` by `scripts/docs`.*

An error is one line on standard error, `hostler: error[CODE]: what; what to do`. Codes and exit codes are stable; the
words are for people and may change. In Python it is `HostlerError` with `code`, `what` and `todo`. A traceback is shown
only with `--debug`, which may stand anywhere before the words of a command to run.

"""

CODES: Final[Mapping[Code, tuple[str, str]]] = {
    Code.USAGE: ("what was typed is no command line", "what was probably meant is named; `--help`"),
    Code.INVALID_CLAIMS: (
        "claims that are no claims, or more than the machine has",
        "claim less, or `hostler machine set`",
    ),
    Code.INVALID_DATA: (
        "a workflow, an input or a file is wrong, or a stored record is not what was stored",
        "mend what it names; of a stored record, `hostler verify` says more",
    ),
    Code.INVALID_PROFILE: ("a capacity or another setting of the machine is wrong", "mend the line that it names"),
    Code.NOT_FOUND: ("no such run, node, file, resource or work", "`hostler runs`, `hostler show RUN`"),
    Code.CONFLICT: (
        "a living host owns the run, a lease is in use, the plan is another by now, somebody was first, or you may not",
        "look again with `hostler show RUN`; ask whoever may; what it says",
    ),
    Code.UNAVAILABLE: (
        "the disk is full or fails, the store is busy, a program is missing",
        "make room, wait, install it; then again",
    ),
    Code.UNSAFE_STATE: (
        "a folder others can write, a network file system, a damaged file",
        "what it says; `hostler doctor` looks",
    ),
    Code.NEWER_SCHEMA: ("a newer Hostler wrote the store", "use that one; nothing was touched"),
    Code.PROFILE_MISMATCH: (
        "other capacities are configured than are in use",
        "wait until nothing holds, or `hostler machine set`",
    ),
    Code.UNSUPPORTED_PLATFORM: ("this system cannot keep the promises", "use Linux on a local file system"),
    Code.WAIT_TIMEOUT: (
        "the machine had no room in the time that was given",
        "`hostler top` says who holds; wait longer",
    ),
    Code.WAIT_ABORTED: ("the wait was interrupted, or the ticket taken back", "ask again"),
    Code.OWNERSHIP_LOST: (
        "this host's claim is gone: its file was removed, or another has the run; or a lease was released",
        "`hostler resume RUN`; ask for a new lease",
    ),
    Code.INTERNAL: ("a fault of Hostler", "run it again with `--debug` before the command, and report what it says"),
    Code.RECEIPT_UNKNOWN: ("the receipt is not one of this run", "`hostler receipt list RUN`"),
    Code.RECEIPT_COLLISION: ("the run knows a receipt of that name", "give it another name"),
    Code.RECEIPT_CONSUMED: ("the receipt was used", "ask for another"),
    Code.RECEIPT_EXPIRED: ("the receipt is over, or the clock stands before its making", "ask for another"),
    Code.RECEIPT_REJECTED: ("the receipt was taken back", "ask for another"),
    Code.RECEIPT_WRONG_APPROVER: (
        "it is its subject's own, or its approver may not (any more)",
        "have somebody who may give one",
    ),
    Code.RECEIPT_NOT_HUMAN: ("it was given by no human, or presented at a gate by no human", "have a person do it"),
    Code.RECEIPT_MISMATCH: (
        "it is for another subject, action, node, plan, rule or attempt",
        "`hostler receipt list RUN`",
    ),
}

FAILURES: Final[Mapping[FailureCode, tuple[str, str]]] = {
    FailureCode.AUTHORIZATION_REQUIRED: ("a rule or its envelope denies it", "change the rule or the envelope"),
    FailureCode.CANCELLED: ("it was cancelled", "a new run"),
    FailureCode.CONFLICT: ("something else is in its place, as a file of that name", "make room, `hostler retry`"),
    FailureCode.INCOMPATIBLE: ("code, capacity or a way to find out is missing here", "what its message names"),
    FailureCode.INVALID_DATA: ("its input is wrong", "`hostler correct`"),
    FailureCode.SUBPROCESS: (
        "its program ended with another code than 0, or by a signal",
        "`hostler logs`, then `hostler retry`",
    ),
    FailureCode.UNAVAILABLE: ("something it needs was not there", "put it there, `hostler retry`"),
    FailureCode.UNSUPPORTED_PLAN: ("its plan asks for what this host cannot do", "change the workflow"),
    FailureCode.AMBIGUOUS: ("it may have happened, and that could not be found out", "`hostler settle`"),
    FailureCode.INTERNAL: ("its code raised, or gave up", "`hostler logs` has the traceback"),
    FailureCode.TIMEOUT: ("it took longer than `max_seconds`", "give it longer, `hostler retry`"),
    FailureCode.STALLED: ("it gave no sign of life", "`hostler logs`, then `hostler retry`"),
    FailureCode.PROVIDER_TRANSIENT: ("a service it needs may do it later", "`hostler retry` later"),
    FailureCode.MALFORMED_OUTPUT: ("what it brought is not whole, or not of its schema", "mend it, `hostler retry`"),
    FailureCode.BUDGET_EXHAUSTED: (
        "its budget is too small for another try",
        "`hostler budget RUN --add cost=5`, `hostler retry`",
    ),
}


WHY: Final = """
## Why a node failed

In `show`, `why` and the events of a run. A node whose policy has a `retry` is tried again by itself after those that
say so, unless the policy lists others.

"""


def errors_page() -> str:
    """Return the page."""
    here = "in scripts/reference/errors.py"
    codes = [
        (word, str(EXIT_CODES[code]), *said)
        for code, (word, *said) in zip(Code, rows_of(Code, CODES, where=f"CODES {here}"), strict=True)
    ]
    again = Retry().codes
    failures = [
        (*said, "yes" if code in again else "no")
        for code, said in zip(FailureCode, rows_of(FailureCode, FAILURES, where=f"FAILURES {here}"), strict=True)
    ]
    told = table("code", "exit", "means", "what to do", rows=codes)
    return HEAD + told + WHY + table("code", "means", "what to do", "tried again", rows=failures)
