"""The port to workspaces that lie in a repository: one is made for an attempt, and what it holds is integrated."""

import logging
from pathlib import Path
from typing import Final, Protocol

from actors.control import Control
from actors.outcomes import Integrated, NotIntegrated
from hostres.errors import describe
from store.lazy_dataclass import dataclass
from store.workspace import GitWorkspace

log = logging.getLogger(__name__)

REPOSITORY_VARIABLES: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What `git rev-parse --local-env-vars` names: where a host was started by git, they mean its repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The workspace of an attempt.

    Attributes:
        plan_sha256: The exact plan.
        folder: Of the run; relative paths resolve against it.
        workspace: What is planned.
        paths: Files and folders that the node may change, by its envelope; None is no limit.

    """

    run_id: str
    node: str
    attempt: int
    plan_sha256: str
    folder: Path
    workspace: GitWorkspace
    paths: tuple[str, ...] | None


class Worktrees(Protocol):
    """Makes workspaces in repositories and integrates what they hold. Both may block; neither runs on an actor."""

    def open(self, tree: Tree, control: Control, *, anew: bool) -> Path:
        """Return the workspace of an attempt.

        Args:
            tree: Whose.
            control: Says whether the attempt was asked to stop meanwhile.
            anew: Whether it is made; otherwise that of the attempt is looked for.

        Raises:
            HostlerError: It cannot be made, or somebody else makes it.

        """

    def integrate(self, tree: Tree, *, begin: bool) -> Integrated | NotIntegrated:
        """Bring what a workspace holds to where it belongs; done once, however often it is asked for.

        Args:
            tree: Whose.
            begin: Whether it may be begun; otherwise it is only found out whether that was done.

        """


def integrated(worktrees: Worktrees, tree: Tree, *, begin: bool) -> Integrated | NotIntegrated:
    """Integrate *tree*; a port that breaks has integrated nothing that anybody knows of."""
    try:
        return worktrees.integrate(tree, begin=begin)
    except Exception as error:
        log.exception("the integration of %s broke", tree.node)
        return NotIntegrated(reason="unavailable", message=describe(error), todo="report this, then retry it")
