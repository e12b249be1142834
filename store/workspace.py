"""Where the work of a node lies when it is not a private folder: what is planned of it, and what is known of it."""

from pydantic import Field

from store.fields import Attempt, Contract, Id, Instant, NodeKey, Sha256, Text


class GitWorkspace(Contract):
    """A worktree of a git repository, made anew for each attempt.

    Attributes:
        repository: Its folder, absolute or relative to the run's folder.
        base: The branch whose newest commit the worktree begins with.
        integrate: Whether the branch is moved forward to what the node has committed, once its result has passed.

    """

    repository: Text = Field(min_length=1)
    base: Text = Field(min_length=1, max_length=255)
    integrate: bool = True


class WorkspaceRecord(Contract):
    """The worktree of a node, or that somebody is making it.

    Attributes:
        attempt: Which attempt it is for; one for a later attempt takes its place.
        claim: Names who makes it: only they may say that it is ready.
        host_id: The host of theirs.
        ready: Whether it is made.
        path: Of the worktree; no two have the same.
        identity: Device and inode of that folder, so that another one in its place is not taken for it.
        base_commit: What it began with.
        git_dir: What git knows of it, in the repository.

    """

    attempt: Attempt
    base_commit: str | None = Field(default=None, pattern=r"^[0-9a-f]{40,64}$")
    claim: Id
    claimed_at: Instant
    git_dir: Text | None = None
    host_id: Id
    identity: str | None = Field(default=None, pattern=r"^[0-9]{1,20}:[0-9]{1,20}$")
    node: NodeKey
    path: Text | None = None
    plan_sha256: Sha256
    ready: bool = False
