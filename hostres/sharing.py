"""A machine folder that several users share: mode 2770, and a group that the configuration names.

Nothing else is ever shared, and nobody shares by accident: a folder that is merely open to a group is refused. Who is
refused one that others share is never told to close it, but how to share it too.
"""

import grp
import os
import stat
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.settings import group_number, machine_settings

MODE: Final = 0o2770
BELOW: Final = ("t", "revoked")
"""Folders in it that are shared with it."""


def shared_with(path: Path, status: os.stat_result) -> int | None:
    """Return the number of the group that shares a folder by configuration; None if nobody is meant to.

    Args:
        path: The folder.
        status: What `lstat` says of it.

    Raises:
        HostlerError: `unsafe-state`: it is meant to be shared, and is not as it must be, or it is shared, and the
            configuration does not say so; `unavailable`: this program is not of the group; or as `machine_settings`.

    """
    root = machine_folder(os.environ)
    if path != root and (path.parent != root or path.name not in BELOW):
        return None
    name = machine_settings(os.environ).group
    mode = stat.S_IMODE(status.st_mode)
    if name is None:
        if mode != MODE:
            return None
        raise _unnamed(path, status.st_gid)
    group = group_number(name)
    if mode == MODE and status.st_gid == group:
        if _is_kept_out(path, status):
            raise HostlerError(
                Code.UNAVAILABLE,
                f"{path} is shared with the group {name}, of which this program is not",
                f"have your user added to {name} (usermod -aG), then log in anew",
            )
        return group
    raise HostlerError(
        Code.UNSAFE_STATE,
        f"{path} (mode {mode:04o}, group id {status.st_gid}) is not shared with the group {name} as it must be",
        f"chgrp {name} {path}; chmod 2770 {path}",
    )


def _unnamed(path: Path, group: int) -> HostlerError:
    """Return the error of a configuration that does not name the group of a folder that others share."""
    todo = "write {} under [machine] to share it, or name a folder of your own"
    try:
        name = grp.getgrgid(group).gr_name
        todo = todo.format(f'group = "{name}"')
    except KeyError:  # as in a container
        name = f"id {group}"
        todo = todo.format("the name of the group, which it needs in /etc/group,")
    what = f"{path} is shared with the group {name} (mode 2770), and the configuration does not say so"
    return HostlerError(Code.UNSAFE_STATE, what, todo)


def _is_kept_out(path: Path, status: os.stat_result) -> bool:
    if status.st_gid in (os.getegid(), *os.getgroups()):
        return False
    if os.geteuid() == status.st_uid != 0:
        return True  # into the folder it may go, but what the others make there is the group's
    return not os.access(path, os.W_OK | os.X_OK, effective_ids=True)
