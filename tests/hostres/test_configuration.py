"""The capacities of the configuration file."""

import grp
import os
import pwd
import socket
from pathlib import Path
from types import SimpleNamespace

import pytest

from hostres.configuration import MAX_BYTES, configuration_path
from hostres.errors import Code, HostlerError
from hostres.settings import machine_capacity


def capacity(tmp_path: Path, text: str, mode: int = 0o644) -> object:
    path = tmp_path / "some.toml"
    path.write_text(text)
    path.chmod(mode)
    return machine_capacity({"HOSTLER_CONFIG": str(path)})


def test_the_keys_of_the_table_are_the_explicit_capacities(tmp_path: Path) -> None:
    assert capacity(tmp_path, "[machine.capacity]\nx = 1\nvideo-encode = 0\n") == {"x": 1, "video-encode": 0}
    assert capacity(tmp_path, "[service]\n") == {}


def test_a_missing_file_is_an_empty_one(tmp_path: Path) -> None:
    assert machine_capacity({"HOSTLER_CONFIG": str(tmp_path / "no" / "file")}) == {}
    assert machine_capacity({"HOME": str(tmp_path)}) == {}


def test_a_link_is_followed(tmp_path: Path) -> None:
    capacity(tmp_path, "machine.capacity.x = 1")
    (tmp_path / "link").symlink_to("some.toml")
    assert machine_capacity({"HOSTLER_CONFIG": str(tmp_path / "link")}) == {"x": 1}


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    """Reading it would wait for whoever writes it, or never end."""
    path = tmp_path / "some.toml"
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "FIFO":
            os.mkfifo(path, 0o600)
        elif kind == "socket":
            listener.bind(str(path))
        else:
            path.symlink_to("/dev/zero")
        with pytest.raises(HostlerError, match="regular file", check=lambda error: error.code is Code.INVALID_DATA):
            machine_capacity({"HOSTLER_CONFIG": str(path)})


def test_what_is_far_too_large_is_refused_unread_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text("# x\n" * (MAX_BYTES // 4))
    assert machine_capacity({"HOSTLER_CONFIG": str(path)}) == {}
    with path.open("r+b") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(
        HostlerError, match=r"some\.toml has 1048577 bytes", check=lambda error: error.code is Code.INVALID_DATA
    ):
        machine_capacity({"HOSTLER_CONFIG": str(path)})
    os.truncate(path, 1 << 36)
    with pytest.raises(HostlerError, match="68719476736 bytes"):
        machine_capacity({"HOSTLER_CONFIG": str(path)})


def test_more_resources_than_the_machine_can_agree_on_are_refused_with_their_number(tmp_path: Path) -> None:
    with pytest.raises(HostlerError, match="201 resources", check=lambda error: error.code is Code.INVALID_PROFILE):
        capacity(tmp_path, "[machine.capacity]\n" + "".join(f"r{number} = 1\n" for number in range(201)))


def test_a_byte_order_mark_is_no_part_of_it(tmp_path: Path) -> None:
    assert capacity(tmp_path, "\ufeff[machine.capacity]\nx = 1\n") == {"x": 1}


def test_a_group_that_does_not_exist_is_refused_wherever_the_machine_folder_stands(tmp_path: Path) -> None:
    with pytest.raises(
        HostlerError, match="no group no-such-group", check=lambda error: error.code is Code.INVALID_PROFILE
    ):
        capacity(tmp_path, 'machine.group = "no-such-group"')
    name = grp.getgrgid(os.getegid()).gr_name
    assert capacity(tmp_path, f'machine.group = "{name}"') == {}


def groups(monkeypatch: pytest.MonkeyPatch, *, name: str, primary: int, members: tuple[str, ...] = ()) -> None:
    """Let the test's user be `me`, and the group of its files be the given one."""
    gid = os.getegid()
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_name="me", pw_gid=primary))
    monkeypatch.setattr(grp, "getgrgid", lambda _: SimpleNamespace(gr_name=name, gr_gid=gid, gr_mem=list(members)))


def test_the_owner_s_own_group_may_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups(monkeypatch, name="me", primary=os.getegid(), members=("me",))
    assert capacity(tmp_path, "machine.capacity.x = 1", 0o664) == {"x": 1}


@pytest.mark.parametrize(
    ("name", "other", "members"),
    [("staff", 0, ()), ("me", 1, ()), ("me", 0, ("me", "you"))],
    ids=["name", "gid", "members"],
)
def test_any_other_group_may_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, other: int, members: tuple[str, ...]
) -> None:
    groups(monkeypatch, name=name, primary=os.getegid() + other, members=members)
    with pytest.raises(HostlerError, match="chmod go-w", check=lambda error: error.code is Code.UNSAFE_STATE):
        capacity(tmp_path, "", 0o664)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")
def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    capacity(tmp_path, "")
    os.chown(tmp_path / "some.toml", 12345, -1)
    with pytest.raises(HostlerError, match="user id 12345", check=lambda error: error.code is Code.UNSAFE_STATE):
        machine_capacity({"HOSTLER_CONFIG": str(tmp_path / "some.toml")})


@pytest.mark.parametrize("text", ["[machine.capactiy]\nx = 1", "[machine]\ncapcity.x = 1", "machine.capasity = 1"])
def test_an_unknown_key_is_refused_with_the_nearest_known_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        HostlerError, match=r"did you mean machine\.capacity\?$", check=lambda error: error.code is Code.INVALID_DATA
    ):
        capacity(tmp_path, text)


@pytest.mark.parametrize("text", ["machine.group = 5", 'machine.group = ""'])
def test_what_is_no_group_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(HostlerError, match="group", check=lambda error: error.code is Code.INVALID_PROFILE):
        capacity(tmp_path, text)


@pytest.mark.parametrize("mode", [0o622, 0o646, 0o666])
def test_a_file_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(HostlerError, match="chmod go-w", check=lambda error: error.code is Code.UNSAFE_STATE):
        capacity(tmp_path, "", mode)


@pytest.mark.parametrize(
    "text", ["machine = 1", "machine.capacity = 1", "machine.capacity.x = -1", "machine.capacity.x = true"]
)
def test_what_is_no_capacity_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.INVALID_PROFILE):
        capacity(tmp_path, text)


@pytest.mark.parametrize("text", ["x = ", "\x00"])
def test_what_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(HostlerError, match=r"some\.toml", check=lambda error: error.code is Code.INVALID_DATA):
        capacity(tmp_path, text)


def test_the_file_lies_where_the_platform_keeps_configurations() -> None:
    assert configuration_path({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == Path("/x/hostler/config.toml")
    assert configuration_path({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}) == Path("/h/.config/hostler/config.toml")
    assert configuration_path({"HOSTLER_CONFIG": "/c.toml", "HOME": "/h"}) == Path("/c.toml")
