"""`hostler top` as a person and a script meet it."""

import json
import os
import signal
import subprocess
import sys
import termios
from functools import partial
from pathlib import Path

import psutil
import pytest

from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.lease import Lease
from tests.end_to_end.support import SHELL, Terminal
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, holder, rows, waiting

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


def lent(machine: Coordinator, name: str) -> Lease:
    return machine.lease({"x": 1}, name=name)


@pytest.mark.parametrize(
    ("key", "number", "code"),
    [("q", None, 0), ("\x03", None, 0), (None, signal.SIGTERM, -15), (None, signal.SIGHUP, -1)],
)
def test_it_refreshes_until_a_key_or_a_signal_ends_it_and_leaves_the_terminal_as_it_was(
    key: str | None, number: signal.Signals | None, code: int
) -> None:
    with Terminal("top") as terminal, coordinator(x=1) as machine:
        before = termios.tcgetattr(terminal.fd)
        terminal.see_text("nothing is admitted")
        terminal.see_text("q quit")
        assert terminal.hides_cursor()
        with lent(machine, "mine"):
            shown = terminal.see_text("x=1  mine")
            assert "████████████ 1/1" in shown
        terminal.see_text("nothing is admitted")
        if key is not None:
            terminal.write(key)
        if number is not None:
            os.kill(terminal.pid, number)
        assert terminal.wait(keep=True) == code
        assert termios.tcgetattr(terminal.fd) == before
        assert not terminal.hides_cursor()
        assert terminal.screen.count("\x1b[?1049h") == terminal.screen.count("\x1b[?1049l") == 1
        assert "Traceback" not in terminal.screen


def test_an_error_is_told_on_the_terminal_as_it_was() -> None:
    with Terminal("top") as terminal, coordinator(x=1):
        before = termios.tcgetattr(terminal.fd)
        terminal.see_text("q quit")
        folder = Path(os.environ["HOSTLER_MACHINE_DIR"])
        folder.chmod(0o755)
        assert terminal.wait(keep=True) == 73
        folder.chmod(0o700)
        assert termios.tcgetattr(terminal.fd) == before
        assert not terminal.hides_cursor()
        assert "hostler: error[unsafe-state]" in terminal.screen.rpartition("\x1b[?1049l")[2]


def _is_whole(shown: str, *, wide: bool) -> bool:
    """Whether a screen was drawn for the size that it has, and nothing of another size is left."""
    first, *_, last = shown.splitlines()
    return (
        first.startswith("hostler top")
        and last.startswith("q quit")
        and shown.count("q quit") == 1
        and ("n" * 40 in shown) is wide
    )


def test_the_screen_follows_the_size_of_the_terminal() -> None:
    with Terminal("top") as terminal, coordinator(x=1) as machine, lent(machine, "n" * 200):
        terminal.see_text("nnn…")
        for rows, columns in ((6, 30), (40, 160), (3, 12), (24, 80)):
            terminal.resize(rows, columns)
            terminal.see(partial(_is_whole, wide=columns == 160))
        terminal.write("q")
        assert terminal.wait() == 0


def test_ctrl_z_leaves_the_terminal_to_the_shell_and_fg_comes_back() -> None:
    with Terminal(program=(sys.executable, "-c", SHELL, *HOSTLER, "top")) as terminal, coordinator(x=1) as machine:
        before = termios.tcgetattr(terminal.fd)
        for number in range(2):
            terminal.see_text("q quit")
            terminal.write("\x1a")
            terminal.see_text(f"stopped by {int(signal.SIGTSTP)}")
            assert termios.tcgetattr(terminal.fd) == before
            assert not terminal.hides_cursor()
            terminal.resize(20 + number, 70)
            terminal.write("fg\n")
            with lent(machine, f"meanwhile {number}"):
                terminal.see_text(f"meanwhile {number}")
        terminal.write("q")
        terminal.expect("ended with 0")
        assert terminal.wait(keep=True) == 0
        assert termios.tcgetattr(terminal.fd) == before


def test_one_that_is_stopped_can_be_ended() -> None:
    with Terminal(program=(sys.executable, "-c", SHELL, *HOSTLER, "top")) as terminal:
        terminal.see_text("q quit")
        (top_pid,) = psutil.Process(terminal.pid).children()
        terminal.write("\x1a")
        terminal.see_text("stopped by")
        top_pid.terminate()
        terminal.write("fg\n")
        terminal.expect("ended with -15")
        terminal.wait()


def test_a_waiting_ticket_is_taken_back_once_that_is_confirmed() -> None:
    with coordinator(x=1) as machine, lent(machine, "holds"), children() as start:
        start(holder({"x": 1}, name="waits"))
        waiting(1)
        with Terminal("top") as terminal:
            terminal.see_text("waits for x: wants 1, 0 free")
            terminal.write("c")
            terminal.see_text("select a ticket first")
            terminal.write("\x1b[B\x1b[B")
            terminal.see(lambda shown: any("▸" in row and "waits" in row for row in shown.splitlines()))
            terminal.write("c")
            terminal.see_text("[y/N]")
            terminal.write("n")
            terminal.see_text("nothing was taken back")
            assert [row.name for row in rows("waiting")] == ["waits"]
            terminal.write("c")
            terminal.see_text("it waits no longer")
            terminal.write("y")
            terminal.see_text("is taken back")
            eventually(lambda: not rows("waiting"))
            assert [row.name for row in rows("admitted")] == ["holds"], "what was not selected stays"
            terminal.write("q")
            assert terminal.wait() == 0


def test_a_held_ticket_is_free_at_once_when_it_is_taken_back() -> None:
    """What `hostler machine revoke` promises."""
    with coordinator(x=1) as machine, lent(machine, "leaked") as lease, Terminal("top") as terminal:
        terminal.see_text("leaked")
        terminal.write("jcy")
        terminal.see_text("1 revoked")
        with lent(machine, "next"):
            terminal.see_text("next")
        with pytest.raises(HostlerError) as refused:
            lease.assert_owned()
        assert refused.value.code is Code.OWNERSHIP_LOST
        terminal.write("q")
        terminal.wait()


def test_an_agent_takes_back_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTLER_NODE", "step")
    with coordinator(x=1) as machine, lent(machine, "mine") as lease, Terminal("top") as terminal:
        terminal.see_text("mine")
        terminal.write("jcy")
        terminal.see_text("it is a person's decision")
        lease.assert_owned()
        terminal.write("q")
        terminal.wait()


def test_processes_of_a_holder_are_shown_as_a_tree_with_what_they_use() -> None:
    busy = "while :; do :; done"
    line = [*HOSTLER, "exec", "--claim", "cpu=1", "--name", "busy", "--", "sh", "-c", f"({busy}) & wait"]
    with subprocess.Popen(line, start_new_session=True) as job, Terminal("top", columns=140) as terminal:
        try:
            shown = terminal.see(lambda shown: "└" in shown and shown.count(busy) >= 2)
            pids = [row.split()[-8:] for row in shown.splitlines() if busy in row]
            assert pids
            terminal.write("t")
            terminal.see(lambda shown: "└" not in shown and "busy" in shown)
            terminal.write("q")
            terminal.wait()
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            for left in psutil.process_iter(["cmdline"]):
                if left.info["cmdline"] == ["sh", "-c", f"({busy}) & wait"]:
                    left.kill()
