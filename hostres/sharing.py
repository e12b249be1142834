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
        others = _name_of(status.st_gid)
        raise HostlerError(
            Code.UNSAFE_STATE,
            f"{path} is shared with the group {others} (mode 2770), and the configuration does not say so",
            f'write group = "{others}" under [machine] to share it, or name a folder of your own',
        )
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


def _name_of(group: int) -> str:
    try:
        return grp.getgrgid(group).gr_name
    except KeyError:
        return str(group)


def _is_kept_out(path: Path, status: os.stat_result) -> bool:
    ours = os.geteuid() == status.st_uid or status.st_gid in (os.getegid(), *os.getgroups())
    return not ours and not os.access(path, os.W_OK | os.X_OK, effective_ids=True)
