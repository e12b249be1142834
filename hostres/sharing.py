"""A machine folder that several users share: mode 2770, and a group that the configuration names.

Nothing else is ever shared, and nobody shares by accident: a folder that is merely open to a group is refused.
"""

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
        HostlerError: `unsafe-state`: it is meant to be shared, and is not as it must be; or as `machine_settings`.

    """
    root = machine_folder(os.environ)
    if path != root and (path.parent != root or path.name not in BELOW):
        return None
    name = machine_settings(os.environ).group
    if name is None:
        return None
    group = group_number(name)
    mode = stat.S_IMODE(status.st_mode)
    if mode == MODE and status.st_gid == group:
        return group
    raise HostlerError(
        Code.UNSAFE_STATE,
        f"{path} (mode {mode:04o}, group id {status.st_gid}) is not shared with the group {name} as it must be",
        f"chgrp {name} {path}; chmod 2770 {path}",
    )
