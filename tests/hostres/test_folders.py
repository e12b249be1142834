"""Private folders and files: ours and closed, or refused with the mend."""

import os
import pwd
import stat
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from hostres.folders import (
    check_private_file,
    file_system_type,
    machine_folder,
    open_private,
    private_folder,
    refuse_network_file_system,
)


def refused(code: Code = Code.UNSAFE_STATE, match: str | None = None) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, match=match, check=lambda error: error.code is code)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> "object":
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_a_new_folder_and_its_new_parents_are_private_whatever_the_umask(tmp_path: Path, umask: object) -> None:
    folder = private_folder(tmp_path / "a" / "b")
    assert mode(folder) == mode(folder.parent) == 0o700


def test_a_new_file_is_private_whatever_the_umask(tmp_path: Path, umask: object) -> None:
    fd = open_private(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    assert not os.get_inheritable(fd)
    os.close(fd)
    assert mode(tmp_path / "file") == 0o600


def test_a_folder_open_to_others_is_refused_with_the_mend(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o755)
    with refused(match=f"mode 0755.*chmod 700 {tmp_path}/folder"):
        private_folder(tmp_path / "folder")


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Field case 97."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    with refused(match="symbolic link"):
        private_folder(tmp_path / "folder")


def test_a_dangling_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").symlink_to(tmp_path / "nowhere")
    with refused(match="symbolic link"):
        private_folder(tmp_path / "folder")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").touch()
    with refused(match="not a folder"):
        private_folder(tmp_path / "folder")
    with refused(match="not a folder"):
        private_folder(tmp_path / "folder" / "below")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")
def test_what_belongs_to_somebody_else_is_refused(tmp_path: Path) -> None:
    """Field case 97."""
    (tmp_path / "folder").mkdir(mode=0o700)
    (tmp_path / "file").touch(mode=0o600)
    os.chown(tmp_path / "folder", 12345, -1)
    os.chown(tmp_path / "file", 12345, -1)
    with refused(match="user id 12345"):
        private_folder(tmp_path / "folder")
    with refused(match="user id 12345"):
        check_private_file(tmp_path / "file")


def test_a_missing_folder_that_must_not_be_made_is_not_found(tmp_path: Path) -> None:
    with refused(Code.NOT_FOUND):
        private_folder(tmp_path / "folder", create=False)
    assert not (tmp_path / "folder").exists()


def test_private_files_are_closed_single_and_no_links(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch(mode=0o600)
    assert check_private_file(file).st_size == 0
    file.chmod(0o644)
    with refused(match="chmod 600"):
        check_private_file(file)
    with refused(match="chmod 600"):
        open_private(file, os.O_RDONLY)
    file.chmod(0o600)
    (tmp_path / "other").hardlink_to(file)
    with refused(match="2 names"):
        open_private(file, os.O_RDWR | os.O_CREAT)
    (tmp_path / "link").symlink_to(file)
    with refused(match="symbolic link"):
        open_private(tmp_path / "link", os.O_RDWR | os.O_CREAT)
    with refused(match="symbolic link"):
        check_private_file(tmp_path / "link")
    with refused(match="neither"):
        check_private_file(tmp_path)


def test_a_refused_file_is_not_opened_for_writing_anew(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with refused():
        open_private(tmp_path / "link", os.O_RDWR | os.O_CREAT)
    assert not (tmp_path / "nowhere").exists()


def test_an_existing_file_is_not_made_exclusively(tmp_path: Path) -> None:
    (tmp_path / "file").touch(mode=0o600)
    with pytest.raises(FileExistsError):
        open_private(tmp_path / "file", os.O_WRONLY | os.O_CREAT | os.O_EXCL)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
def test_a_network_file_system_is_refused(tmp_path: Path, kind: str) -> None:
    with refused(match=kind):
        refuse_network_file_system(tmp_path, file_system=lambda _: kind)


def test_a_local_file_system_is_not_refused(tmp_path: Path) -> None:
    refuse_network_file_system(tmp_path)
    assert file_system_type(Path("/proc/self")) == "proc"


def test_the_machine_folder_depends_on_the_user_alone() -> None:
    home = pwd.getpwuid(os.geteuid()).pw_dir
    expected = Path(home) / ".local/state/hostler/admission"
    assert machine_folder({}) == expected
    assert machine_folder({"HOME": "/elsewhere", "XDG_STATE_HOME": "/x", "HOSTLER_HOME": "/y"}) == expected
    assert machine_folder({"HOSTLER_MACHINE_DIR": "/z"}) == Path("/z")


@pytest.mark.parametrize("place", ["adm", "./adm", "../adm", "~/adm", "~"])
def test_a_machine_folder_that_depends_on_where_a_program_starts_is_refused(place: str) -> None:
    with refused(Code.INVALID_DATA, "absolute path"):
        machine_folder({"HOSTLER_MACHINE_DIR": place})
