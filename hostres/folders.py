"""Private folders and files: ours, closed to others, no links; anything else is refused with the mend."""

# Path.resolve would follow links.
# ruff: noqa: PTH100, PTH114

import contextlib
import os
import pwd
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from hostres.errors import Code, HostlerError, unavailable

MAX_BYTES: Final = 64 * 1024
"""No file of the machine folder is larger."""

NETWORK_FILE_SYSTEMS: Final = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "fuse.ceph", "fuse.davfs2", "fuse.glusterfs",
    "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.smbnetfs", "glusterfs", "lustre", "ncpfs", "nfs", "nfs3",
    "nfs4", "orangefs", "pvfs2", "smb3", "smbfs", "vboxsf",
})  # fmt: skip


def machine_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of machine-wide admission.

    The same one for every process of the user, whatever HOME says: desktop, cron, ssh and supervisor meet
    there.

    Args:
        environ: `HOSTLER_MACHINE_DIR` in it overrides the place.

    """
    override = environ.get("HOSTLER_MACHINE_DIR")
    if override:
        return Path(os.path.abspath(override))
    return user_home() / ".local" / "state" / "hostler" / "admission"


def user_home() -> Path:
    """Return the home folder of the passwd entry.

    Raises:
        HostlerError: `unavailable`: this user id has no entry.

    """
    try:
        return Path(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        raise HostlerError(
            Code.UNAVAILABLE,
            f"user id {os.geteuid()} has no passwd entry, so it has no home folder",
            "set HOSTLER_MACHINE_DIR and HOSTLER_HOME to folders of your own",
        ) from None


def private_folder(path: Path, *, create: bool = True) -> Path:
    """Check that *path* is a folder of ours with mode 0700, no link; make it if need be.

    Args:
        path: The folder; missing parents are made private too.
        create: Whether a missing one is made.

    Returns:
        The absolute path.

    Raises:
        HostlerError: `unsafe-state` naming the path and the mend; `not-found` if missing and not *create*;
            `unavailable` if it cannot be made.

    """
    path = Path(os.path.abspath(path))
    if create:
        _make(path)
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        raise HostlerError(
            Code.NOT_FOUND, f"{path} does not exist", "run a workflow first, or check the path"
        ) from None
    except OSError as error:
        raise unavailable(f"{path} cannot be used", error) from error
    if stat.S_ISLNK(status.st_mode):
        _unsafe(path, "is a symbolic link", "replace it by a real folder")
    if not stat.S_ISDIR(status.st_mode):
        _unsafe(path, "is not a folder", "move it away")
    _check_owner(path, status)
    if status.st_mode & 0o077:
        _unsafe(path, f"is open to others (mode {stat.S_IMODE(status.st_mode):04o})", f"chmod 700 {path}")
    return path


def check_private_file(path: Path) -> os.stat_result:
    """Check that *path* is a file or FIFO of ours with mode 0600 and one name, not a link.

    Raises:
        HostlerError: `unsafe-state` naming the path and the mend.
        FileNotFoundError: It does not exist.

    """
    status = os.lstat(path)
    check_private_status(path, status)
    return status


def check_private_status(path: Path | str, status: os.stat_result) -> None:
    """Check what `lstat` or `fstat` said about *path*; see `check_private_file`."""
    mode = status.st_mode
    if stat.S_ISLNK(mode):
        _unsafe(path, "is a symbolic link", "remove it")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        _unsafe(path, "is neither a file nor a FIFO", "move it away")
    _check_owner(path, status)
    if mode & 0o077:
        _unsafe(path, f"is open to others (mode {stat.S_IMODE(mode):04o})", f"chmod 600 {path}")
    if status.st_nlink > 1:
        _unsafe(path, f"has {status.st_nlink} names (hard links)", "remove the others")


def open_private(path: Path | str, flags: int) -> int:
    """Open a private file, close-on-exec, not following a link; a new one gets mode 0600 whatever the umask.

    Args:
        path: The file.
        flags: As for `os.open`.

    Returns:
        The descriptor.

    Raises:
        HostlerError: `unsafe-state`, see `check_private_file`.
        OSError: As `os.open`.

    """
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    fd = _create(path, flags) if flags & os.O_CREAT else None
    if fd is not None:
        return fd  # new: ours, and of one name
    try:
        fd = os.open(path, flags & ~(os.O_CREAT | os.O_EXCL))
    except OSError:
        if os.path.islink(path):
            _unsafe(path, "is a symbolic link", "remove it")
        raise
    try:
        check_private_status(path, os.fstat(fd))
    except BaseException:
        os.close(fd)
        raise
    return fd


def file_system_type(path: Path) -> str:
    """Return the type of the file system of *path*, as `/proc/self/mountinfo` names it ("" if unknown)."""
    place = os.path.realpath(path)
    best, found = "", ""
    try:
        rows = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for row in rows:
        fields, _, rest = row.partition(" - ")
        mount = fields.split(" ")[4].encode("utf-8", "surrogateescape").decode("unicode_escape", "surrogateescape")
        inside = place == mount or place.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, found = mount, rest.split(" ", 1)[0]
    return found


def refuse_network_file_system(path: Path, *, file_system: Callable[[Path], str] = file_system_type) -> None:
    """Refuse a folder on a network file system: its locks do not say who lives.

    Args:
        path: The folder.
        file_system: Names the file-system type of a path.

    Raises:
        HostlerError: `unsafe-state`.

    """
    kind = file_system(path)
    if kind in NETWORK_FILE_SYSTEMS:
        _unsafe(path, f"lies on a network file system ({kind})", "use a folder on a local disk")


def _make(path: Path) -> None:
    missing = [path, *path.parents]
    missing = missing[: next((n for n, folder in enumerate(missing) if os.path.lexists(folder)), len(missing))]
    for folder in reversed(missing):
        try:
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                folder.chmod(0o700)
        except NotADirectoryError:
            _unsafe(folder.parent, "is not a folder", "move it away")
        except OSError as error:
            raise unavailable(f"{folder} cannot be made", error) from error


def _create(path: Path | str, flags: int) -> int | None:
    try:
        fd = os.open(path, flags | os.O_EXCL, 0o600)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return None
    if stat.S_IMODE(os.fstat(fd).st_mode) != 0o600:
        os.fchmod(fd, 0o600)
    return fd


def _check_owner(path: Path | str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        _unsafe(
            path,
            f"belongs to user id {status.st_uid}, not to {os.geteuid()}",
            "use a folder of your own, or chown it",
        )


def _unsafe(path: Path | str, what: str, todo: str) -> NoReturn:
    raise HostlerError(Code.UNSAFE_STATE, f"{path} {what}", todo)
