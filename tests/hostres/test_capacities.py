"""A person changes what the machine has."""

import errno
import os
import stat
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from hostres import capacities as module
from hostres import decisions, state
from hostres.capacities import capacities, set_capacities
from hostres.claims import MAX_NAME, MAX_RESOURCES, MAX_UNITS
from hostres.coordinator import Coordinator
from hostres.decisions import Decision, DecisionFile
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.replacement import Replacement
from hostres.settings import machine_settings
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, held, holder, rows, waiting

WAITER = """
coordinator = Coordinator(FOLDER, explicit={"x": 1})
lease = coordinator.lease({"x": 1})
say("held", coordinator.safety_net_progress)
hear()
"""


def change(**changes: int | None) -> None:
    given = {name.replace("_", "-"): units for name, units in changes.items()}
    set_capacities(machine_folder(os.environ), os.environ, given)


def configuration() -> Path:
    return Path(os.environ["HOSTLER_CONFIG"])


def refused(code: Code, match: str | None = None) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, match=match, check=lambda error: error.code is code)


def shown() -> dict[str, tuple[int, int, str, int | None]]:
    found = capacities(machine_folder(os.environ), os.environ)
    return {one.name: (one.units, one.used, one.source, one.configured) for one in found.resources}


def test_raising_is_live_and_wakes_who_waits() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}), children() as start:
        waiters = [start(WAITER) for _ in range(2)]
        waiting(2)
        change(x=3)
        for waiter in waiters:
            assert waiter.line() == "held 0"
    assert "x = 3" in configuration().read_text()


def test_lowering_takes_effect_as_holders_leave() -> None:
    with coordinator(x=2) as machine, children() as start:
        one, other = machine.lease({"x": 1}), machine.lease({"x": 1})
        change(x=1)
        waiter = start(holder({"x": 1}))
        waiting(1)
        assert shown()["x"][:2] == (1, 2)
        one.release()
        other.assert_owned()
        eventually(lambda: len(rows("admitted")) == 1)
        assert waiter.silent()
        other.release()
        waiter.line()


def test_a_waiter_that_can_never_fit_any_more_is_told() -> None:
    code = """
        try:
            Coordinator(FOLDER, explicit={"x": 2}).lease({"x": 2})
        except HostlerError as error:
            say(error)
    """
    with coordinator(x=2, y=1) as machine, machine.lease({"x": 1, "y": 1}), children() as start:
        for count in (1, 2):  # so that it is none of the first two
            start(holder({"y": 1}))
            waiting(count)
        third = start(code)
        waiting(3)
        change(x=1)
        assert third.line().startswith("error[invalid-claims]: x=2 is more than the machine's 1")
        assert len(rows("waiting")) == 2


def test_an_own_resource_is_taken_away_and_a_standard_one_gets_its_default_back() -> None:
    configuration().write_text("[machine.capacity]\nx = 1\nffmpeg = 9  # many\n")
    with coordinator(x=1, ffmpeg=9) as machine:
        machine.lease({"x": 1}).release()
        change(x=None, ffmpeg=None)
        assert configuration().read_text() == "[machine.capacity]\n"
        assert "x" not in machine.capacity
        assert machine.capacity["ffmpeg"] == 2
        with refused(Code.INVALID_CLAIMS, "no resource x"):
            machine.lease({"x": 1})


def test_who_had_set_it_before_is_not_at_odds_and_who_sets_it_afterwards_is() -> None:
    with coordinator(x=1) as before, before.lease({"x": 1}):
        change(x=2)
        with before.lease({"x": 1}, wait=0), coordinator(x=1) as after:
            with refused(Code.PROFILE_MISMATCH):
                after.lease({})
            with coordinator(x=2) as agreeing:
                agreeing.lease({}).release()


