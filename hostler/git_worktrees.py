"""Worktrees of git repositories for the attempts of nodes: each attempt begins with a fresh one, made once."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Final

from actors.control import Control
from actors.outcomes import Integrated, NotIntegrated
from actors.worktrees import Tree
from hostler.git import Git, GitError
from hostler.git_integration import integrate
from hostres.errors import Code, HostlerError
from store.home import Home
from store.workspace import WorkspaceRecord
from store.workspace_claims import Busy, Mine, Ready, WorkspaceClaims

_LOOK_S: Final = 0.1
"""Between two looks at whether another maker has done; a claim in the store wakes nobody."""


class GitWorktrees:
    """Worktrees below the staging folder of this home.

    Args:
        home: The store.
        claims: Who makes which.
        before_publish: Called between the making of a worktree and its announcement.

    """

    def __init__(
        self, home: Home, claims: WorkspaceClaims, *, before_publish: Callable[[], None] = lambda: None
    ) -> None:
        self._home = home
        self._claims = claims
        self._before_publish = before_publish

    def open(self, tree: Tree, control: Control, *, anew: bool) -> Path:
        """Return the worktree of an attempt; see `actors.worktrees.Worktrees`."""
        if not anew:
            return self._found(tree)
        claimed = self._claimed(tree, control)
        if isinstance(claimed, Ready):
            return Path(claimed.record.path or "")
        made = self._made(tree, claimed, control)
        self._before_publish()
        try:
            self._claims.publish(tree.run_id, made)
        except BaseException:
            git = Git(repository_of(tree), run_id=tree.run_id, node=tree.node)
            self._remove_tree(git, tree.run_id, made)
            raise
        return Path(made.path or "")

    def integrate(self, tree: Tree, *, begin: bool) -> Integrated | NotIntegrated:
        """Move the branch forward to what the attempt has committed; see `actors.worktrees.Worktrees`."""
        try:
            record = self._claims.find(tree.run_id, tree.node)
            if record is None or record.attempt < tree.attempt:
                return Integrated(commit=None)  # the attempt never looked at its workspace
            if record.attempt > tree.attempt or not record.ready:
                return _lost("another attempt works in it")
            return integrate(tree, record, repository_of(tree), begin=begin)
        except (HostlerError, OSError) as error:
            what, todo = (error.what, error.todo) if isinstance(error, HostlerError) else (str(error), "mend that")
            return NotIntegrated(reason="unavailable", message=what, todo=todo)

    def _found(self, tree: Tree) -> Path:
        record = self._claims.find(tree.run_id, tree.node)
        if record is None or not record.ready or record.attempt != tree.attempt or record.path is None:
            raise HostlerError(Code.NOT_FOUND, f"attempt {tree.attempt} of {tree.node} has no worktree", "settle it")
        return Path(record.path)

    def _claimed(self, tree: Tree, control: Control) -> Mine | Ready:
        """Claim the making of it, once whoever is at it has done, is dead, or has had its time."""
        give_up: float | None = None
        while True:
            said = self._claims.claim(tree.run_id, tree.node, tree.plan_sha256, tree.attempt)
            if not isinstance(said, Busy):
                return said
            control.check()
            now = time.monotonic()
            give_up = min(give_up or float("inf"), now + said.left_ms / 1000)
            Event().wait(min(_LOOK_S, max(0.001, give_up - now)))

    def _made(self, tree: Tree, claimed: Mine, control: Control) -> WorkspaceRecord:
        try:
            private = self._home.workspace(tree.run_id, tree.node, tree.plan_sha256)
            path = private / _name(claimed.record)
            git = Git(repository_of(tree), run_id=tree.run_id, node=tree.node, control=control)
            base_commit = commit_of(git, tree.workspace.base)
            if claimed.before is not None:
                self._remove_tree(git, tree.run_id, claimed.before)
            _empty(private)
            git.ask("worktree", "add", "--quiet", "--detach", "--no-guess-remote", str(path), base_commit)
            inside = Git(path, run_id=tree.run_id, node=tree.node, control=control)
            status = path.stat(follow_symlinks=False)
            return claimed.record.model_copy(
                update={
                    "base_commit": base_commit,
                    "git_dir": inside.text("rev-parse", "--absolute-git-dir"),
                    "identity": f"{status.st_dev}:{status.st_ino}",
                    "path": str(path),
                    "ready": True,
                }
            )
        except BaseException:
            self._claims.abandon(tree.run_id, claimed.record)
            raise

    def _remove_tree(self, git: Git, run_id: str, record: WorkspaceRecord) -> None:
        """Remove a worktree and what git knows of it, also where its maker got no further than beginning with it."""
        path = self._home.workspace(run_id, record.node, record.plan_sha256) / _name(record)
        try:
            git.ask("worktree", "remove", "--force", "--force", str(path))
        except GitError:  # it was never finished, or its folder is gone
            shutil.rmtree(path, ignore_errors=True)
            common = Path(git.text("rev-parse", "--path-format=absolute", "--git-common-dir"))
            shutil.rmtree(common / "worktrees" / path.name, ignore_errors=True)


def repository_of(tree: Tree) -> Path:
    """Return the folder of the repository.

    Raises:
        HostlerError: not-found, if there is no such folder.

    """
    repository = Path(os.path.realpath(tree.folder / tree.workspace.repository))
    if not repository.is_dir():
        raise HostlerError(Code.NOT_FOUND, f"there is no repository {repository}", "name a folder that git knows")
    return repository


def commit_of(git: Git, branch: str) -> str:
    """Return the newest commit of a branch.

    Raises:
        HostlerError: not-found, if it is no branch of that repository.

    """
    try:
        git.ask("check-ref-format", f"refs/heads/{branch}")
        return git.text("rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}^{{commit}}")
    except GitError as error:
        if not git.says("rev-parse", "--git-dir"):
            raise
        what = f"{git.folder} has no branch {branch!r}"
        raise HostlerError(Code.NOT_FOUND, what, "name a branch that has a commit") from error


def _lost(why: str) -> NotIntegrated:
    return NotIntegrated(reason="workspace-lost", message=why, todo="run it anew with: hostler retry RUN NODE --anew")


def _empty(private: Path) -> None:
    """Remove what earlier attempts left; what another process still writes there goes with the next attempt."""
    for entry in list(private.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _name(record: WorkspaceRecord) -> str:
    """Return the name of the folder of a worktree, which no other one has."""
    return f"tree-{record.claim}"
