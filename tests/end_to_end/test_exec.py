"""`hostler exec` as a person and a script meet it."""

import contextlib
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.hostres.support import LIMIT_S, children, coordinator, eventually, holder, pid_written, rows, waiting

HOSTLER = (sys.executable, "-m", "hostler")


@pytest.fixture(autouse=True)
def capacity_of_one() -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nx = 1\ncpu = 2\n")


@pytest.fixture
def started() -> "Iterator[list[subprocess.Popen[str]]]":
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def run(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    command = [*HOSTLER, "exec", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **more}, check=False
    )


def begin(started: "list[subprocess.Popen[str]]", *arguments: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [*HOSTLER, "exec", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    started.append(process)
    return process


def test_the_command_s_output_input_and_exit_code_are_its_own() -> None:
    done = subprocess.run(
        [*HOSTLER, "exec", "--claim", "x=1", "--", "sh", "-c", "cat; echo err >&2; exit 7"],
        input="in", capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("in", "err\n", 7)


def test_a_signal_s_death_is_told_as_a_shell_tells_it() -> None:
    assert run("--claim", "x=1", "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert run("--", "sh", "-c", "kill -15 $$").returncode == 143


def test_the_environment_names_the_lease_and_the_cpus_and_the_ticket_is_inherited() -> None:
    script = "echo $HOSTLER_LEASE $HOSTLER_CPUS $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS; ls -l /proc/$$/fd"
    done = run("--claim", "x=1", "--claim", "cpu=2", "sh", "-c", script)
    lease, *threads = done.stdout.splitlines()[0].split()
    ticket, nonce, fd = lease.split(".")
    assert threads == ["2", "2", "2"]
    assert any(f" {fd} -> " in line and f"h.{ticket}.{nonce}" in line for line in done.stdout.splitlines())


def test_descriptors_that_the_caller_gave_are_passed_on(tmp_path: Path) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as reader:
        code = f"import os; os.write({write}, b'hello')"
        subprocess.run([*HOSTLER, "exec", "--", sys.executable, "-c", code], pass_fds=[write], check=True)
        os.close(write)
        assert reader.read() == "hello"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--claim", "x=0", "--", "true"), 2),
        (("--claim", "x=-1", "--", "true"), 2),
        (("--claim", "x=2", "--", "true"), 2),
        (("--claim", "x", "--", "true"), 2),
        (("--claim", "x=1", "--claim", "x=1", "--", "true"), 2),
        (("--claim", "gpu=1", "--", "true"), 2),
        (("--claim", "x=one", "--", "true"), 2),
        (("--wait", "soon", "--", "true"), 2),
        (("--wait", "25h", "--", "true"), 2),
        (("--claim", "x=1"), 2),
        (("--claim", "x=1", "--"), 2),
        (("--no-such-option", "--", "true"), 2),
        (("--priority", "11", "--", "true"), 2),
        (("--priority", "high", "--", "true"), 2),
        (("--", "no-such-program"), 127),
        (("--", "x" * 300), 127),
        (("--", "/"), 126),
        (("--", "/etc/passwd"), 126),
    ],
)
def test_wrong_use_is_one_line_and_uses_up_no_ticket(arguments: tuple[str, ...], code: int) -> None:
    with coordinator() as machine:
        with machine.lease({}) as lease:
            before = lease.ticket
        done = run(*arguments)
        assert done.returncode == code
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("hostler: error[")
        with machine.lease({}) as lease:
            assert lease.ticket == before + 1


def test_what_cannot_run_is_told_before_the_machine_is_waited_for() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        assert run("--claim", "x=1", "--", "no-such-program").returncode == 127


def test_a_program_that_the_kernel_refuses_is_126(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\0odd")
    (tmp_path / "odd").chmod(0o755)
    done = run("--claim", "x=1", "--", str(tmp_path / "odd"))
    assert (done.returncode, done.stderr.count("\n")) == (126, 1)
    assert rows() == []


def test_a_wait_that_is_over_is_75_and_says_who_holds() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}) as lease:
        done = run("--claim", "x=1", "--wait", "0.1s", "--", "true")
        assert done.returncode == 75
        assert f"held by ticket {lease.ticket}" in done.stderr
        assert done.stderr.startswith("hostler: error[wait-timeout]: ")
        assert len(rows()) == 1


def test_three_at_once_go_in_order_and_one_killed_while_waiting_leaves_no_trace(
    tmp_path: Path, started: "list[subprocess.Popen[str]]"
) -> None:
    order = tmp_path / "order"
    order.touch()
    for number in range(3):
        script = f"echo {number} >> {order}; read line"
        begin(started, "--claim", "x=1", "--name", f"job {number}", "--", "sh", "-c", script)
        eventually(lambda number=number: len(rows()) == number + 1)  # type: ignore[misc]
    eventually(lambda: order.read_text() == "0\n")
    started[1].kill()
    started[1].wait()
    assert [row.name for row in rows()] == ["job 0", "job 2"]
    for process, expected in ((started[0], "0\n2\n"), (started[2], "0\n2\n")):
        process.communicate("go\n", timeout=LIMIT_S)
        assert process.returncode == 0
        eventually(lambda expected=expected: order.read_text() == expected)  # type: ignore[misc]
    assert rows() == []
    run("--claim", "x=1", "--", "true")
    assert list(Path(os.environ["HOSTLER_MACHINE_DIR"]).glob("t/[wn].*")) == []


def test_three_at_once_all_run_strictly_in_order_of_arrival(
    tmp_path: Path, started: "list[subprocess.Popen[str]]"
) -> None:
    order = tmp_path / "order"
    for number in range(3):
        begin(
            started, "--claim", "x=1", "--", "sh", "-c", f"echo {number} in >> {order}; read line; echo out >> {order}"
        )
        eventually(lambda number=number: len(rows()) == number + 1)  # type: ignore[misc]
    for process in started:
        process.communicate("go\n", timeout=LIMIT_S)
    assert order.read_text().split() == ["0", "in", "out", "1", "in", "out", "2", "in", "out"]


def test_the_higher_priority_goes_first(tmp_path: Path, started: "list[subprocess.Popen[str]]") -> None:
    order = tmp_path / "order"
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        for number, priority in enumerate(("-3", "0", "7")):
            script = f"echo {priority} >> {order}"
            begin(started, "--claim", "x=1", "--priority", priority, "--", "sh", "-c", script)
            waiting(number + 1)
    for process in started:
        process.communicate(timeout=LIMIT_S)
    assert order.read_text().split() == ["7", "0", "-3"]


@pytest.mark.parametrize("wait", ["30", "30s", "5m", "2h", "0.5s"])
def test_a_wait_is_told_in_seconds_minutes_or_hours(wait: str) -> None:
    assert run("--claim", "x=1", "--wait", wait, "--", "echo", "ran").stdout == "ran\n"


def test_who_goes_on_in_the_background_is_named_as_it_keeps_the_place(tmp_path: Path) -> None:
    script = (
        f"sleep 600 >/dev/null 2>&1 & echo $! > {tmp_path}/pid; until grep -q sleep /proc/$!/comm; do :; done; exit 3"
    )
    done = run("--claim", "x=1", "--", "sh", "-c", script)
    pid = pid_written(tmp_path / "pid")
    assert done.returncode == 3
    assert done.stderr == f"hostler: pid {pid} (sleep) goes on and keeps its place\n"
    (row,) = rows("admitted")
    assert [one.pid for one in row.processes] == [pid]
    os.kill(pid, signal.SIGKILL)


def test_when_it_is_killed_the_command_keeps_its_capacity(
    tmp_path: Path, started: "list[subprocess.Popen[str]]"
) -> None:
    process = begin(started, "--claim", "x=1", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 600")
    pid = pid_written(tmp_path / "pid")
    process.kill()
    process.wait()
    with coordinator() as machine:
        assert [holder.pid for row in rows("admitted") for holder in row.processes] == [pid]
        os.kill(pid, signal.SIGKILL)
        machine.lease({"x": 1}, wait=LIMIT_S).release()


def test_a_request_to_end_is_passed_on_to_the_command(started: "list[subprocess.Popen[str]]") -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        script = f"trap 'echo got; exit 9' {int(number)}; echo ready; while :; do sleep 0.05; done"
        process = begin(started, "--claim", "x=1", "--", "sh", "-c", script)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.wait(LIMIT_S) == 9
        assert process.stdout.read() == "got\n"


def test_a_request_to_end_while_it_waits_leaves_no_trace(started: "list[subprocess.Popen[str]]") -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        for number, code in ((signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)):
            process = begin(started, "--claim", "x=1", "--", "echo", "never")
            waiting(1)
            process.send_signal(number)
            output, errors = process.communicate(timeout=LIMIT_S)
            assert process.returncode == code
            assert output == ""
            lines = [line for line in errors.splitlines() if "waiting for x" not in line]  # if it came to that
            assert len(lines) == (1 if code == 130 else 0)
            assert len(rows()) == 1


def test_a_request_to_end_the_first_process_of_a_container_ends_its_wait() -> None:
    """The kernel gives it only signals that it asks for, so that a container that waited was killed after 10 s."""
    namespace = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("one may not make a process namespace here")
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        outside = subprocess.Popen(
            [*namespace, "--kill-child", sys.executable, "-m", "hostler", "exec", "--claim", "x=1", "--", "true"],
            stderr=subprocess.DEVNULL,
        )
        try:
            waiting(1)
            (first,) = psutil.Process(outside.pid).children()
            first.send_signal(signal.SIGTERM)
            assert outside.wait(LIMIT_S) == 128 + signal.SIGTERM
            assert [row.state for row in rows()] == ["admitted"]
        finally:
            outside.kill()
            outside.wait()


def test_a_signal_that_is_sent_to_it_reaches_the_command_alone(started: "list[subprocess.Popen[str]]") -> None:
    script = "exec 3<&0; cat <&3 & trap 'echo got; wait; exit 5' TERM; echo ready; wait"
    process = begin(started, "--claim", "x=1", "--", "sh", "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "got\n"
    output, _ = process.communicate("alone\n", timeout=LIMIT_S)
    assert (process.returncode, output) == (5, "alone\n")


def test_an_exec_under_an_exec_runs_with_a_part_of_what_that_one_holds() -> None:
    """A11."""
    script = "echo $HOSTLER_LEASE $HOSTLER_CPUS"
    inner = [*HOSTLER, "exec", "--claim", "cpu=1", "--", "sh", "-c", script]
    done = run("--claim", "x=1", "--claim", "cpu=2", "--", "sh", "-c", f"{script}; exec {shlex.join(inner)}")
    (outer_lease, outer_cpus), (inner_lease, inner_cpus) = (line.split() for line in done.stdout.splitlines())
    assert (done.returncode, outer_cpus, inner_cpus) == (0, "2", "1")
    assert int(inner_lease.split(".")[0]) == int(outer_lease.split(".")[0]) + 1
    assert rows() == []


def test_execs_under_an_exec_take_turns_inside_it(tmp_path: Path) -> None:
    inner = shlex.join(
        [
            *HOSTLER,
            "exec",
            "--claim",
            "x=1",
            "--",
            "sh",
            "-c",
            f"echo in >> {tmp_path}/turns; echo out >> {tmp_path}/turns",
        ]
    )
    done = run("--claim", "x=1", "--", "sh", "-c", f"{inner} & {inner} & {inner} & wait")
    assert done.returncode == 0
    assert (tmp_path / "turns").read_text().split() == ["in", "out"] * 3
    assert rows() == []


def test_an_exec_under_an_exec_that_asks_for_more_is_refused_at_once() -> None:
    """A11: never a hang."""
    inner = [*HOSTLER, "exec", "--claim", "cpu=1", "--", "echo", "never"]
    done = run("--claim", "x=1", "--", *inner)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "claim cpu=1 when the outer lease is asked for" in done.stderr
    assert run("--claim", "x=1", "--", *HOSTLER, "exec", "--", "echo", "free").stdout == "free\n"


def test_an_unsafe_machine_folder_is_73() -> None:
    Path(os.environ["HOSTLER_MACHINE_DIR"]).mkdir(mode=0o755)
    done = run("--", "true")
    assert done.returncode == 73
    assert "chmod 700" in done.stderr


def test_a_mismatch_is_73_and_adopted_once_idle() -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nx = 3\n")
    with children() as start:
        child = start(holder({"x": 1}, explicit={"x": 1}))
        child.line()
        done = run("--claim", "x=1", "--", "true")
        assert done.returncode == 73
        assert "x=3" in done.stderr
        assert "x=1" in done.stderr
    assert run("--claim", "x=3", "--wait", "20s", "--", "true").returncode == 0


LIGHT = """
import atexit, runpy, sys
before = set(sys.modules)
sys.argv = ["hostler", "exec", "--claim", "x=1", "--", "true"]
atexit.register(lambda: print(*sorted(set(sys.modules) - before)))
try:
    runpy.run_module("hostler", run_name="__main__")
finally:
    sys.stderr.write("it goes on after the end of its command")
"""


def imported_by_exec() -> set[str]:
    assert run("--claim", "x=1", "--", "true").returncode == 0  # the folder is made, the profile written
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_it_starts_light() -> None:
    """What is slow to import and not needed by most commands is imported by none of them."""
    heavy = {
        "argparse", "asyncio", "ast", "dataclasses", "gettext", "hashlib", "inspect", "logging", "multiprocessing", "random",
        "shutil", "sqlite3", "subprocess", "tempfile", "orjson", "platformdirs", "psutil", "pydantic", "pykka", "rich",
        "yaml", "actors", "store", "hostler.command_line", "hostler.commands.arguments",
        "hostler.commands.pseudo_terminal", "hostres.holders", "hostres.survey",
    }  # fmt: skip
    assert heavy & imported_by_exec() == set()


SECTIONS = """
[machine.capacity]
x = 1
[limits]
nodes = 100
[service]
grace_seconds = 5
[retention]
older_than = "3d"
[[authority.rule]]
id = "mine"
verdict = "ask"
action = "effect"
"""


def test_it_starts_light_also_under_a_file_of_all_sections() -> None:
    """It checks them without what goes by them."""
    Path(os.environ["HOSTLER_CONFIG"]).write_text(SECTIONS)
    heavy = {"argparse", "sqlite3", "orjson", "pydantic", "pykka", "rich", "yaml", "actors", "store.rules"}
    assert heavy & imported_by_exec() == set()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[limits]\nnodes = 0\n", "limits.nodes = 0 is not right"),
        ("[service]\ngrace_seconds = -1\n", "service.grace_seconds = -1 is not right"),
        ("[service]\ngrace_second = 1\n", "there is no key service.grace_second; did you mean service.grace_seconds?"),
        ('[retention]\nolder_than = "30"\n', 'retention.older_than = "30" is not right'),
        ('[authority]\nconfirm = "x"\n', 'authority.confirm = "x" is not right'),
        ('[[authority.rule]]\nid = "a"\nverdict = "perhaps"\n', "authority.rule[0].verdict"),
        ('[[authority.rule]]\nid = "a"\nverdict = "ask"\ncost = "much"\n', "authority.rule[0].cost"),
        ('[[authority.rule]]\nid = "a"\nverdict = "ask"\n' * 2, "there is a rule a before it"),
        ("[servise]\n", "there is no key servise"),
    ],
)
def test_a_configuration_that_is_wrong_anywhere_is_refused(text: str, told: str) -> None:
    """As by every other command, though it has no use for what stands there."""
    Path(os.environ["HOSTLER_CONFIG"]).write_text(text)
    done = run("--", "echo", "begun")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


HANDED_OVER = """
import sys
from hostler.commands import notice
from hostres.ticket import Ticket
notice.PLAIN_S = 3600  # what tells a person how the wait stands comes in at a moment of its own
poll, seen = Ticket.poll, []
def noticed(self, timeout_s):
    woken = poll(self, timeout_s)
    seen[:] = sys.modules
    return woken
Ticket.poll = noticed
from hostler.__main__ import main
main(["exec", "--claim", "x=1", "--", "true"])
print(*sorted(set(sys.modules) - set(seen)))
"""


def test_a_hand_over_imports_nothing() -> None:
    """Whatever the waiter imports once its turn has come, all that wait behind it wait for too."""
    with coordinator(x=1, cpu=2) as machine:
        holder = machine.lease({"x": 1})
        with subprocess.Popen([sys.executable, "-c", HANDED_OVER], stdout=subprocess.PIPE, text=True) as process:
            waiting(1)
            holder.release()
            assert process.communicate(timeout=LIMIT_S)[0] == "\n"


def test_what_it_imports_is_needed_by_most_commands() -> None:
    """Every module of ours that `exec` imports is listed here: each costs every command that is started."""
    ours = {name for name in imported_by_exec() if name.partition(".")[0] in {"hostler", "hostres"}}
    assert ours == {
        "hostler", "hostler.commands", "hostler.commands.exec", "hostler.commands.job", "hostler.commands.notice",
        "hostler.standard_streams", "hostres",
        *(f"hostres.{name}" for name in (
            "affinity", "arguments", "arrival", "beginning", "claims", "clock", "configuration", "coordinator",
            "decisions", "descriptors", "errors", "folders", "gate", "heirs", "issuing", "keys", "lease", "listing",
            "locks", "logger", "machine", "machine_keys", "nesting", "patience", "platforms", "poller", "profile", "programs",
            "pulse",
            "queue", "rousing", "seating", "settings", "state", "stillness", "succession", "summons", "sweeping",
            "ticket", "tickets", "turnaround", "usher", "watching",
        )),
    }  # fmt: skip


# -- on a terminal -----------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def terminal(*argv: str) -> "Iterator[tuple[int, int]]":
    """Run a command as the foreground job of a terminal of its own."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execv(argv[0], argv)
        finally:
            os._exit(127)
    try:
        yield pid, fd
    finally:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        os.close(fd)


def read_until(fd: int, text: str) -> str:
    seen = ""
    until = time.monotonic() + LIMIT_S
    while text not in seen:
        assert select.select([fd], [], [], max(0.0, until - time.monotonic()))[0], seen
        try:
            seen += os.read(fd, 4096).decode()
        except OSError:
            break
    return seen


COUNT = """
import os, signal, sys
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"int\\n"))
print("ready", flush=True)
sys.stdin.readline()
print("over", flush=True)
sys.exit(4)
"""


def test_ctrl_c_reaches_the_command_once_and_not_its_wrapper() -> None:
    with terminal(*HOSTLER, "exec", "--claim", "x=1", "--", sys.executable, "-c", COUNT) as (pid, fd):
        read_until(fd, "ready")
        os.kill(
            pid, signal.SIGSTOP
        )  # so that a second signal, passed on by the wrapper, could not merge with the first
        os.write(fd, b"\x03")
        seen = read_until(fd, "int")
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: not _pending(pid) & 1 << (signal.SIGINT - 1))
        os.write(fd, b"a\n")
        seen += read_until(fd, "over")
        assert seen.count("int") == 1
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4


def _pending(pid: int) -> int:
    fields = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)


def test_ctrl_c_while_it_waits_is_130() -> None:
    with coordinator(x=1) as machine, machine.lease({"x": 1}):
        with terminal(*HOSTLER, "exec", "--claim", "x=1", "--", "echo", "never") as (pid, fd):
            waiting(1)
            os.write(fd, b"\x03")
            seen = read_until(fd, "\n")
            assert "error[wait-aborted]" in seen
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
        assert len(rows()) == 1


def test_the_command_has_the_terminal() -> None:
    script = "test -t 0 && test -t 1 && ps -o pgid=,tpgid= -p $$ && read answer && echo got $answer"
    with terminal(*HOSTLER, "exec", "--claim", "x=1", "--", "sh", "-c", script) as (pid, fd):
        os.write(fd, b"yes\n")
        lines = read_until(fd, "got yes").split("\n")
        group, foreground = next(line.split() for line in lines if line.strip()[:1].isdigit())
        assert group == foreground
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
