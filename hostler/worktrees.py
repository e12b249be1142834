"""Worktrees of repositories: what makes them is loaded for the first node that wants one, since most runs want none."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from actors.control import Control
from actors.outcomes import Integrated, NotIntegrated
from actors.worktrees import Tree
from store.clock import Clock
from store.home import Home

if TYPE_CHECKING:
    from hostler.git_worktrees import GitWorktrees


class WorktreesOnDemand:
    """The worktrees below the staging folder of a home, for one host.

    Args:
        home: The store.
        host_id: The host.
        clock: Stamps who makes which.

    """

    def __init__(self, home: Home, host_id: str, *, clock: Clock) -> None:
        self._home = home
        self._host_id = host_id
        self._clock = clock

    def open(self, tree: Tree, control: Control, *, anew: bool) -> Path:
        """Return the worktree of an attempt; see `actors.worktrees.Worktrees`."""
        return self._of_git.open(tree, control, anew=anew)

    def integrate(self, tree: Tree, *, begin: bool) -> Integrated | NotIntegrated:
        """Move the branch forward to what the attempt has committed; see `actors.worktrees.Worktrees`."""
        return self._of_git.integrate(tree, begin=begin)

    @cached_property
    def _of_git(self) -> "GitWorktrees":
        from hostler.git_worktrees import GitWorktrees  # noqa: PLC0415 - see above
        from store.workspace_claims import WorkspaceClaims  # noqa: PLC0415 - likewise

        return GitWorktrees(self._home, WorkspaceClaims(self._home, self._host_id, clock=self._clock))
