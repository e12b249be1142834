"""The folder of durable state: private, local, and with nothing in it that leads elsewhere."""

import os
import re
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import check_private_file, file_system_type, private_folder, refuse_network_file_system
from hostres.replacement import sync
from store.patterns import NODE_KEY_PATTERN, RUN_ID_PATTERN, SHA256_PATTERN

PROGRAM: Final = "program"
"""Stream that holds no output, but the path of the program that the process was started with."""
_KEY: Final = re.compile(NODE_KEY_PATTERN.strip("^$"))
_RUN_ID: Final = re.compile(RUN_ID_PATTERN.strip("^$"))
_SHA256: Final = re.compile(SHA256_PATTERN.strip("^$"))
_STREAM: Final = re.compile(r"[a-z]{1,32}(\.[1-9][0-9]{0,5})?")
_LONGEST_KEY: Final = 255

FOLDERS: Final = ("staging", "logs", "hosts", "bundles", "content")
"""What in a state folder is a folder."""


class Home:
    """A state folder that was checked.

    Attributes:
        root: Absolute.
        exists: False for one that nobody made yet; looking into it finds nothing.

    """

    __slots__ = ("exists", "root")  # no dataclass: importing those takes as long as listing the runs

    def __init__(self, root: Path, exists: bool) -> None:  # noqa: FBT001
        self.root = root
        self.exists = exists

    @classmethod
    def open(cls, root: Path, *, create: bool, file_system: Callable[[Path], str] = file_system_type) -> "Home":
        """Check the state folder at *root*.

        Args:
            root: The folder.
            create: Make it, and the folders in it, if need be; otherwise nothing is touched.
            file_system: Names the file-system type of a path.

        Raises:
            HostlerError: unsafe-state, naming the path and the mend; unavailable, if it cannot be made.

        """
        root = Path(os.path.abspath(root))  # noqa: PTH100 - resolving would follow links
        if not create and not os.path.lexists(root):
            return cls(root, exists=False)
        made = [folder for folder in (root, *root.parents) if not os.path.lexists(folder)]
        private_folder(root, create=create)
        refuse_network_file_system(root, file_system=file_system)
        try:
            _check_inside(root)
        except OSError as error:
            raise unavailable(f"{root} cannot be looked into", error) from error
        home = cls(root, exists=True)
        if create:
            for name in FOLDERS:
                private_folder(root / name)
            _sync_names(made)
        return home

    @property
    def database(self) -> Path:
        """The run store."""
        return self.root / "runs.db"

    @property
    def reserve(self) -> Path:
        """Room on the disk that is kept for the end of running steps; see `store/room.py`."""
        return self.root / "reserve"

    @property
    def staging(self) -> Path:
        """Workspaces of attempts."""
        return self.root / "staging"

    @property
    def logs(self) -> Path:
        """What the processes of attempts wrote."""
        return self.root / "logs"

    @property
    def hosts(self) -> Path:
        """One FIFO for each living host."""
        return self.root / "hosts"

    @property
    def bundles(self) -> Path:
        """Code bundles laid out for workers."""
        return self.root / "bundles"

    @property
    def content(self) -> Path:
        """Large values, plans and bundles, by digest."""
        return self.root / "content"

    def logs_of_run(self, run_id: str) -> Path:
        """Return the folder of a run's logs, which need not be there.

        Raises:
            HostlerError: invalid-data, for a name that could lead elsewhere.

        """
        return self.logs / _run_name(run_id)

    def progress_path(self, run_id: str, *, create: bool = False) -> Path:
        """Return where it is noted how far the nodes of a run are.

        Args:
            run_id: The run.
            create: Make its folder if need be.

        Raises:
            HostlerError: invalid-data, for a name that could lead elsewhere; unsafe-state.

        """
        folder = _private(self.logs, _run_name(run_id)) if create else self.logs_of_run(run_id)
        return folder / "~progress"  # no node has a folder of that name

    def workspace(self, run_id: str, node: str, plan_sha256: str) -> Path:
        """Return the private folder in which attempts of that exact plan work; made if need be.

        Raises:
            HostlerError: invalid-data, for a name that could lead elsewhere; unsafe-state.

        """
        if not _SHA256.fullmatch(plan_sha256):
            raise _odd("plan digest", plan_sha256)
        return _private(self.staging, _run_name(run_id), node_folder(node), plan_sha256)

    def log_path(self, run_id: str, node: str, attempt: int, stream: str) -> Path:
        """Return where that output of that attempt is kept; its folder is made if need be.

        Args:
            run_id: The run.
            node: The node's key.
            attempt: From 1.
            stream: stdout, stderr or program, with `.2` and so on for the further processes of the attempt; or error.

        Raises:
            HostlerError: invalid-data, for a name that could lead elsewhere; unsafe-state.

        """
        if attempt < 0 or not _STREAM.fullmatch(stream):
            raise _odd("stream", f"{attempt}.{stream}")
        return _private(self.logs, _run_name(run_id), node_folder(node)) / f"{attempt}.{stream}"

    def logs_of(self, run_id: str, node: str, attempt: int) -> dict[str, Path]:
        """Return what there is of an attempt's output, by stream; looking makes nothing.

        Args:
            run_id: The run.
            node: The node's key.
            attempt: From 1.

        Raises:
            HostlerError: invalid-data, for a name that could lead elsewhere; unsafe-state.

        """
        folder = self.logs
        for name in ("", _run_name(run_id), node_folder(node)):
            folder = folder / name
            if not os.path.lexists(folder):
                return {}
            private_folder(folder, create=False)
        found = (path.name.partition(".") for path in folder.iterdir())
        return {
            stream: folder / f"{number}.{stream}"
            for number, _, stream in found
            if number == str(attempt) and _STREAM.fullmatch(stream)
        }


