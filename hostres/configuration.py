"""The configuration file: where it is, and its content, read with the standard library alone."""

import errno
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import user_home

if TYPE_CHECKING:
    from hostres.keys import Key, Step

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
"""What some editors begin a text in UTF-8 with."""

MAX_BYTES: Final = 1 << 20
"""No configuration is larger; what is, was put there by mistake, and is not read."""


class Configuration(NamedTuple):
    """A configuration file as it was read.

    Attributes:
        path: Where it is.
        settings: Its content; empty if there is no file.
        read_boot_ns: A moment before it was opened, on the boot-time clock: whoever changed it later was not heard.

    """

    path: Path
    settings: Mapping[str, Any]
    read_boot_ns: int


def configuration_path(environ: Mapping[str, str]) -> Path:
    """Return where the configuration file is, whether or not it exists.

    Args:
        environ: `HOSTLER_CONFIG` in it names the file.

    Raises:
        HostlerError: `unavailable`: nothing names one, and this user has no home.

    """
    override = environ.get("HOSTLER_CONFIG")
    if override:
        return Path(override).absolute()
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else Path(environ.get("HOME") or user_home()) / ".config"
    return folder / "hostler" / "config.toml"


def read_configuration(path: Path) -> Configuration:
    """Read a configuration file; a missing one is an empty one. It may be a link.

    Raises:
        HostlerError: `unsafe-state`: others can write it, or it is neither ours nor root's; `invalid-data`: it is not
            TOML, not a file, or far too large; `unavailable`.

    """
    now_boot_ns = boot_ns()
    return Configuration(path=path, settings=_content(path), read_boot_ns=now_boot_ns)


def _content(path: Path) -> dict[str, Any]:
    content = b""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _no_file(path)
            _check_trusted(path, status)
            import tomllib  # noqa: PLC0415  most have no such file

            content = _bounded(path, file, status.st_size).removeprefix(BYTE_ORDER_MARK)
            return tomllib.loads(content.decode())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, RecursionError) as error:
        raise _no_toml(path, content, error) from None
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise _no_file(path) from None
        raise unavailable(f"{path} cannot be read", error) from error


def refuse_wrong(path: Path, settings: Mapping[str, Any], keys: Sequence["Key"]) -> None:
    """Refuse a configuration that holds what nobody knows, or a value that is not right.

    Args:
        path: Where it is.
        settings: Its content.
        keys: All that may stand there.

    Raises:
        HostlerError: `invalid-data`, `invalid-profile` for a value of `[machine]`: with file, line and what is right.

    """
    if not settings:
        return
    from hostres.keys import first_problem  # noqa: PLC0415  most have no such file

    problem = first_problem(settings, keys)
    if problem is not None:
        of_machine = not problem.unknown and problem.place[0] == "machine"
        code = Code.INVALID_PROFILE if of_machine else Code.INVALID_DATA
        raise wrong_at(path, problem.place, problem.what, problem.todo, code=code)


def wrong_at(
    path: Path, place: "Sequence[Step]", what: str, todo: str, *, code: Code = Code.INVALID_DATA
) -> HostlerError:
    """Return the error of something in a configuration, with file and line.

    Args:
        path: The file.
        place: The key, after the tables that it is in.
        what: What is wrong with it, naming it.
        todo: What is right.
        code: The error's code.

    """
    from hostres.toml_places import where  # noqa: PLC0415  only to say so

    return HostlerError(code, f"{where(path, place)}: {what}", todo)


def _bounded(path: Path, file: BinaryIO, size: int) -> bytes:
    content = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
    size = max(size, len(content))
    if size > MAX_BYTES:
        raise HostlerError(
            Code.INVALID_DATA,
            f"{path} has {size} bytes, more than the {MAX_BYTES} of any configuration",
            "move it away, or name another one in HOSTLER_CONFIG",
        )
    return content


def _no_toml(path: Path, content: bytes, error: Exception) -> HostlerError:
    """Say where a text stops being TOML."""
    if isinstance(error, RecursionError):
        return HostlerError(Code.INVALID_DATA, f"{path} is nested too deeply", "write it flatter")
    if isinstance(error, UnicodeDecodeError):
        return _no_toml_at(path, content[: error.start], "not UTF-8", "save the file as UTF-8")
    said = " ".join(str(error).split())
    found = re.fullmatch(r"(.*?) ?\(at (?:line (\d+), column (\d+)|end of document)\)", said)
    if found is None:  # what Python's own types refuse, as a date that does not exist
        line = _refused_line(content.decode().split("\n"), str(error))
        return HostlerError(Code.INVALID_DATA, f"{path} line {line} is not TOML: {said}", "correct it there")
    what = found[1][:1].lower() + found[1][1:]
    if found[2] is None:
        return _no_toml_at(path, content.rstrip(), what, "correct it there")
    at = f"{path} line {found[2]} column {found[3]}"
    return HostlerError(Code.INVALID_DATA, f"{at} is not TOML: {what}", "correct it there")


def _no_toml_at(path: Path, before: bytes, what: str, todo: str) -> HostlerError:
    """Say that a text is no TOML after its beginning."""
    line = before.count(b"\n") + 1
    column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
    return HostlerError(Code.INVALID_DATA, f"{path} line {line} column {column} is not TOML: {what}", todo)


def _refused_line(lines: Sequence[str], said: str) -> int:
    """Return the line, from 1, at the end of which reading first fails with these words."""
    import tomllib  # noqa: PLC0415  only where something is wrong
    from bisect import bisect_left  # noqa: PLC0415

    def fails(end: int) -> bool:
        try:
            tomllib.loads("\n".join(lines[:end]) + "\n")
        except ValueError as error:
            return str(error) == said
        return False

    return bisect_left(range(1, len(lines) + 1), x=True, key=fails) + 1


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
