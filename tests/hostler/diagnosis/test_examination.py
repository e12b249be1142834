"""A report is always given: whatever cannot be looked at is a finding of its part, and all others are looked at."""

import errno
import grp
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostler.config import Config
from hostler.diagnosis import examination
from hostler.diagnosis.examination import Examination, examine
from hostler.diagnosis.findings import Finding
from hostler.diagnosis.machine import look_at_machine
from hostres.capacities import set_capacities
from hostres.folders import machine_folder
from store.home import Home

ALL = {"hostler", "python", "configuration", "home", "machine", "clock", "limits", "tools"}
"""Parts of which there is always at least one line; that of `tools` is the test's own."""


@pytest.fixture(autouse=True)
def no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run no ffmpeg, which takes most of the time."""
    monkeypatch.setattr(examination, "look_at_tools", lambda _: [Finding(name="tools", said="not looked at")])


@pytest.fixture
def places() -> tuple[Path, Path]:
    """Give a state folder and a machine folder that are there and were used."""
    set_capacities(machine_folder(os.environ), os.environ, {"x": 1})
    return Home.open(Path(os.environ["HOSTLER_HOME"]), create=True).root, Path(os.environ["HOSTLER_MACHINE_DIR"])


def wrong(found: Examination) -> list[Finding]:
    """Return what is wrong, of a report that leaves nothing out and that programs can read."""
    assert {finding.name for finding in found.findings} >= ALL
    assert json.loads(json.dumps(found.to_json()))["ok"] is not any(one.exit_code for one in found.findings)
    return [finding for finding in found.findings if finding.exit_code]


def file_in_place_of(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    path.touch(mode=0o600)


def folder_in_place_of(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir(mode=0o700)


DAMAGES: dict[str, Callable[[Path, Path], None]] = {
    "home": lambda home, _: file_in_place_of(home),
    "home/content": lambda home, _: file_in_place_of(home / "content"),
    "home/staging": lambda home, _: file_in_place_of(home / "staging"),
    "home/hosts": lambda home, _: file_in_place_of(home / "hosts"),
    "home/runs.db": lambda home, _: folder_in_place_of(home / "runs.db"),
    "machine": lambda _, machine: file_in_place_of(machine),
    "machine/t": lambda _, machine: file_in_place_of(machine / "t"),
    "machine/state.json": lambda _, machine: folder_in_place_of(machine / "state.json"),
    "machine/gate": lambda _, machine: folder_in_place_of(machine / "gate"),
    "machine/decisions.json": lambda _, machine: folder_in_place_of(machine / "decisions.json"),
    "machine/decisions.json/large": lambda _, machine: os.truncate(machine / "decisions.json", 1 << 36),
    "configuration": lambda home, _: folder_in_place_of(Path(os.environ["HOSTLER_CONFIG"])),
}


@pytest.mark.parametrize("call", ["open", "write"])
def test_a_disk_that_takes_nothing_of_admission_is_wrong(
    call: str, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read as ok, while whoever asked was refused."""

    def look() -> list[Finding]:
        return [one for one in look_at_machine(Config.load(), os.environ) if one.exit_code]

    as_before = getattr(os, call)

    def full(what: object, *more: object) -> object:
        if call == "write" or ".new." in str(what):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return as_before(what, *more)

    before = sorted(places[1].rglob("*"))
    assert look() == []
    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        (found,) = look()
    assert "nobody can be admitted" in found.said
    assert "free some space" in found.todo
    assert sorted(places[1].rglob("*")) == before


