"""`hostler exec` on a terminal: job control, a terminal of its own, and what it says while it waits."""

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from hostres.errors import HostlerError
from hostres.procfs import read_process
from tests.end_to_end.support import PROGRAM, SHELL, Terminal
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, holder, pid_written, rows, waiting

PYTHON = sys.executable


@pytest.fixture(autouse=True)
def capacity_of_one() -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nx = 1\n")


def state(pid: int) -> str:
    process = read_process(pid)
    return process.state if process else ""


# -- job control -------------------------------------------------------------------------------------------------------

ANSWERS = "import sys\nprint('ready', flush=True)\nprint('got', sys.stdin.readline().strip(), flush=True)\nsys.exit(4)"


def test_ctrl_z_stops_the_job_fg_continues_it_and_it_keeps_its_place_meanwhile() -> None:
    command = [*PROGRAM, "exec", "--claim", "x=1", "--", PYTHON, "-c", ANSWERS]
    with Terminal(program=(PYTHON, "-c", SHELL, *command)) as terminal, coordinator() as machine:
        terminal.expect("ready")
        for _ in range(3):
            terminal.write("\x1a")
            terminal.expect(f"stopped by {int(signal.SIGTSTP)}")
            (row,) = rows("admitted")
            eventually(partial(_all_stopped, [one.pid for one in row.processes]))  # the kernel stops them in turn
            with pytest.raises(HostlerError):
                machine.lease({"x": 1}, wait=0)
            terminal.screen = ""
            terminal.write("fg\n")
            terminal.expect("command fg")
            eventually(partial(_none_stopped, [one.pid for one in row.processes]))
        terminal.write("go\n")
        terminal.expect("got go")
        terminal.expect("ended with 4")
        terminal.wait()


@pytest.mark.parametrize("own_group", [False, True], ids=["plain", "like-a-shell"])
def test_a_command_that_stops_itself_in_the_foreground_gives_the_shell_its_terminal_back(own_group: bool) -> None:
    code = f"""
import os, signal, sys
if {own_group}:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
for _ in range(3):
    os.kill(os.getpid(), signal.SIGSTOP)
    print("got", sys.stdin.readline().strip(), flush=True)
if {own_group}:
    os.tcsetpgrp(0, os.getpgid(os.getppid()))
sys.exit(4)
"""
    command = [*PROGRAM, "exec", "--claim", "x=1", "--", PYTHON, "-c", code]
    with Terminal(program=(PYTHON, "-c", SHELL, *command)) as terminal:
        for number in range(3):
            terminal.expect("stopped by")
            (row,) = rows("admitted")
            eventually(partial(_all_stopped, [one.pid for one in row.processes]))
            terminal.screen = ""
            terminal.write("fg\n")
            terminal.expect("command fg")
            terminal.write(f"{number}\n")
            terminal.expect(f"got {number}")
        terminal.expect("ended with 4")
        terminal.wait()


def test_where_no_shell_would_continue_the_job_the_command_alone_is_stopped() -> None:
    with Terminal("exec", "--claim", "x=1", "--", PYTHON, "-c", ANSWERS) as terminal:
        terminal.expect("ready")
        (row,) = rows("admitted")
        (pid,) = (one.pid for one in row.processes if one.pid != row.pid)
        os.kill(pid, signal.SIGSTOP)
        eventually(lambda: (state(pid), state(row.pid)) == ("T", "S"))
        os.kill(row.pid, signal.SIGCONT)
        eventually(lambda: state(pid) != "T")
        terminal.write("go\n")
        terminal.expect("got go")
        assert terminal.wait() == 4


def _all_stopped(pids: list[int]) -> bool:
    return {state(pid) for pid in pids} == {"T"}


def _none_stopped(pids: list[int]) -> bool:
    return "T" not in {state(pid) for pid in pids}


