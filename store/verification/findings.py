"""What verification finds: stable codes, and for each thing that is wrong exactly where it stands."""

from enum import StrEnum

from store.lazy_dataclass import dataclass
from store.lifecycle import RunStatus


class Fault(StrEnum):
    """What can be wrong with a stored fact; stable, scripts may rely on them."""

    MISSING = "missing"
    DIGEST = "digest-mismatch"
    MALFORMED = "malformed"
    COLUMN = "column-mismatch"
    SIZE = "size-mismatch"
    PLAN = "plan-mismatch"
    CHAIN = "chain-broken"
    LOG = "log-mismatch"
    STATUS = "status-mismatch"
    SUMMARY = "summary-mismatch"
    GRANT = "grant-mismatch"
    REQUEST = "request-mismatch"
    CLAIM = "claim-mismatch"
    LEASE = "lease-mismatch"
    EVIDENCE = "evidence-mismatch"
    LEDGER = "ledger-mismatch"
    ARCHIVE = "archive-mismatch"


class Absence(StrEnum):
    """What can have become of a file that a run told of; the person may have moved it."""

    FILE_MISSING = "file-missing"
    FILE_CHANGED = "file-changed"
    LOG_MISSING = "log-missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One stored fact that is not as it was stored, or does not agree with the others.

    Attributes:
        fault: The stable code.
        table: Where it stands.
        what: What is wrong with it, one line.
        node: Key of the node it is about.
        event: Number of the event it is about.

    """

    fault: Fault
    table: str
    what: str
    node: str | None = None
    event: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A file outside the store that is no longer as the run left it.

    Attributes:
        absence: The stable code.
        node: Key of the node that left it.
        path: Where it was.
        what: What is different, one line.

    """

    absence: Absence
    node: str
    path: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What verification says of one run.

    Attributes:
        status: Of the run; None if it cannot be read.
        nodes: How many there are.
        events: How many there are.
        grants: How many there are.
        problems: What is wrong with what is stored.
        notes: What has become of files that the run told of.

    """

    run_id: str
    status: RunStatus | None
    nodes: int
    events: int
    grants: int
    problems: tuple[Problem, ...]
    notes: tuple[Note, ...] = ()


def printable(text: str) -> str:
    """Return *text* with what no UTF-8 can hold written as an escape."""
    return text.encode("utf-8", "backslashreplace").decode()