@pytest.mark.parametrize("moment", ["before", "during"])
def test_who_has_read_the_configuration_before_a_person_sets_a_capacity_goes_by_the_person(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes to start: it would undo what was set, and all others would be refused from then on."""
    configuration().write_text("[machine.capacity]\nx = 3\n")
    read = [machine_settings(os.environ)]
    with Coordinator(machine_folder(os.environ), settings=read[0]) as machine:
        machine.lease({"x": 1}).release()
    if moment == "during":
        commit = Replacement.commit

        def just_before(self: Replacement) -> None:
            read[0] = machine_settings(os.environ)
            commit(self)

        monkeypatch.setattr(Replacement, "commit", just_before)
    change(x=1)
    with Coordinator(machine_folder(os.environ), settings=read[0]) as late:
        assert late.capacity["x"] == 1
        with refused(Code.INVALID_CLAIMS, "more than the machine's 1"):
            late.lease({"x": 3})
        with (
            late.lease({"x": 1}),
            Coordinator(machine_folder(os.environ), settings=machine_settings(os.environ)) as other,
        ):
            other.lease({}).release()


def test_who_reads_the_configuration_after_a_person_has_set_a_capacity_may_set_it_otherwise() -> None:
    change(x=1)
    configuration().write_text("[machine.capacity]\nx = 3\n")
    with Coordinator(machine_folder(os.environ), settings=machine_settings(os.environ)) as machine:
        machine.lease({"x": 3}).release()


def test_it_says_where_each_capacity_comes_from() -> None:
    assert shown()["ffmpeg"] == (2, 0, "default", None)
    assert not machine_folder(os.environ).exists()
    with coordinator(z=4) as machine, machine.lease({"z": 3}):
        change(ffmpeg=3)
        assert shown()["ffmpeg"] == (3, 0, "configuration", None)
        assert shown()["z"] == (4, 3, "program", None)
        configuration().write_text("[machine.capacity]\nz = 5\n")
        assert shown()["ffmpeg"] == (3, 0, "decision", None)
        assert shown()["z"] == (4, 3, "program", 5)
    assert shown()["z"] == (5, 0, "configuration", None)


def test_the_configuration_keeps_its_mode_and_stays_a_link_and_a_new_one_is_private(tmp_path: Path) -> None:
    real = tmp_path / "real" / "c.toml"
    real.parent.mkdir()
    configuration().symlink_to(real)
    change(x=1)
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    real.chmod(0o644)
    change(x=2)
    assert configuration().is_symlink()
    assert real.read_text() == "[machine.capacity]\nx = 2\n"
    assert stat.S_IMODE(real.stat().st_mode) == 0o644
    assert [path.name for path in real.parent.iterdir()] == ["c.toml"]


def test_what_a_killed_change_left_beside_the_configuration_is_removed_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But neither what another one is at work on, nor a file that is only called similarly."""
    folder = tmp_path / "etc"
    folder.mkdir()
    monkeypatch.setenv("HOSTLER_CONFIG", str(folder / "c.toml"))
    (folder / ".c.toml.d").mkdir()
    similar = [".c.toml.0123", ".c.toml.0123456789aX", "xc.toml.0123456789ab", ".c.toml.bak"]
    for name in similar:
        (folder / name).touch()
    code = """
        from pathlib import Path
        from hostres.replacement import replacement
        with replacement(Path(os.environ["HOSTLER_CONFIG"]), b"x"):
            say("written")
            hear()
    """
    with children() as start:
        at_work, killed = start(code), start(code)
        for child in (at_work, killed):
            child.line()
        assert len(list(folder.glob(".c.toml.*"))) == 2 + 4
        killed.kill()
        change(x=1)
        names = {path.name for path in folder.iterdir()} - {"c.toml", ".c.toml.d", *similar}
        assert len(names) == 1
        at_work.kill()
        change(x=2)
        assert {path.name for path in folder.iterdir()} == {"c.toml", ".c.toml.d", *similar}


def test_nothing_is_changed_when_the_configuration_cannot_be(tmp_path: Path) -> None:
    configuration().write_text("[machine.capacity]\nx = 1\n[broken")
    with coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
        with refused(Code.INVALID_DATA):
            change(x=5)
        configuration().unlink()
        configuration().mkdir()
        with refused(Code.UNAVAILABLE):
            change(x=5)
        assert machine.capacity["x"] == 1


@pytest.mark.parametrize("text", ["[machine.capacity]\nx = 1\n", None], ids=["changed", "new"])
@pytest.mark.parametrize("kind", [state, decisions], ids=["state", "decisions"])
@pytest.mark.parametrize("step", ["write_new", "os"])
def test_nothing_is_changed_when_what_is_in_force_cannot_be(
    kind: ModuleType, step: str, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, and a file that cannot be renamed."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if text is not None:
        configuration().write_text(text)
    with coordinator(x=1) as machine, held(machine.lease({"x": 1})), coordinator(x=1) as other:
        with monkeypatch.context() as broken:
            broken.setattr(kind, step, refuse if step == "write_new" else Renameless(refuse))
            with refused(Code.UNAVAILABLE, "nothing was changed"):
                change(x=5, y=1)
        assert (configuration().read_text() if configuration().exists() else None) == text
        assert [path.name for path in configuration().parent.glob(".*")] == []
        assert list(machine_folder(os.environ).glob(".new*")) == []
        assert machine.capacity["x"] == 1
        with refused(Code.WAIT_TIMEOUT):
            other.lease({"x": 1}, wait=0)


def test_it_says_so_when_the_configuration_cannot_be_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    change(x=1)
    monkeypatch.setattr(state, "os", Renameless(refuse))
    monkeypatch.setattr(Replacement, "undo", refuse)
    with refused(Code.UNAVAILABLE, "the configuration was changed, what is in force was not"):
        change(x=5)


class Renameless:
    """The module `os`, but for its rename."""

    def __init__(self, rename: Callable[..., None]) -> None:
        self.rename = rename

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


@pytest.mark.parametrize("changes", [{"Bad": 1}, {"x": -1}, {"x": 2**60}])
def test_what_is_no_capacity_is_refused(changes: dict[str, int | None]) -> None:
    with refused(Code.INVALID_DATA):
        set_capacities(machine_folder(os.environ), os.environ, changes)
    assert not machine_folder(os.environ).exists()


def long_names(count: int) -> dict[str, int]:
    return {f"{number:03d}".rjust(MAX_NAME, "r"): MAX_UNITS for number in range(count)}


def test_as_many_resources_as_a_configuration_may_set_can_be_agreed_on_and_decided() -> None:
    set_capacities(machine_folder(os.environ), os.environ, long_names(MAX_RESOURCES - 1))
    change(x=1)
    with coordinator() as machine:
        machine.lease({"x": 1}).release()
    change(x=2)
    assert DecisionFile(str(machine_folder(os.environ))).read()["x"].units == 2


def test_more_than_anybody_would_read_is_refused_before_it_is_written() -> None:
    with coordinator(**long_names(300)) as machine, refused(Code.INVALID_PROFILE, "31[0-9] resources"):
        machine.lease({})
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        with refused(Code.INVALID_PROFILE, "300 resources"):
            set_capacities(machine_folder(os.environ), os.environ, long_names(300))
        assert not configuration().exists()
        assert "x" in shown()


def test_a_resource_that_nobody_has_set_cannot_be_taken_back() -> None:
    change(x=1)
    with refused(Code.NOT_FOUND, "no resource nope"):
        change(nope=None, x=2)
    assert shown()["x"][0] == 1
    configuration().write_text("[machine.capacity]\nx = 1\ny = 2\n")  # y is not in force yet
    change(y=None, ffmpeg=None)
    assert configuration().read_text() == "[machine.capacity]\nx = 1\n"


def test_a_configuration_keeps_its_byte_order_mark() -> None:
    configuration().write_text("[machine.capacity]\nx = 1\n", encoding="utf-8-sig")
    change(x=2)
    assert configuration().read_bytes() == b"\xef\xbb\xbf[machine.capacity]\nx = 2\n"


def test_two_that_change_different_capacities_at_once_both_succeed() -> None:
    names = [f"r{number}" for number in range(6)]
    threads = [threading.Thread(target=partial(change, **{name: 3})) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert {name: shown()[name] for name in names} == dict.fromkeys(names, (3, 0, "configuration", None))


def test_a_configuration_that_changes_all_the_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    counter = iter(range(1000))
    monkeypatch.setattr(module, "_stamp", lambda _: (next(counter), 0, 0))
    configuration().touch()
    with refused(Code.CONFLICT):
        change(x=1)
    assert configuration().read_text() == ""


def test_decisions_of_another_boot_or_a_damaged_file_count_for_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    file = DecisionFile(str(tmp_path))
    assert file.read() == {}
    file.write({"x": Decision(units=1, boot_ns=5), "y": Decision(units=None, boot_ns=6)})
    assert file.read() == {"x": Decision(units=1, boot_ns=5), "y": Decision(units=None, boot_ns=6)}
    text = Path(file.place).read_text()
    Path(file.place).write_text(text.replace('"boot": "', '"boot": "0'))
    assert file.read() == {}
    Path(file.place).write_text(text.replace('"units": 1', '"units": -1'))
    assert file.read() == {"y": Decision(units=None, boot_ns=6)}
    Path(file.place).write_text(text[:-9])
    assert file.read() == {}
