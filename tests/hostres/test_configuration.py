"""The capacities of the configuration file."""

from pathlib import Path

import pytest

from hostres.configuration import configuration_path, machine_capacity
from hostres.errors import Code, HostlerError


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


@pytest.mark.parametrize("mode", [0o622, 0o646, 0o664])
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
