"""Hosts: alive as long as the kernel holds their lock."""

import os
import select
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.hosts import HostIdentity, host_alive, known_hosts, wake
from tests.store.support import Setting, assert_refused


def test_a_host_lives_until_it_is_closed_and_its_id_is_never_used_again(setting: Setting) -> None:
    identity = HostIdentity.register(setting.home)
    assert host_alive(setting.home, identity.host_id)
    assert identity.still_there()
    identity.close()
    identity.close()
    assert not host_alive(setting.home, identity.host_id)
    assert identity.host_id not in known_hosts(setting.home)
    other = HostIdentity.register(setting.home)
    assert other.host_id != identity.host_id
    other.close()


def test_a_byte_wakes_the_host(setting: Setting) -> None:
    fd = setting.identity.fd
    assert select.select([fd], [], [], 0)[0] == []
    assert wake(setting.home, setting.identity.host_id)
    assert select.select([fd], [], [], 5)[0] == [fd]
    setting.identity.drain()
    assert select.select([fd], [], [], 0)[0] == []


def test_a_dead_or_made_up_host_cannot_be_woken(setting: Setting) -> None:
    identity = HostIdentity.register(setting.home)
    identity.close()
    assert not wake(setting.home, identity.host_id)
    for name in ("../runs.db", "", "host_x"):
        assert not wake(setting.home, name)
        assert not host_alive(setting.home, name)


def test_a_host_notices_that_its_file_is_gone_or_replaced(setting: Setting) -> None:
    place = setting.home.hosts / setting.identity.host_id
    place.unlink()
    assert not setting.identity.still_there()
    os.mkfifo(place, 0o600)
    assert not setting.identity.still_there()
    assert not host_alive(setting.home, setting.identity.host_id)


def test_a_host_whose_file_is_gone_cannot_claim(setting: Setting) -> None:
    run = setting.created()
    (setting.home.hosts / setting.identity.host_id).unlink()
    with pytest.raises(HostlerError) as caught:
        setting.store.claim(run, setting.identity)
    assert_refused(caught.value, Code.OWNERSHIP_LOST, setting.identity.host_id)


def test_a_forked_child_does_not_keep_its_parents_host_alive(setting: Setting) -> None:
    identity = HostIdentity.register(setting.home)
    place = setting.home.hosts / identity.host_id
    started, is_started = os.pipe()
    may_end, end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end)
        os.write(is_started, b"x" if identity.fd == -1 else b"!")
        os.read(may_end, 1)
        os._exit(0)
    try:
        assert os.read(started, 1) == b"x"
        identity._lock.close()
        assert place.exists()
        assert not host_alive(setting.home, identity.host_id)
    finally:
        for fd in (started, is_started, may_end, end):
            os.close(fd)
        os.waitpid(child, 0)
    place.unlink()


def test_files_of_hosts_that_died_are_swept_at_the_next_start(tmp_path: Path) -> None:
    """Field case 57; also of one that had a run, which is free all the same, be it that nobody takes it up again."""
    one = Setting(tmp_path / "home")
    idle, owner = HostIdentity.register(one.home), HostIdentity.register(one.home)
    run = one.created()
    one.store.claim(run, owner)
    for dead in (idle, owner):
        dead._lock.close()
        assert dead.host_id in known_hosts(one.home)
    other = Setting(tmp_path / "home")
    assert known_hosts(one.home) == sorted([one.identity.host_id, other.identity.host_id])
    assert other.store.unowned() == [run]
    assert other.store.claim(run, other.identity).fence.generation == 2
    other.close()
    one.close()
