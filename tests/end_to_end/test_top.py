"""`hostler top` as a person and a script meet it."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

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
        assert set(second) == {*first, "blocked_by"}
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


def test_on_a_terminal_it_refreshes_until_ctrl_c() -> None:
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execv(HOSTLER[0], [*HOSTLER, "top"])
        finally:
            os._exit(127)
    seen = b""
    until = time.monotonic() + LIMIT_S
    while seen.count(b"CAPACITY") < 2:
        assert select.select([fd], [], [], max(0.0, until - time.monotonic()))[0]
        seen += os.read(fd, 65536)
    os.write(fd, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(fd)
