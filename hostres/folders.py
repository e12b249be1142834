"""Private folders and files: ours, closed to others, no links; anything else is refused with the mend.

The one exception is a machine folder that the configuration shares with a group; see `hostres.sharing`.
"""

# Path.resolve would follow links.
# ruff: noqa: PTH100, PTH114

import contextlib
import errno
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


_PRIVATE: Final = (stat.S_IFIFO | 0o600, stat.S_IFREG | 0o600)
_SHARED_FILE: Final = 0o660
_shared: Final[dict[str, int]] = {}
"""Folders found to be shared, and the number of their group."""


def file_mode(path: Path | str) -> int:
    """Return the mode of a private file at *path*: 0600, or 0660 in a folder that a group shares."""
    return _SHARED_FILE if _shared and os.path.dirname(path) in _shared else 0o600  # noqa: PTH120


def machine_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of machine-wide admission.

    The same one for every process of the user, whatever HOME says: desktop, cron, ssh and supervisor meet
    there.

    Args:
        environ: `HOSTLER_MACHINE_DIR` in it overrides the place.

    Raises:
        HostlerError: `invalid-data`: that is no absolute path, so that it would be another folder for programs that
            were started elsewhere; `unavailable`, see `user_home`.

    """
    override = environ.get("HOSTLER_MACHINE_DIR")
    if override:
        if not os.path.isabs(override):  # noqa: PTH117
            raise HostlerError(
                Code.INVALID_DATA,
                f"HOSTLER_MACHINE_DIR is {override!r}, which is another folder wherever a program starts",
                "give it as an absolute path, without ~",
            )
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
            "set HOSTLER_MACHINE_DIR and HOSTLER_HOME to folders of your own, and HOSTLER_CONFIG to a file",
        ) from None


def private_folder(path: Path, *, create: bool = True) -> Path:
    """Check that *path* is a folder of ours with mode 0700, no link; make it if need be.

    Also a folder that the configuration shares with a group will do; what is made in that is shared too.

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
    if status.st_mode & 0o070 and not status.st_mode & 0o007 and _is_shared(path, status):
        return path
    _check_owner(path, status)
    if status.st_mode & 0o077:
        from hostres.open_folders import closing  # noqa: PLC0415  only to say what helps

        _unsafe(path, f"is open to others (mode {stat.S_IMODE(status.st_mode):04o})", closing(path))
    return path


def is_private_folder(place: str) -> bool:
    """Return whether a folder is as `private_folder` leaves one that is not shared, at the price of one `lstat`."""
    try:
        status = os.lstat(place)
    except OSError:
        return False
    return status.st_mode & ~0o7000 == stat.S_IFDIR | 0o700 and status.st_uid == os.geteuid()


def _is_shared(path: Path, status: os.stat_result) -> bool:
    place = str(path)
    if _shared.get(place) == status.st_gid and stat.S_IMODE(status.st_mode) == 0o2770:
        return True
    from hostres.sharing import shared_with  # noqa: PLC0415  needs this module, and few share

    _shared.pop(place, None)
    group = shared_with(path, status)
    if group is not None:
        _shared[place] = group
    return group is not None


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
    if mode in _PRIVATE and status.st_nlink == 1 and status.st_uid == os.geteuid() and not _shared:
        return  # as nearly all are
    if stat.S_ISLNK(mode):
        _unsafe(path, "is a symbolic link", "remove it")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        _unsafe(path, "is neither a file nor a FIFO", "move it away")
    group = _shared.get(os.path.dirname(path)) if _shared else None  # noqa: PTH120
    if group is None:
        _check_owner(path, status)
        if mode & 0o077:
            _unsafe(path, f"is open to others (mode {stat.S_IMODE(mode):04o})", f"chmod 600 {path}")
    elif mode & 0o007 or status.st_gid != group:
        _unsafe(
            path,
            f"is not shared with the group {group} alone (mode {stat.S_IMODE(mode):04o}, group id {status.st_gid})",
            f"chgrp {group} {path}; chmod 660 {path}",
        )
    if status.st_nlink > (2 if stat.S_ISFIFO(mode) else 1):  # that of an heir that holds has two
        _unsafe(path, f"has {status.st_nlink} names (hard links)", "remove the others")


def open_private(path: Path | str, flags: int) -> int:
    """Open a private file, close-on-exec, not following a link; a new one gets its mode whatever the umask.

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
    except OSError as error:
        if os.path.islink(path):
            _unsafe(path, "is a symbolic link", "remove it")
        if error.errno in (errno.EISDIR, errno.ENXIO):  # a folder, a socket
            _unsafe(path, "is neither a file nor a FIFO", "move it away")
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
                if str(folder.parent) in _shared:
                    _make_shared(folder)
                else:
                    folder.mkdir(mode=0o700)
                    folder.chmod(0o700)
        except NotADirectoryError:
            _unsafe(folder.parent, "is not a folder", "move it away")
        except OSError as error:
            raise unavailable(f"{folder} cannot be made", error) from error


def _make_shared(folder: Path) -> None:
    """Make a folder that others of the group never see with another mode."""
    draft = folder.with_name(f".new.{os.urandom(8).hex()}")
    draft.mkdir(mode=0o700)
    draft.chmod(0o2770)
    try:
        draft.rename(folder)
    except OSError:  # another was faster
        draft.rmdir()
        if not folder.exists():
            raise


def _create(path: Path | str, flags: int) -> int | None:
    wanted = file_mode(path)
    try:
        if wanted == _SHARED_FILE and not flags & os.O_EXCL:
            return _create_for_all(path, flags)
        fd = os.open(path, flags | os.O_EXCL, wanted)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return None
    return _with_mode(fd, wanted)


def _with_mode(fd: int, wanted: int) -> int:
    if stat.S_IMODE(os.fstat(fd).st_mode) != wanted:
        os.fchmod(fd, wanted)
    return fd


def _create_for_all(path: Path | str, flags: int) -> int:
    """Create a file that others of the group, who open it as soon as it has a name, never see with another mode."""
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
    nameless = flags & ~(os.O_CREAT | os.O_NOFOLLOW) | os.O_TMPFILE
    try:
        fd = os.open(os.path.dirname(path), nameless, _SHARED_FILE)  # noqa: PTH120
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
        return _with_mode(os.open(path, flags | os.O_EXCL, _SHARED_FILE), _SHARED_FILE)  # no file system that has it
    try:
        _with_mode(fd, _SHARED_FILE)
        # a descriptor of a folder, be it of no use, is what makes it follow the link
        os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _check_owner(path: Path | str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        _unsafe(
            path,
            f"belongs to user id {status.st_uid}, not to {os.geteuid()}",
            "use a folder of your own; if it is there for Hostler alone, chown it",
        )


def _unsafe(path: Path | str, what: str, todo: str) -> NoReturn:
    raise HostlerError(Code.UNSAFE_STATE, f"{path} {what}", todo)
