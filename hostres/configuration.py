"""The capacities that the configuration file sets, read with the standard library alone."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostres.claims import is_name, is_units
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import user_home


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
        HostlerError: `unsafe-state`: others can write it; `invalid-data`: it is not TOML; `unavailable`.

    """
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_mode & 0o022:
                raise HostlerError(
                    Code.UNSAFE_STATE,
                    f"others can write {path} (mode {stat.S_IMODE(status.st_mode):04o})",
                    f"chmod go-w {path}",
                )
            import tomllib  # noqa: PLC0415  most have no such file

            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, RecursionError) as error:
        raise HostlerError(Code.INVALID_DATA, f"{path} is not TOML: {error}", "correct the file") from None
    except OSError as error:
        raise unavailable(f"{path} cannot be read", error) from error


def machine_capacity(environ: Mapping[str, str]) -> Mapping[str, int]:
    """Return the capacities under `[machine.capacity]`, resource → units.

    Args:
        environ: The environment.

    Raises:
        HostlerError: `invalid-profile`: not a table of whole numbers; see also `read_configuration`.

    """
    path = configuration_path(environ)
    machine = read_configuration(path).get("machine", {})
    capacity = machine.get("capacity", {}) if isinstance(machine, dict) else None
    if not isinstance(capacity, dict):
        raise HostlerError(Code.INVALID_PROFILE, f"[machine.capacity] in {path} is not a table", "write NAME = UNITS")
    for name, units in capacity.items():
        if not (is_name(name) and is_units(units, least=0)):
            raise HostlerError(
                Code.INVALID_PROFILE,
                f"{name} = {units!r} in [machine.capacity] of {path} is not a capacity",
                "write a lower-case name and a whole number of units",
            )
    return capacity