@contextmanager
def job(*command: str) -> "Iterator[tuple[subprocess.Popen[bytes], int]]":
    """Start a command under exec in a process group of its own; also return the number of the command."""
    process = subprocess.Popen(
        [*PROGRAM, "exec", "--claim", "x=1", "--", *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (row,) = rows("admitted")
        (pid,) = (one.pid for one in row.processes if one.pid != process.pid)
        yield process, pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_stop_that_a_process_sends_to_it_stops_both_and_a_continue_continues_both() -> None:
    with job(PYTHON, "-c", ANSWERS) as (process, pid):
        for _ in range(3):
            process.send_signal(signal.SIGTSTP)
            eventually(lambda: state(pid) == "T" == state(process.pid))
            process.send_signal(signal.SIGCONT)
            eventually(lambda: "T" not in (state(pid), state(process.pid)))
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.wait(LIMIT_S) == 4


def test_a_command_that_ignores_the_stop_does_not_stop_its_wrapper() -> None:
    code = "import signal; signal.signal(signal.SIGTSTP, signal.SIG_IGN)\n" + ANSWERS
    with job(PYTHON, "-c", code) as (process, pid):
        process.send_signal(signal.SIGTSTP)
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.wait(LIMIT_S) == 4
        assert state(pid) == ""


def test_who_stops_the_command_alone_means_it_alone() -> None:
    with job(PYTHON, "-c", ANSWERS) as (process, pid):
        os.kill(pid, signal.SIGSTOP)
        eventually(lambda: state(pid) == "T")
        eventually(lambda: state(process.pid) == "S")
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: state(pid) != "T")
        os.kill(pid, signal.SIGSTOP)
        eventually(lambda: state(pid) == "T")
        process.send_signal(signal.SIGCONT)
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.wait(LIMIT_S) == 4


# -- a terminal of its own ---------------------------------------------------------------------------------------------


def on_terminal(script: str, *, given: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Run a script with `--tty` where there is no terminal."""
    command = [*PROGRAM, "exec", "--tty", "--claim", "x=1", "--", "sh", "-c", script]
    return subprocess.run(command, input=given, capture_output=True, timeout=LIMIT_S, check=False)


def test_the_command_has_a_terminal_although_we_have_none() -> None:
    done = on_terminal("test -t 0 && test -t 1 && test -t 2 && echo yes; ps -o sid= -p $$; echo $$")
    yes, session, pid = done.stdout.split()
    assert (yes, done.stderr) == (b"yes", b"")
    assert session == pid


def test_its_input_ends_where_ours_does_and_its_code_is_ours() -> None:
    done = on_terminal("stty -echo; cat; exit 7", given=b"one\ntwo")
    assert (done.stdout.replace(b"one\r\ntwo", b"", 1), done.returncode) in ((b"one\r\ntwo", 7), (b"", 7))
    assert on_terminal("kill -9 $$").returncode == 137


def test_all_that_it_wrote_is_shown_before_the_end() -> None:
    assert on_terminal("seq 50000").stdout == b"".join(b"%d\r\n" % n for n in range(1, 50001))


def test_what_it_wrote_while_we_did_not_look_is_shown_too(tmp_path: Path) -> None:
    script = f"echo ready; until test -e {tmp_path}/go; do :; done; seq 2000"
    command = [*PROGRAM, "exec", "--tty", "--claim", "x=1", "--", "sh", "-c", script]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\r\n"
        (pid,) = (one.pid for one in rows()[0].processes if one.pid != process.pid)
        process.send_signal(signal.SIGSTOP)
        (tmp_path / "go").touch()
        eventually(lambda: state(pid) == "Z")
        process.send_signal(signal.SIGCONT)
        assert process.stdout.read() == b"".join(b"%d\r\n" % n for n in range(1, 2001))
    finally:
        process.kill()
        process.communicate()


def test_what_is_left_in_the_background_does_not_hold_up_the_end(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    done = on_terminal(f"setsid sh -c 'echo $$ > {file}; exec sleep 600' & until test -s {file}; do :; done; echo over")
    pid = pid_written(file)
    assert done.stdout == b"over\r\n"
    assert done.stderr.decode() == f"hostler: pid {pid} (sleep) goes on and keeps its place\n"
    os.kill(pid, signal.SIGKILL)


SIZES = """
import os, signal, sys
def tell(*_): print("size", *os.get_terminal_size(0), flush=True)
signal.signal(signal.SIGWINCH, tell)
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
tell()
print("got", sys.stdin.readline().strip(), flush=True)
"""


def resize(fd: int, rows_: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", rows_, columns, 0, 0))


def test_its_terminal_has_the_size_of_ours_follows_it_and_gets_our_keys() -> None:
    script = f'stty rows 31 cols 97; exec {PYTHON} -m hostler exec --tty --claim x=1 -- {PYTHON} -c "$0"'
    with Terminal(program=("/bin/sh", "-c", script, SIZES)) as terminal:
        terminal.expect("size 97 31")
        before = rows()[0].pid
        resize(terminal.fd, 40, 111)
        terminal.expect("size 111 40")
        terminal.write("\x03")
        terminal.expect("interrupted")
        assert state(before) != ""
        terminal.write("yes\n")
        terminal.expect("got yes")
        assert terminal.wait() == 0


@pytest.mark.parametrize("ending", ["itself", "signal", "stopped"])
def test_our_terminal_is_put_back_as_it_was(ending: str) -> None:
    read = f"{PYTHON} -c \"import sys; print('ready', flush=True); sys.stdin.readline()\""
    script = f"stty -a > $0.before; {' '.join(PROGRAM)} exec --tty --claim x=1 -- {read}; stty -a > $0.after; echo over"
    name = os.environ["HOSTLER_HOME"]
    with Terminal(program=("/bin/sh", "-c", script, name)) as terminal:
        terminal.expect("ready")
        pid = rows()[0].pid
        if ending == "signal":
            os.kill(pid, signal.SIGTERM)
        elif ending == "stopped":
            raw = termios.tcgetattr(terminal.fd)
            os.kill(pid, signal.SIGTSTP)
            eventually(lambda: state(pid) == "T")
            assert termios.tcgetattr(terminal.fd)[3] & termios.ICANON
            os.kill(pid, signal.SIGCONT)
            eventually(lambda: termios.tcgetattr(terminal.fd) == raw)
        terminal.write("end\n")
        terminal.expect("over")
        terminal.wait()
    assert Path(f"{name}.after").read_text() == Path(f"{name}.before").read_text()


# -- a terminal that is closed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [(), ("--tty",)], ids=["plain", "tty"])
@pytest.mark.parametrize("clears", [True, False], ids=["hears", "ends"])
def test_a_command_whose_terminal_is_closed_is_told_though_no_shell_is_there_to_do_it(
    own: tuple[str, ...], clears: bool, tmp_path: Path
) -> None:
    """As in `xterm -e hostler exec …`, or `ssh -t host hostler exec …`: the kernel tells the leader alone."""
    trap = f"trap 'echo heard > {tmp_path}/heard; exit 9' HUP; " if clears else ""
    script = f"{trap}echo ready; while :; do sleep 0.05; done"
    with Terminal("exec", *own, "--claim", "x=1", "--", "sh", "-c", script) as terminal:
        terminal.expect("ready")
        terminal.close()
        assert terminal.wait_unseen() == (9 if clears else 128 + signal.SIGHUP)
    assert (tmp_path / "heard").exists() is clears
    eventually(lambda: rows() == [])


def test_what_a_command_writes_to_a_terminal_that_is_closed_is_let_go(tmp_path: Path) -> None:
    """It may have reason to go on; that nobody sees it is no fault of ours."""
    script = f"trap '' HUP; echo ready; until test -e {tmp_path}/go; do sleep 0.05; done; seq 20000; exit 3"
    with Terminal("exec", "--tty", "--claim", "x=1", "--", "sh", "-c", script) as terminal:
        terminal.expect("ready")
        terminal.close()
        (tmp_path / "go").touch()
        assert terminal.wait_unseen() == 3


def test_an_output_that_must_not_be_waited_for_is_waited_for() -> None:
    """Whoever started us has left its pipe so; all that the command wrote comes through it."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    command = [*PROGRAM, "exec", "--tty", "--claim", "x=1", "--", "seq", "50000"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writing)
    try:
        eventually(lambda: not select.select([], [writing], [], 0)[1])  # it is full
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            assert pipe.read() == b"".join(b"%d\r\n" % n for n in range(1, 50001))
        assert process.wait(LIMIT_S) == 0
    finally:
        process.kill()
        process.wait()


# -- signals -----------------------------------------------------------------------------------------------------------

LISTENS = """
import signal, sys
heard = {int(word) for word in sys.argv[1:]}
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
print("ready", flush=True)
while (number := signal.sigwaitinfo(heard).si_signo) != signal.SIGTERM:
    print(int(number), flush=True)
sys.exit(9)
"""
ENDS_NOTHING = {"SIGCHLD", "SIGCLD", "SIGCONT", "SIGWINCH", "SIGURG", "SIGTSTP", "SIGTTIN", "SIGTTOU"}
FAULTS = {"SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP", "SIGSYS", "SIGPIPE", "SIGXFSZ"}


@pytest.mark.parametrize("own", [(), ("--tty",)], ids=["plain", "tty"])
def test_every_signal_that_would_end_it_reaches_the_command_instead(own: tuple[str, ...]) -> None:
    """Else the command goes on, and holds what nobody knows that it holds."""
    names = {"SIGKILL", "SIGSTOP"} | ENDS_NOTHING | FAULTS
    numbers = [*sorted(int(n) for n in signal.valid_signals() if getattr(n, "name", "") not in names)]
    command = [*PROGRAM, "exec", *own, "--claim", "x=1", "--", PYTHON, "-c", LISTENS, *map(str, numbers)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"ready"
        for number in numbers:
            if number != signal.SIGTERM:
                process.send_signal(number)
                assert process.stdout.readline().strip() == b"%d" % number
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 9
    finally:
        process.kill()
        process.communicate()


# -- while it waits ----------------------------------------------------------------------------------------------------


def test_on_a_terminal_one_line_tells_how_the_wait_stands_and_is_wiped_away() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease, children() as start:
        first = start(holder({"x": 1}))
        waiting(1)
        start(holder({"x": 1}))
        waiting(2)
        with Terminal("exec", "--claim", "x=1", "--", "echo", "ran") as terminal:
            terminal.expect("waiting for x (0 of 1 free): 2 before you")
            first.kill()
            terminal.expect("waiting for x (0 of 1 free): 1 before you")
            assert "\n" not in terminal.screen
            for child in rows("waiting")[:1]:
                os.kill(child.pid, signal.SIGKILL)
            lease.release()
            terminal.expect("ran")
            assert terminal.wait() == 0
            assert terminal.screen.endswith("\r\x1b[Kran\r\n")


def test_elsewhere_one_plain_line_tells_of_a_wait_that_is_worth_it() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        command = [*PROGRAM, "exec", "--claim", "x=1", "--", "echo", "ran"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        assert process.stderr.readline() == "hostler: waiting for x (0 of 1 free): 0 before you\n"
        lease.release()
        assert process.communicate(timeout=LIMIT_S) == ("ran\n", "")