def test_a_machine_folder_that_no_other_container_sees_is_noted(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hostler.diagnosis.machine.file_system_type", lambda _: "ext4")
    assert next(look_at_machine(Config.load(), os.environ)).todo == ""
    monkeypatch.setattr("hostler.diagnosis.machine.file_system_type", lambda _: "overlay")
    found = next(look_at_machine(Config.load(), os.environ))
    assert "on overlay file system, which is a layer of a container" in found.said
    assert "name it in HOSTLER_MACHINE_DIR" in found.todo


def test_a_user_without_a_home_has_no_service_and_that_is_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a bug of Hostler, though all places that count were named."""
    monkeypatch.delenv("HOME", raising=False)

    def nobody(_: int) -> None:
        raise KeyError

    monkeypatch.setattr("pwd.getpwuid", nobody)
    (found,) = [one for one in examine().findings if one.name == "service"]
    assert found.said == "none runs; none is needed"


def test_a_machine_folder_that_is_shared_is_not_called_private(places: tuple[Path, Path]) -> None:
    group = grp.getgrgid(os.getegid()).gr_name
    for path in (places[1], *places[1].rglob("*")):
        path.chmod(0o2770 if path.is_dir() else 0o660)
    Path(os.environ["HOSTLER_CONFIG"]).write_text(f'machine.group = "{group}"\n')
    said = next(look_at_machine(Config.load(), os.environ)).said
    assert f": shared with the group {group}, on " in said


IN: dict[str, set[str]] = {"home": {"runs", "service"}, "machine": set(), "configuration": set()}
"""Parts that lie in another one."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_lies_in_place_of_something_else_is_wrong_in_its_part(damage: str, places: tuple[Path, Path]) -> None:
    """It may be in the way of several looks; what each has to say is said once."""
    DAMAGES[damage](*places)
    found, part = wrong(examine()), damage.partition("/")[0]
    assert {part} <= {one.name for one in found} <= {part, *IN[part]}
    assert all(one.todo for one in found)
    assert len({one.said for one in found}) == len(found)


@pytest.mark.parametrize(
    ("variable", "value", "part"),
    [("HOSTLER_HOME", "~no-such-user/x", "home"), ("HOSTLER_MACHINE_DIR", "x", "machine")],
)
def test_a_folder_that_cannot_be_named_is_wrong_and_the_rest_is_looked_at(
    variable: str, value: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not shown as if another one were in force, either."""
    monkeypatch.setenv(variable, value)
    found = examine()
    (one,) = [finding for finding in found.findings if finding.exit_code]
    assert (one.name, variable in one.said) == (part, True)
    assert {finding.name for finding in found.findings} >= ALL
    assert variable not in {setting.key for setting in found.settings}
    assert "machine.nice" in {setting.key for setting in found.settings}


def test_a_relative_folder_is_wrong_where_the_current_one_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("HOSTLER_HOME", "x")
    (one,) = wrong(examine())
    assert (one.name, one.todo) == ("home", "change to one that exists")


@pytest.mark.parametrize(
    ("error", "says"),
    [(PermissionError(13, "Permission denied", "/x/y"), "permission denied (/x/y)"), (KeyError("k"), "internal: Key")],
)
def test_whatever_a_look_meets_is_a_finding(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch, places: tuple[Path, Path]
) -> None:
    """After what it has found by then."""

    def look(_: object) -> Iterator[Finding]:
        yield Finding(name="runs", said="two stored")
        raise error

    monkeypatch.setattr(examination, "look_at_runs", look)
    (one,) = wrong(examine())
    assert says in one.said
    assert "two stored" in [finding.said for finding in examine().findings]


CLOSED = ["home", "home/logs", "machine", "machine/t", "machine/state.json", "machine/gate", "machine/decisions.json"]


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root may open everything")
def test_what_its_own_mode_closes_is_told_with_the_command_that_opens_it(places: tuple[Path, Path]) -> None:
    """To whoever is not root; each in turn, in one process."""
    code = f"""
import os
from pathlib import Path
from hostler.diagnosis import examination
examination.look_at_tools = lambda _: []
examination.look_at_disk.__globals__["measure"] = lambda _: None
examination.look_at_disk.__globals__["told_floor"] = lambda _: []
for name in {CLOSED!r}:
    place, _, inner = name.partition("/")
    path = Path({{"home": {str(places[0])!r}, "machine": {str(places[1])!r}}}[place], inner)
    mode = path.stat().st_mode & 0o777
    path.chmod(0)
    found = [one for one in examination.examine().findings if one.exit_code]
    path.chmod(mode)
    print(name, place in {{one.name for one in found}}, {{one.todo for one in found}} == {{f"chmod u+rwX {{path}}"}})
"""
    drop = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
    done = subprocess.run([*drop, sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{name} True True" for name in CLOSED]
