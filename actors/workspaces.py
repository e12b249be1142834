"""A workspace as an attempt begins with it: empty, since a half-made file must not look like a result."""

import os
import stat
from collections.abc import Callable
from pathlib import Path


def opened(workspace: Path, *, reconciling: bool, between: Callable[[], object]) -> Path:
    """Return a workspace as an attempt begins with it.

    Args:
        workspace: The folder.
        reconciling: Whether what an earlier attempt left is just what is wanted.
        between: Called before each thing that is removed; what it raises ends this.

    Raises:
        OSError: Something cannot be removed.

    """
    if not reconciling:
        _empty(workspace, between)
    return workspace


def _empty(workspace: Path, between: Callable[[], object]) -> None:
    """Remove all that is in a folder, from the leaves up; links are removed, not followed."""
    for _folder, below, names, fd in os.fwalk(workspace, topdown=False, onerror=_raise):
        for name in names:
            between()
            os.unlink(name, dir_fd=fd)
        for name in below:
            between()
            if stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=fd)
            else:
                os.rmdir(name, dir_fd=fd)


def _raise(error: OSError) -> None:
    raise error
