"""The configuration file: where it is, and its content, read with the standard library alone."""

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import user_home

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""What some editors begin a text in UTF-8 with."""


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
            TOML, or not a file; `unavailable`.

    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _no_file(path)
            _check_trusted(path, status)
            import tomllib  # noqa: PLC0415  most have no such file

            return tomllib.loads(file.read().removeprefix(BYTE_ORDER_MARK).decode())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, RecursionError) as error:
        raise HostlerError(Code.INVALID_DATA, f"{path} is not TOML: {error}", "correct the file") from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _no_file(path) from None
        raise unavailable(f"{path} cannot be read", error) from error


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for anybody who writes it."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _no_file(path: Path) -> HostlerError:
    return HostlerError(Code.INVALID_DATA, f"{path} is not a regular file", "use a file, or a link to one")


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
