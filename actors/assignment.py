"""What an attempt of a node is told of itself, and what it may ask of the host around it."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from hostres.niceness import Niceness
from store.amounts import Usage
from store.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from hostres.logs import Cut
    from store.terms import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Which attempt of which node this is.

    Attributes:
        folder: Where the run was created; relative paths resolve against it.
        niceness: How far its processes stand behind others.
        beats: Whether its processes get a descriptor to beat on.
        in_repository: Whether its workspace is a worktree, in which nothing may lie but its work.
        envelope: What it may do at most; None where nothing is kept from it.
        kept: Folders that Hostler keeps for itself: nothing is published there.

    """

    run_id: str
    node: str
    attempt: int
    folder: Path
    niceness: Niceness | None = None
    beats: bool = False
    in_repository: bool = False
    envelope: "Envelope | None" = None
    kept: tuple[Path, ...] = ()

    @property
    def idempotency_key(self) -> str:
        """The key for services that can tell a repeated call."""
        return f"{self.run_id}:{self.node}:{self.attempt}"


class Host(Protocol):
    """What a context asks of the host around it."""

    def allow_publication(self) -> None:
        """Return once the host has durably let this attempt through, else raise."""

    def progress(self, fraction: float | None, text: str, speed: float | None, left_s: float | None) -> None:
        """Pass on how far the work is."""

    def beat(self) -> None:
        """Take note that the work lives."""

    def spend(self, usage: Usage) -> None:
        """Return once what this attempt has spent is durably recorded, else raise."""

    def next_logs(self) -> tuple[Path, Path]:
        """Return the files for standard output and standard error of the next process."""

    def log_cut(self, cut: "Cut") -> None:
        """Take note of what a log lacks because the disk did not take it."""

    def open_workspace(self) -> Path:
        """Return the private folder of this node and plan, empty."""