def _sync_names(made: Sequence[Path]) -> None:
    """Make new folders durable: a run that is acknowledged must not vanish with the folder that it is in."""
    for folder in made:
        try:
            sync(folder.parent)
        except OSError as error:
            raise unavailable(f"{folder} cannot be made", error) from error


def _private(folder: Path, *names: str) -> Path:
    """Return a folder below *folder*, having checked every one on the way."""
    for name in names:
        folder = private_folder(folder / name)
    return folder


def _odd(what: str, name: str) -> HostlerError:
    return HostlerError(Code.INVALID_DATA, f"{name!r} is no {what}", "give the one that `hostler show` prints")


def _run_name(run_id: str) -> str:
    if not _RUN_ID.fullmatch(run_id):
        raise _odd("run id", run_id)
    return run_id


def node_folder(key: str) -> str:
    """Return the name of the folder that a node has in the folders of its run.

    Raises:
        HostlerError: invalid-data, for a name that could lead elsewhere.

    """
    if not _KEY.fullmatch(key) or len(key) > _LONGEST_KEY:
        raise _odd("node key", key)
    return key.replace("/", "~")  # no key has a ~, so two keys never share a folder


def in_workspace(root: Path, path: Path) -> bool:
    """Say whether a path lies in a workspace that a state folder has, of whichever node.

    Args:
        root: The state folder, resolved.
        path: Likewise.

    """
    match path.relative_to(root).parts:
        case ("staging", run_id, node, plan_sha256, _, *_):
            named = _RUN_ID.fullmatch(run_id) and _KEY.fullmatch(node.replace("~", "/"))
            workspace = root / "staging" / run_id / node / plan_sha256
            return bool(named and _SHA256.fullmatch(plan_sha256)) and workspace.is_dir()
    return False


def _check_inside(root: Path) -> None:
    """Check every entry of the folder, and that no entry one level below is a link."""
    with os.scandir(root) as entries:
        for entry in entries:
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
                if not stat.S_ISDIR(mode):
                    check_private_file(Path(entry.path))
                    continue
                private_folder(Path(entry.path), create=False)
                _check_no_links(entry.path)
            except FileNotFoundError:
                continue  # a side file of the database that another process has just removed


def _check_no_links(folder: str) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                raise HostlerError(Code.UNSAFE_STATE, f"{entry.path} is a symbolic link", "remove it")
