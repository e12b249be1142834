"""What the configuration file says of the machine, read with the standard library alone."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from hostres.claims import is_name, is_units
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import user_home

MACHINE_KEYS: Final = ("capacity", "group", "patience")
"""What may stand under `[machine]`."""


class MachineSettings(NamedTuple):
    """What `[machine]` says.

    Attributes:
        capacity: Resource → units.
        group: The group that shares the machine folder, None if nobody does.

    """

    capacity: Mapping[str, int]
    group: str | None = None


def configuration_path(environ: Mapping[str, str]) -> Path:
    """Return where the configuration file is, whether or not it exists.

    Args:
        environ: `HOSTLER_CONFIG` in it names the file.

    """
    override = environ.get("HOSTLER_CONFIG")
    if override:
        return Path(override).absolute()
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME") or user_home()) / ".config"
    return folder / "hostler" / "config.toml"


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the content of a configuration file; a missing one is an empty one. It may be a link.

    Raises:
        HostlerError: `unsafe-state`: others can write it, or it is neither ours nor root's; `invalid-data`: it is not
            TOML; `unavailable`.

    """
    try:
        with path.open("rb") as file:
            _check_trusted(path, os.fstat(file.fileno()))
            import tomllib  # noqa: PLC0415  most have no such file

            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, RecursionError) as error:
        raise HostlerError(Code.INVALID_DATA, f"{path} is not TOML: {error}", "correct the file") from None
    except OSError as error:
        raise unavailable(f"{path} cannot be read", error) from error


def machine_settings(environ: Mapping[str, str]) -> MachineSettings:
    """Return what stands under `[machine]`.

    Args:
        environ: The environment.

    Raises:
        HostlerError: `invalid-profile`: not a table of whole numbers, or no name of a group; `invalid-data`: a key that
            nobody knows, which was meant to change something; see also `read_configuration`.

    """
    path = configuration_path(environ)
    machine = read_configuration(path).get("machine", {})
    capacity = machine.get("capacity", {}) if isinstance(machine, dict) else None
    if not isinstance(capacity, dict):
        raise HostlerError(Code.INVALID_PROFILE, f"[machine.capacity] in {path} is not a table", "write NAME = UNITS")
    for key in machine:
        if key not in MACHINE_KEYS:
            raise _unknown(key, path)
    for name, units in capacity.items():
        if not (is_name(name) and is_units(units, least=0)):
            raise HostlerError(
                Code.INVALID_PROFILE,
                f"{name} = {units!r} in [machine.capacity] of {path} is not a capacity",
                "write a lower-case name and a whole number of units",
            )
    group = machine.get("group")
    if not (group is None or (isinstance(group, str) and group)):
        raise HostlerError(
            Code.INVALID_PROFILE, f"group = {group!r} in [machine] of {path} is not a group", 'write group = "NAME"'
        )
    return MachineSettings(capacity=capacity, group=group)


def machine_capacity(environ: Mapping[str, str]) -> Mapping[str, int]:
    """Return the capacities under `[machine.capacity]`, resource → units; see `machine_settings`."""
    return machine_settings(environ).capacity


def _check_trusted(path: Path, status: os.stat_result) -> None:
    """Refuse a configuration that somebody else could have written."""
    mode = status.st_mode
    if status.st_uid not in (0, os.geteuid()):
        raise HostlerError(
            Code.UNSAFE_STATE,
            f"{path} belongs to user id {status.st_uid}, not to {os.geteuid()} or root",
            "use a file of your own, or chown it",
        )
    if mode & 0o002 or (mode & 0o020 and not _is_own_group(status)):
        raise HostlerError(
            Code.UNSAFE_STATE, f"others can write {path} (mode {stat.S_IMODE(mode):04o})", f"chmod go-w {path}"
        )


def _is_own_group(status: os.stat_result) -> bool:
    """Return whether a file's group is its owner's private one, as many systems give each user one, and umask 002."""
    import grp  # noqa: PLC0415  seldom needed
    import pwd  # noqa: PLC0415

    try:
        user, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return user.pw_gid == group.gr_gid and user.pw_name == group.gr_name and set(group.gr_mem) <= {user.pw_name}


def _unknown(key: str, path: Path) -> HostlerError:
    from difflib import get_close_matches  # noqa: PLC0415  seldom needed

    nearest = get_close_matches(key, MACHINE_KEYS, n=1, cutoff=0)[0]
    return HostlerError(
        Code.INVALID_DATA,
        f"configuration {path}: there is no key machine.{key}",
        f"take it out; the nearest known one is machine.{nearest}",
    )
