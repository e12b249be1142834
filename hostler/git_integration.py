"""A branch moves forward to what a node has committed: one compare-and-swap of its name, or nothing.

The branch moves first, then each checkout of it follows. Whoever is killed in between has moved it; the next one finds
that and lets the checkouts follow, so it is done once however often it is tried.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from actors.outcomes import Integrated, NotIntegrated
from actors.worktrees import Tree
from hostler.git import Git, GitError
from store.workspace import WorkspaceRecord

MOST_PATHS: Final = 100


class _Change(NamedTuple):
    """A file by the digests of its content before and after; empty where it is not there."""

    before: str
    after: str


def integrate(tree: Tree, record: WorkspaceRecord, repository: Path, *, begin: bool) -> Integrated | NotIntegrated:
    """Move the branch of *tree* forward to the commit of its worktree.

    Args:
        tree: The attempt.
        record: Its worktree, ready.
        repository: The folder of the repository.
        begin: Whether it may be begun; otherwise it is only finished.

    Raises:
        GitError: Git cannot be asked, or refuses what it should not.

    """
    lost = _lost(record)
    if lost is not None:
        return _refused("workspace-lost", lost, "run it anew with: hostler retry RUN NODE --anew")
    inside = Git(Path(record.path or ""), run_id=tree.run_id, node=tree.node)
    outside = Git(repository, run_id=tree.run_id, node=tree.node)
    return _Attempt(tree, record, inside, outside).integrate(begin=begin)


def _lost(record: WorkspaceRecord) -> str | None:
    path = Path(record.path or "")
    try:
        status = path.stat(follow_symlinks=False)
    except OSError:
        return f"its worktree {path} is gone"
    if f"{status.st_dev}:{status.st_ino}" != record.identity:
        return f"{path} is another folder than the one that was made for it"
    return None


class _Attempt:
    """The integration of one worktree."""

    def __init__(self, tree: Tree, record: WorkspaceRecord, inside: Git, outside: Git) -> None:
        self._tree = tree
        self._base_commit = record.base_commit or ""
        self._git_dir = record.git_dir
        self._inside = inside
        self._place = inside.folder  # where people mend what stands in its way
        self._outside = outside
        self._branch = f"refs/heads/{tree.workspace.base}"

    def integrate(self, *, begin: bool) -> Integrated | NotIntegrated:
        if not self._belongs():
            return _refused("workspace-lost", "its worktree belongs to another repository", "run it anew")
        head = self._inside.text("rev-parse", "--verify", "HEAD^{commit}")
        tip = self._tip()
        if head == self._base_commit:
            return self._uncommitted() or Integrated(commit=None)
        if tip is not None and self._is_ancestor(head, tip):  # done, here or by whoever was killed at it
            self._follow(head)
            return Integrated(commit=head)
        if not begin:
            return _refused("cancelled", "its run was cancelled before anything was moved", "start a new run")
        refused = self._uncommitted() or self._not_ahead(head, tip)
        if refused is not None or tip is None:
            return refused or self._moved(head, tip)
        changes = _changes(self._outside, tip, head)
        refused = self._drift(changes) or self._checkouts_dirty(changes)
        if refused is not None:
            return refused
        try:
            self._outside.ask(
                "update-ref", "-m", f"hostler: {self._tree.run_id} {self._tree.node}", self._branch, head, tip
            )
        except GitError:
            if self._tip() == tip:
                raise
            return self._moved(head, self._tip())
        self._follow(head)
        return Integrated(commit=head)

    def _belongs(self) -> bool:
        """Say whether its worktree still is one of the repository, the one that was made."""
        common = self._outside.text("rev-parse", "--path-format=absolute", "--git-common-dir")
        git_dir = self._inside.text("rev-parse", "--absolute-git-dir")
        return git_dir == self._git_dir and os.path.realpath(common) == os.path.realpath(Path(git_dir).parents[1])

    def _tip(self) -> str | None:
        found = self._outside.ask("for-each-ref", "--format=%(objectname)%00%(refname)", self._branch)
        for line in found.split(b"\n"):
            commit, _, name = line.partition(b"\0")
            if os.fsdecode(name) == self._branch:
                return commit.decode()
        return None

    def _is_ancestor(self, older: str, newer: str) -> bool:
        return self._outside.says("merge-base", "--is-ancestor", older, newer)

    def _uncommitted(self) -> NotIntegrated | None:
        """Refuse work that would be lost with its worktree."""
        conflicting, changed = _status(self._inside, untracked=True)
        if conflicting:
            return _refused(
                "conflict",
                "a merge in its worktree is not resolved",
                f"resolve and commit it in {self._place}",
                conflicting,
            )
        if changed:
            what = "its worktree has edits that are not committed"
            return _refused("uncommitted-edits", what, f"commit or remove them in {self._place}", changed)
        return None

    def _not_ahead(self, head: str, tip: str | None) -> NotIntegrated | None:
        if not self._is_ancestor(self._base_commit, head):
            what = f"what it committed does not follow from {self._base_commit[:12]}, which it began with"
            return _refused("diverged", what, f"commit on top of that in {self._place}")
        if tip is not None and (self._is_ancestor(tip, head) and self._is_ancestor(self._base_commit, tip)):
            return None
        return self._moved(head, tip)

    def _moved(self, head: str, tip: str | None) -> NotIntegrated:
        """Say what stands against a branch that has moved: files that both changed, or only that it moved."""
        base = self._tree.workspace.base
        if tip is None:
            return _refused("moved-branch", f"branch {base} is gone", "make it again")
        todo = f"merge {base} in {self._place} and commit that"
        conflicts = self._conflicts(head, tip)
        if conflicts:
            what = f"branch {base} has moved, and both changed the same files"
            return _refused("conflict", what, todo, conflicts)
        moved = self._changed(self._base_commit, tip)
        what = f"branch {base} has moved from {self._base_commit[:12]} to {tip[:12]}"
        return _refused("moved-branch", what, todo, moved)

    def _conflicts(self, head: str, tip: str) -> list[str]:
        words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", tip, head)
        try:
            said = self._outside.ask(*words, codes=(0, 1))
        except GitError:  # an old git, or histories that have nothing in common
            return []
        return [os.fsdecode(name) for name in said.split(b"\0")[1:] if name]

    def _changed(self, older: str, newer: str) -> list[str]:
        return list(_changes(self._outside, older, newer))

    def _drift(self, changes: Iterable[str]) -> NotIntegrated | None:
        """Refuse changes of files that the node does not own."""
        if self._tree.paths is None:
            return None
        folder = Path(os.path.realpath(self._tree.folder))
        owned = [Path(os.path.normpath(folder / path)) for path in self._tree.paths]
        drifted = [
            name for name in changes if not any((self._outside.folder / name).is_relative_to(path) for path in owned)
        ]
        if not drifted:
            return None
        return _refused(
            "scope-drift", "it changed files that are not its own", f"take these changes back in {self._place}", drifted
        )

    def _checkouts(self) -> list[Git]:
        """Return the folders in which the branch is checked out."""
        found: list[Git] = []
        folder = None
        for line in self._outside.names("worktree", "list", "--porcelain", "-z"):
            name, _, value = line.partition(" ")
            if name == "worktree":
                folder = Path(value)
            elif name == "branch" and value == self._branch and folder is not None and folder.is_dir():
                found.append(Git(folder, run_id=self._tree.run_id, node=self._tree.node))
        return found

    def _checkouts_dirty(self, changes: Mapping[str, _Change]) -> NotIntegrated | None:
        """Refuse where a checkout of the branch has edits, or files of its own where new ones would come."""
        for checkout in self._checkouts():
            conflicting, changed = _status(checkout, untracked=False)
            in_the_way = [name for name, lies in _lying(checkout, changes).items() if lies != changes[name].before]
            if conflicting or changed or in_the_way:
                where = f"{checkout.folder}, where {self._tree.workspace.base} is checked out,"
                edited = sorted({*conflicting, *changed, *in_the_way})
                what = f"{where} has edits that are not committed"
                return _refused("uncommitted-edits", what, "commit them or put them aside", edited)
        return None

    def _follow(self, head: str) -> None:
        """Bring the checkouts of the branch to *head*, unless it has moved on meanwhile."""
        checkouts = self._checkouts()
        passed = _passed(self._outside, self._base_commit, head) if checkouts else {}
        for checkout in checkouts:
            if self._tip() == head:
                _bring_forward(checkout, passed, head)


def _changes(git: Git, older: str, newer: str) -> dict[str, _Change]:
    """Return the files that differ between two commits."""
    words = ("-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff")
    return dict(_parsed(git.names("diff-tree", *words, older, newer)))


def _passed(git: Git, older: str, newer: str) -> dict[str, set[str]]:
    """Return the files that were touched between two commits, each with all that it has held there."""
    commits = git.ask("rev-list", f"{older}..{newer}")
    words = ("--stdin", "-m", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff", "--no-commit-id")
    passed: dict[str, set[str]] = {}
    for name, change in _parsed(git.names("diff-tree", *words, stdin=commits)):
        passed.setdefault(name, set()).update(change)
    return passed


def _parsed(words: list[str]) -> Iterator[tuple[str, _Change]]:
    for told, name in zip(words[::2], words[1::2], strict=True):
        _, _, before, after, _ = told.removeprefix(":").split(" ")
        yield name, _Change(before.strip("0") and before, after.strip("0") and after)


def _lying(checkout: Git, names: Iterable[str]) -> dict[str, str]:
    """Return the digest of each file as it lies in a checkout; empty for one that is not there."""
    found = {}
    for name in names:
        path = checkout.folder / name
        try:
            mode = path.lstat().st_mode
        except OSError:
            found[name] = ""
            continue
        if stat.S_ISLNK(mode):
            found[name] = checkout.text("hash-object", "--stdin", "--no-filters", stdin=os.fsencode(path.readlink()))
        elif stat.S_ISREG(mode):
            found[name] = checkout.text("hash-object", "--", name)
        else:
            found[name] = "other"
    return found


def _bring_forward(checkout: Git, passed: Mapping[str, set[str]], head: str) -> None:
    """Give each file of a checkout that the branch has passed by its new content; what a person changed stays."""
    behind = set(checkout.names("diff-index", "--cached", "-z", "--name-only", "--no-renames", head))
    lying = _lying(checkout, passed)
    due = [name for name, held in passed.items() if name in behind and lying[name] in held]
    if due:
        listed = b"".join(os.fsencode(name) + b"\0" for name in due)
        checkout.ask(
            "restore", f"--source={head}", "--staged", "--worktree", "--pathspec-from-file=-", "--pathspec-file-nul",
            stdin=listed,
        )  # fmt: skip


def _status(git: Git, *, untracked: bool) -> tuple[list[str], list[str]]:
    """Return the files of unresolved merges, and those with edits that are not committed."""
    how = "all" if untracked else "no"
    words = ("status", "--porcelain=v2", "-z", f"--untracked-files={how}", "--no-renames", "--ignore-submodules=none")
    conflicting, changed = [], []
    for entry in git.names("--no-optional-locks", *words):
        kind, _, rest = entry.partition(" ")
        match kind:
            case "u":
                conflicting.append(rest.split(" ", 9)[-1])
            case "1":
                changed.append(rest.split(" ", 7)[-1])
            case "?":
                changed.append(rest)
            case _:
                pass
    return conflicting, changed


def _refused(reason: str, message: str, todo: str, paths: "list[str] | tuple[str, ...]" = ()) -> NotIntegrated:
    shown = tuple(path.encode("utf-8", "replace").decode() for path in paths[:MOST_PATHS])
    return NotIntegrated(reason=reason, message=message, todo=todo, paths=shown)
