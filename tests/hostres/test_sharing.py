"""A machine folder that several users share."""

import codecs
import errno
import grp
import os
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from hostres import folders, sharing
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder, private_folder
from hostres.inspection import inspect
from hostres.pulse import FILE as PULSE
from hostres.pulse import Pulse
from hostres.revocation import revoke
from hostres.top import snapshot
from tests.hostres.support import LIMIT_S, coordinator, rows, waiting

GROUP = next((group for group in grp.getgrall() if group.gr_gid not in (0, os.getegid())), None)
GID = GROUP.gr_gid if GROUP else -1
GROUP_NAME = GROUP.gr_name if GROUP else ""

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or GROUP is None, reason="only root can become somebody else")

NAMELESS = max(group.gr_gid for group in grp.getgrall() if group.gr_gid < 60_000) + 1
LOADED = (psutil, sharing, codecs.lookup("ascii"), codecs.lookup("unicode_escape"))
"""Here and now, as the other users may be unable to read this installation."""


@pytest.fixture(autouse=True)
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that all users can reach, shared with a group by configuration."""
    assert GROUP is not None
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o711)
        folder = root / "machine"
        folder.mkdir()
        share(folder)
        monkeypatch.setenv("HOSTLER_MACHINE_DIR", str(folder))
        monkeypatch.setenv("HOSTLER_CONFIG", str(root / "config.toml"))
        (root / "config.toml").write_text(f'[machine]\ngroup = "{GROUP.gr_name}"\ncapacity.x = 1\n')
        yield folder


def share(folder: Path, mode: int = 0o2770, gid: int = GID) -> None:
    os.chown(folder, -1, gid)
    folder.chmod(mode)


def refused(match: str, code: Code = Code.UNSAFE_STATE) -> "pytest.RaisesExc[HostlerError]":
    return pytest.raises(HostlerError, match=match, check=lambda error: error.code is code)


Hear = Callable[[], object]
Say = Callable[[object], object]


@contextmanager
def user(number: int, work: Callable[[Hear, Say], None], *groups: int) -> "Iterator[tuple[Callable[[], str], Hear]]":
    """Do *work* as another user in a child; it hears and says, and so do we."""
    ours, theirs = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups(groups)
            os.setgid(number)
            os.setuid(number)
            work(lambda: os.read(theirs[0], 1), lambda text: os.write(ours[1], f"{text}\n".encode()))
            code = 0
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(ours[1])
    with os.fdopen(ours[0]) as said:
        try:
            yield lambda: said.readline().strip(), lambda: os.write(theirs[1], b"x")
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        finally:
            os.close(theirs[0])
            os.close(theirs[1])


def test_users_of_the_group_wait_for_each_other(shared: Path) -> None:
    def hold(hear: Hear, say: Say) -> None:
        os.umask(0o077)
        with coordinator(x=1) as machine:
            lease = machine.lease({"x": 1}, name="hers")
            say(lease.ticket)
            hear()
            lease.release()
            hear()

    def wait(hear: Hear, say: Say) -> None:
        with coordinator() as machine:
            try:
                machine.lease({"x": 1}, wait=0)
            except HostlerError as error:
                say(error)
            machine.lease({"x": 1}, wait=LIMIT_S).release()
            say(machine.safety_net_progress)

    with user(12345, hold, GID) as (said, go):
        ticket = said()
        with user(12346, wait, GID) as (answer, _):
            assert f"held by ticket {ticket}" in answer()
            waiting(1)
            assert [(row.state, row.owner) for row in rows()] == [("admitted", 12345), ("waiting", 12346)]
            go()
            assert answer() == "0"
        go()
    modes = {path.name.split(".")[-1]: stat.S_IMODE(path.lstat().st_mode) for path in shared.rglob("*")}
    assert modes.pop("t") == 0o2770
    assert set(modes.values()) == {0o660}
    assert {path.lstat().st_gid for path in shared.rglob("*")} == {GID}


def test_the_gate_is_open_to_all_from_the_first_moment(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that began at once met the gate of the one before the umask was undone, and the other was refused."""
    seen = []

    def modes() -> list[int]:
        return [stat.S_IMODE(path.lstat().st_mode) for path in shared.glob("gate")]

    def changed(fd: int, mode: int) -> None:
        seen.extend(modes())
        fchmod(fd, mode)

    fchmod = os.fchmod
    umask = os.umask(0o077)
    try:
        monkeypatch.setattr(os, "fchmod", changed)
        with coordinator(x=1) as machine:
            machine.lease({"x": 1}).release()
    finally:
        os.umask(umask)
    assert {*seen, *modes()} == {0o660}
    assert (shared / "gate").lstat().st_gid == GID


