"""The unit of the background service on this machine: written, checked by whoever will read it, taken away."""

import configparser
import os
import plistlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hostler.config import Config
from hostler.service_units import MARK, PASSED_ON, ServiceCommand, ServiceManager, unfit, unit_path, unit_text
from hostler.state_folder import HOME
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import user_home
from hostres.replacement import replacement

CONFIG: Final = "HOSTLER_CONFIG"
CHECK_S: Final = 30.0
BOOTED_WITH_SYSTEMD: Final = Path("/run/systemd/system")
"""sd_booted(3)."""


def usual_manager() -> ServiceManager:
    """Return who keeps services on a machine of this kind."""
    if sys.platform == "darwin":
        return ServiceManager.LAUNCHD
    return ServiceManager.SYSTEMD if BOOTED_WITH_SYSTEMD.is_dir() else ServiceManager.SUPERVISORD


def place_of(manager: ServiceManager, environ: Mapping[str, str]) -> Path:
    """Return where the unit belongs for this user.

    Raises:
        HostlerError: unavailable: this user has no home.

    """
    home = Path(environ.get("HOME") or user_home())
    config = environ.get("XDG_CONFIG_HOME", "")
    return unit_path(manager, home=home, config=Path(config) if config.startswith("/") else home / ".config")


def command_of(config: Config, environ: Mapping[str, str]) -> ServiceCommand:
    """Return what is to be kept: this interpreter's `hostler serve`, with the places that are in force here.

    Raises:
        HostlerError: invalid-data, for a variable that no unit can hold.

    """
    passed = {name: environ[name] for name in PASSED_ON if environ.get(name)}
    passed |= {HOME: str(config.home), CONFIG: str(config.config_path)}  # whatever HOME its supervisor has
    for name, value in passed.items():
        if not value.isprintable():
            raise HostlerError(
                Code.INVALID_DATA, f"{name} holds what no unit can: {value!r}", "set it to another value"
            )
    return ServiceCommand(
        argv=(sys.executable, "-P", "-m", "hostler", "serve", "--wait"),
        environ=passed,
        log=config.home / "logs" / "service.err",
        grace_s=int(config.service.grace_seconds) + 1,
        log_megabytes=config.service.log_megabytes,
        log_files=config.service.log_files,
    )


def install(manager: ServiceManager, config: Config, environ: Mapping[str, str]) -> tuple[Path, str]:
    """Write the unit, once whoever is to read it finds nothing wrong with it.

    Args:
        manager: Who is to read it.
        config: The places and the grace.
        environ: The environment to take places from.

    Returns:
        Where it is, and what it says.

    Raises:
        HostlerError: conflict, if there is one that we did not write; invalid-data, if it is refused; unavailable.

    """
    path = place_of(manager, environ)
    command = command_of(config, environ)
    odd = unfit(manager, command)
    if odd is not None:
        raise HostlerError(Code.INVALID_DATA, f"no unit for {manager} can hold {odd!r}", "use another place")
    text = unit_text(manager, command)
    _refuse_if_foreign(path)
    _CHECKS[manager](text)
    try:
        with replacement(path, text.encode()) as unit:
            unit.commit()
    except OSError as error:
        raise unavailable(f"{path} cannot be written", error) from error
    if manager is ServiceManager.SYSTEMD:
        _verify_systemd(path)
    return path, text


def uninstall(manager: ServiceManager, environ: Mapping[str, str]) -> Path | None:
    """Take the unit away.

    Returns:
        Where it was; None if there was none.

    Raises:
        HostlerError: conflict, if we did not write it; unavailable.

    """
    path = place_of(manager, environ)
    if not os.path.lexists(path):
        return None
    _refuse_if_foreign(path)
    try:
        path.unlink()
    except OSError as error:
        raise unavailable(f"{path} cannot be removed", error) from error
    return path


def _refuse_if_foreign(path: Path) -> None:
    try:
        if not os.path.lexists(path) or MARK in path.read_text():
            return
    except (OSError, UnicodeDecodeError):
        pass
    raise HostlerError(Code.CONFLICT, f"{path} was not written by Hostler", "move it away")


def _refused(why: str) -> HostlerError:
    return HostlerError(Code.INVALID_DATA, f"the unit is not accepted: {why}", "report it, with your environment")


def _check_systemd(text: str) -> None:
    parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]  # names keep their case
    parser.read_string(text)


def _verify_systemd(path: Path) -> None:
    """Ask systemd itself, where it is there."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    argv = [program, "--user", "--man=no", "verify", str(path)]
    try:
        said = subprocess.run(argv, capture_output=True, text=True, timeout=CHECK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return  # it cannot be asked here
    about_it = [line for line in said.stderr.splitlines() if path.name in line]
    if said.returncode != 0 and about_it:
        path.unlink(missing_ok=True)
        raise _refused(about_it[0])


def _check_launchd(text: str) -> None:
    plistlib.loads(text.encode())


def _check_supervisord(text: str) -> None:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)
    parser.read_string(text)


_CHECKS: Final[Mapping[ServiceManager, Callable[[str], None]]] = MappingProxyType(
    {
        ServiceManager.SYSTEMD: _check_systemd,
        ServiceManager.LAUNCHD: _check_launchd,
        ServiceManager.SUPERVISORD: _check_supervisord,
    }
)
