"""What is said of a folder that is open to others: never to close one that is there for others too."""

import os
from pathlib import Path

import pytest

from hostres.errors import Code
from hostres.folders import private_folder
from hostres.open_folders import ANOTHER
from tests.hostres.support import coordinator, refused


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder that is open to all, in another one that is."""
    tmp_path.chmod(0o755)
    place = tmp_path / "place"
    place.mkdir(mode=0o755)
    return place


def test_an_empty_one_and_one_of_ours_may_be_closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refused(Code.UNSAFE_STATE, f"chmod 700 {folder}$"):
        private_folder(folder)
    folder.chmod(0o700)
    monkeypatch.setenv("HOSTLER_MACHINE_DIR", str(folder))
    with coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
    folder.chmod(0o755)
    with refused(Code.UNSAFE_STATE, f"chmod 700 {folder}$"):
        private_folder(folder)


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_one_that_holds_what_is_not_ours_is_left_as_it_is(folder: Path, mode: int) -> None:
    """It may be /tmp, the home folder, or /sys."""
    (folder / "state.json").touch()
    (folder / "letters").touch()
    folder.chmod(mode)
    with refused(Code.UNSAFE_STATE, f"mode {mode:04o}.; {ANOTHER}$"):
        private_folder(folder)


def test_one_that_nobody_else_can_get_at_may_be_closed_whatever_it_holds(folder: Path) -> None:
    """As those in a machine folder, or in the state folder."""
    inner = folder / "inner"
    inner.mkdir(mode=0o755)
    (inner / "letters").touch()
    with refused(Code.UNSAFE_STATE, ANOTHER):
        private_folder(inner)
    folder.chmod(0o700)
    with refused(Code.UNSAFE_STATE, f"chmod 700 {inner}$"):
        private_folder(inner)


def test_one_of_somebody_else_is_not_to_be_closed() -> None:
    if os.lstat("/proc").st_uid != os.geteuid():
        with refused(Code.UNSAFE_STATE, "use a folder of your own"):
            private_folder(Path("/proc"))
    else:
        with refused(Code.UNSAFE_STATE, ANOTHER):
            private_folder(Path("/proc"))