def test_a_file_system_without_nameless_files_will_do(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(path: Any, flags: int, *mode: int, **at: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return open_(path, flags, *mode, **at)

    open_ = os.open
    monkeypatch.setattr(os, "open", opened)
    with coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
    assert stat.S_IMODE((shared / "gate").lstat().st_mode) == 0o660


def test_each_user_leaves_the_sign_that_somebody_looks_after_the_line(shared: Path) -> None:
    """Only whose file it was could, so that all that waited behind another user looked."""

    def look_after(hear: Hear, say: Say) -> None:
        private_folder(shared)
        pulse = Pulse()
        pulse.place = str(shared / PULSE)
        pulse.due(3600.0, 1)
        pulse.leave(again=True)
        say((pulse.missed(), os.stat(pulse.place).st_uid))

    for number in (12345, 12346, 12345):
        with user(number, look_after, GID) as (said, _):
            assert said() == f"(False, {number})"
        os.utime(shared / PULSE, ns=(0, 0))
    assert [path.name for path in shared.iterdir()] == [PULSE]


def test_one_outside_the_group_is_kept_out_by_the_system(shared: Path) -> None:
    def ask(_: Hear, say: Say) -> None:
        try:
            coordinator().lease({"x": 1})
        except HostlerError as error:
            say(error)

    for owner in (0, 12345):  # who made it may have left the group
        os.chown(shared, owner, -1)
        share(shared)
        with user(12345, ask) as (said, _):
            assert f"unavailable]: {shared} is shared with the group {GROUP_NAME}, of which" in said()


def test_without_the_configuration_it_is_refused_and_nobody_is_told_to_close_it_to_the_others(shared: Path) -> None:
    """The owner was told `chmod 700`, and others that it was not theirs."""

    def ask(_: Hear, say: Say) -> None:
        try:
            coordinator()
        except HostlerError as error:
            say(error)

    Path(os.environ["HOSTLER_CONFIG"]).write_text("")
    told = f'the configuration does not say so; write group = "{GROUP_NAME}" under \\[machine\\]'
    with refused(told) as caught:
        coordinator()
    assert "chmod" not in str(caught.value)
    with refused(told):
        snapshot(machine_folder(os.environ))
    with user(12345, ask, GID) as (said, _):
        assert said() == str(caught.value)
    share(shared, gid=NAMELESS)
    with refused(f"the group id {NAMELESS} .*/etc/group"):
        coordinator()
    share(shared, 0o770)
    with refused("chmod 700"):
        coordinator()


@pytest.mark.parametrize("mode", [0o770, 0o2750, 0o3770])
def test_with_another_mode_it_is_refused(shared: Path, mode: int) -> None:
    share(shared, mode)
    with refused("chmod 2770"):
        coordinator()


def test_open_to_all_or_with_another_group_it_is_refused(shared: Path) -> None:
    share(shared, 0o2777)
    with refused("open to others"):
        coordinator()
    share(shared, gid=GID + 1)
    with refused("chgrp"):
        coordinator()


def test_no_other_folder_is_shared(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    share(tmp_path / "home")
    with refused("chmod 700"):
        private_folder(tmp_path / "home")


def test_what_became_unshared_is_noticed(shared: Path) -> None:
    with coordinator() as machine:
        machine.lease({}).release()
        (shared / "t").chmod(0o2777)
        with refused("open to others"):
            machine.lease({})
        (shared / "t").chmod(0o2770)
        (shared / "state.json").chmod(0o666)
        with refused("chmod 660"):
            coordinator().lease({})


def test_a_group_that_does_not_exist_is_named() -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text('machine.group = "no-such-group"')
    with refused("no-such-group", Code.INVALID_PROFILE):
        coordinator()


def test_a_private_folder_stays_private_whatever_the_configuration_says(shared: Path) -> None:
    shared.rmdir()
    with coordinator(x=1) as machine:
        machine.lease({"x": 1}).release()
    assert {stat.S_IMODE(path.lstat().st_mode) for path in (shared, shared / "t")} == {0o700}


@pytest.mark.parametrize("below", ["t", "revoked"])
def test_a_folder_below_with_another_mode_is_all_that_is_wrong(shared: Path, below: str) -> None:
    """Each file in it was called open to others, to be closed to those who share it."""
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as taken:
        revoke(shared, taken.ticket)
        with machine.lease({"x": 1}):
            assert [finding for finding in inspect(shared) if finding.code] == []
            folders._shared.clear()  # as in a program that begins
            (shared / below).chmod(0o3770)
            (finding,) = [finding for finding in inspect(shared) if finding.code]
            assert finding.todo.endswith(f"chmod 2770 {shared / below}")
