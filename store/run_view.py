"""What is known of a run as a whole."""

from store.contracts import RunRecord, Summary
from store.lazy_dataclass import dataclass
from store.ledgers import Ledger
from store.lifecycle import RunStatus
from store.run_list import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """What is known of a run as a whole.

    Attributes:
        cancel_waits: Whether a cancel of the whole run waits for its owner.
        imported_sha256: Digest of the archive that it was brought in from, if it was.
        ledgers: What its nodes reserved and spent.

    """

    record: RunRecord
    status: RunStatus
    started_at: str | None
    finished_at: str | None
    owner: Owner | None
    summary: Summary | None
    cancel_waits: bool
    imported_sha256: str | None = None
    ledgers: tuple[Ledger, ...] = ()

    @property
    def owned(self) -> bool:
        """Whether a live host works on it."""
        return self.owner is not None and self.owner.alive

    @property
    def imported(self) -> bool:
        """Whether it is a mere record, which nobody goes on with."""
        return self.imported_sha256 is not None
