"""What a supervisor hears of the service, at a real socket."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.notify import Notifier


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[socket.socket]:
    """Return a supervisor's socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(str(tmp_path / "notify"))
        one.settimeout(5)
        yield one


def heard(listener: socket.socket) -> list[str]:
    return listener.recv(4096).decode().splitlines()


def test_a_supervisor_hears_each_word_once(listener: socket.socket) -> None:
    """Ready, alive, reloading with the time, stopping; a status only when it has changed."""
    notifier = Notifier.of({"NOTIFY_SOCKET": listener.getsockname()})
    for say, word in (
        (notifier.ready, "READY=1"),
        (notifier.alive, "WATCHDOG=1"),
        (notifier.stopping, "STOPPING=1"),
    ):
        say()
        assert heard(listener) == [word]
    notifier.reloading()
    reloading, at = heard(listener)
    assert reloading == "RELOADING=1"
    assert at.removeprefix("MONOTONIC_USEC=").isdigit()
    notifier.status("2 running\nNOT=1")
    notifier.status("2 running\nNOT=1")
    notifier.status("idle")
    assert heard(listener) == ["STATUS=2 running NOT=1"]
    assert heard(listener) == ["STATUS=idle"]


def test_an_abstract_socket_is_reached(tmp_path: Path) -> None:
    """Its name begins with @ where the kernel has a zero byte."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.bind(f"\0{tmp_path}")
        one.settimeout(5)
        Notifier.of({"NOTIFY_SOCKET": f"@{tmp_path}"}).ready()
        assert heard(one) == ["READY=1"]


def test_no_child_inherits_the_right_to_speak_for_the_service() -> None:
    """The variables are taken out of the environment."""
    environ = {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid()), "A": "b"}
    assert Notifier.of(environ).watchdog_s == 2.0
    assert environ == {"A": "b"}


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"WATCHDOG_USEC": "2000000"},
        {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "0"},
        {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"},
        {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"},
    ],
)
def test_signs_of_life_are_given_only_where_they_are_wanted_of_this_process(environ: dict[str, str]) -> None:
    """Another process's watchdog is none of ours, and a number that is none is none."""
    assert Notifier.of(environ).watchdog_s is None


def test_a_supervisor_that_has_gone_hurts_nobody() -> None:
    """The service goes on."""
    Notifier.of({"NOTIFY_SOCKET": "/nowhere"}).ready()
    Notifier.of({}).ready()
