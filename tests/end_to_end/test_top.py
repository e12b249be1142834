"""`hostler top` as a person and a script meet it."""

import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.end_to_end.support import Terminal
from tests.hostres.support import LIMIT_S, children, coordinator, holder, waiting

HOSTLER = (sys.executable, "-m", "hostler")


def top(*arguments: str) -> str:
    done = subprocess.run([*HOSTLER, "top", *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    assert done.stderr == ""
    return done.stdout


def test_an_unused_machine_shows_its_capacities() -> None:
    shown = json.loads(top("--json"))
    assert shown["capacity"]["ffmpeg"] == 2
    assert shown["used"]["ffmpeg"] == 0
    assert shown["tickets"] == []
    assert "nothing is admitted" in top("--once")


def test_it_names_holders_waiters_and_reasons() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}, name="one") as lease, children() as start:
        child = start(holder({"x": 1}, name="two\x1b[31m"))
        waiting(1)
        shown = json.loads(top("--json"))
        first, second = shown["tickets"]
        assert set(first) == {"ticket", "state", "claims", "name", "pid", "processes", "since"}
        assert set(second) - {"patient"} == {*first, "blocked_by"}  # which it becomes after two seconds
        assert (first["state"], second["state"]) == ("admitted", "waiting")
        assert first["processes"][0]["pid"] == os.getpid()
        assert second["processes"][0]["pid"] == child.pid
        lines = top()
        assert f"waits for x: wants 1, 0 free, held by ticket {lease.ticket}" in lines
        assert "(one)" in lines
        assert "\x1b" not in lines


def test_an_unsafe_folder_is_73_in_one_line() -> None:
    Path(os.environ["HOSTLER_MACHINE_DIR"]).mkdir(mode=0o755)
    done = subprocess.run([*HOSTLER, "top"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (73, "", 1)


def test_the_cpus_of_a_ticket_are_shown() -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\ncpu = 1\n")
    with coordinator(cpu=1) as machine, machine.lease({"cpu": 1}) as lease:
        (row,) = json.loads(top("--json"))["tickets"]
        assert row["cpus"] == list(lease.cpus)
        assert f"on CPU {lease.cpus[0]}\n" in top()


@pytest.mark.parametrize("key", ["q", "\x03"])
def test_on_a_terminal_it_refreshes_until_q_or_ctrl_c_and_leaves_it_as_it_was(key: str) -> None:
    with Terminal("top") as terminal, coordinator(x=1) as machine:
        before = termios.tcgetattr(terminal.fd)
        terminal.expect("nothing is admitted")
        terminal.expect("q quits")
        with machine.lease({"x": 1}, name="mine"):
            terminal.expect("admitted x=1 (mine), for ")
        terminal.write(key)
        assert terminal.wait(keep=True) == 0
        assert termios.tcgetattr(terminal.fd)[3] == before[3]
        assert terminal.screen.count("\x1b[?1049h") == terminal.screen.count("\x1b[?1049l") == 1


def test_the_screen_follows_the_size_of_the_terminal() -> None:
    with Terminal("top") as terminal, coordinator(x=1) as machine, machine.lease({"x": 1}, name="n" * 200):
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("4H", 6, 30, 0, 0))
        terminal.expect("more lines")
        terminal.write("q")
        terminal.wait()
        last = terminal.screen.rpartition("\x1b[H")[2].partition("\x1b[J")[0]
        lines = last.replace("\x1b[K", "").split("\r\n")
        assert len(lines) == 6
        assert max(map(len, lines)) == 30
