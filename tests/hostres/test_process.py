"""Supervised processes: how they end is told, their streams are drained and bounded, and they are reaped."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hostres.logs import read_log
from tests.hostres.started import PYTHON, alive, finished, start
from tests.hostres.support import LIMIT_S, children, pid_written


def test_the_exit_code_the_signal_and_who_asked_are_told_apart() -> None:
    """Field case 17."""
    assert finished(start("sh", "-c", "exit 3")) == (3, None, None)
    assert finished(start("sh", "-c", "kill -9 $$")) == (None, signal.SIGKILL, None)
    process = start("sleep", "600")
    ended = process.end(grace_s=LIMIT_S, reason="cancel")
    assert ended.exit is not None
    assert (ended.exit.code, ended.exit.signal, ended.exit.asked_by) == (None, signal.SIGTERM, "cancel")
    assert process.end(grace_s=0, reason="later") == ended


def test_both_outputs_are_logged_and_told_as_bytes(tmp_path: Path) -> None:
    told: list[bytes] = []
    process = start(
        PYTHON, "-c", r"import os; os.write(1, b'caf\xe9\0out'); os.write(2, b'\xff\n')",
        stdout_log=tmp_path / "out", stderr_log=tmp_path / "err", on_stdout=told.append,
    )  # fmt: skip
    assert finished(process)[0] == 0
    assert (tmp_path / "out").read_bytes() == b"".join(told) == b"caf\xe9\0out"
    assert (tmp_path / "err").read_bytes() == b"\xff\n"


def test_all_that_it_wrote_is_logged_when_it_counts_as_ended(tmp_path: Path) -> None:
    for _ in range(40):
        process = start(
            "sh", "-c", "seq 10000; seq 10000 >&2", stdout_log=tmp_path / "out", stderr_log=tmp_path / "err"
        )
        assert process.wait(LIMIT_S) is not None
        sizes = (tmp_path / "out").stat().st_size, (tmp_path / "err").stat().st_size
        process.end(grace_s=0, reason="cleanup")
        assert sizes == (48894, 48894)


def test_it_reads_nothing_or_what_it_is_given() -> None:
    for stdin in (None, b"", b"x" * 3_000_000):
        told: list[bytes] = []
        process = start("wc", "-c", stdin=stdin, on_stdout=told.append)
        assert finished(process)[0] == 0
        assert int(b"".join(told)) == len(stdin or b"")


def test_a_program_that_does_not_read_its_input_is_not_waited_for() -> None:
    assert finished(start("true", stdin=b"x" * 3_000_000))[0] == 0


NOISY = """
import os, sys, threading
block = b"n" * (1 << 20)
fed = []
def feed():
    count = 0
    while piece := os.read(0, 1 << 16):
        count += len(piece)
    fed.append(count)
thread = threading.Thread(target=feed)
thread.start()
for number in range({blocks}):
    os.write(1 + number % 2, block)
thread.join()
os.write(1, b"fed %d" % fed[0])
"""


def test_any_volume_on_both_streams_is_drained_with_flat_memory_while_input_is_fed(tmp_path: Path) -> None:
    """Field case 14: 200 MB in alternating blocks of 1 MB, 20 MB of input meanwhile."""
    code = f"""
        import resource
        from pathlib import Path
        from hostres.process import Supervised
        give = b"i" * 20_000_000
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        process = Supervised.start(
            [sys.executable, "-c", {NOISY.format(blocks=200)!r}], env=dict(os.environ), stdin=give,
            stdout_log=Path({str(tmp_path / "out")!r}), stderr_log=Path({str(tmp_path / "err")!r}))
        done = process.wait(60)
        process.end(grace_s=0, reason="cleanup")
        say(done.code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        hear()
    """
    with children() as begin:
        code_text, grown_kib = begin(code).line(within_s=60).split()
    assert code_text == "0"
    assert int(grown_kib) < 8 * 1024
    kept = b"".join(read_log(tmp_path / "out"))
    assert kept.endswith(b"fed 20000000")
    assert kept.startswith(b"nnnn")
    assert b"[hostler: 100663308 bytes dropped here]" in kept
    assert len(kept) < (4 << 20) + 100
    assert {path.name for path in tmp_path.iterdir()} == {"out", "err"}


def test_much_error_output_before_the_input_is_read_does_not_block() -> None:
    """Field case 14."""
    code = "import os; os.write(2, b'e' * 10_000_000); os.write(1, str(len(os.read(0, 100))).encode())"
    told: list[bytes] = []
    assert finished(start(PYTHON, "-c", code, stdin=b"hello", on_stdout=told.append))[0] == 0
    assert b"".join(told) == b"5"


def test_a_line_of_50_mb_without_an_end_is_no_trouble(tmp_path: Path) -> None:
    """Field case 26."""
    process = start("sh", "-c", "head -c 50000000 /dev/zero", stdout_log=tmp_path / "out", keep_bytes=1 << 16)
    assert finished(process)[0] == 0
    assert (tmp_path / "out").stat().st_size < (1 << 16) + 100


def test_a_callback_that_fails_does_not_stop_the_stream(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(piece: bytes) -> None:
        raise ValueError("mine")

    process = start("seq", "100000", on_stdout=fail, stdout_log=tmp_path / "out")
    assert finished(process)[0] == 0
    assert (tmp_path / "out").read_bytes().endswith(b"100000\n")
    assert caplog.text.count("ValueError: mine") == 1


def test_what_is_left_in_the_background_does_not_hold_up_the_end(tmp_path: Path) -> None:
    process = start("sh", "-c", f"sleep 600 & echo $! > {tmp_path}/pid; echo said", stdout_log=tmp_path / "out")
    done = process.wait(LIMIT_S)
    assert done is not None
    assert done.code == 0
    assert b"".join(read_log(tmp_path / "out")) == b"said\n"
    pid = pid_written(tmp_path / "pid")
    assert alive(pid)
    assert process.end(grace_s=LIMIT_S, reason="cleanup").left == ()
    assert not alive(pid)


USED = """
from hostres.process import Supervised
forked = os.fork()  # for a new process nothing is counted that was another's: this one may have begun as a copy of pytest
if forked:
    sys.exit(os.waitpid(forked, 0)[1])
ballast = b"x" * int({ours})
busy = "x = b'x' * 150_000_000\\nfor _ in range(2_000_000): pass"
for argv in (["true"], ["sh", "-c", f'{{sys.executable}} -c "{{busy}}"; true']):
    process = Supervised.start(argv, env=dict(os.environ))
    done = process.wait(60)
    process.end(grace_s=0, reason="cleanup")
    say(done.cpu_seconds, done.peak_bytes)
hear()
"""


def test_it_tells_what_it_used_and_nothing_that_may_be_what_this_program_has_used() -> None:
    """The kernel counts for a program what it had as a copy of the one that started it."""
    with children() as begin:
        little, much = begin(USED.format(ours=0)), begin(USED.format(ours=300_000_000))
        assert little.line().split()[1] == "None"
        seconds, peak = little.line().split()
        assert 0.01 < float(seconds) < 10
        assert 150_000_000 < int(peak) < 200_000_000
        assert [much.line().split()[1] for _ in range(2)] == ["None", "None"]


def test_the_first_process_of_a_container_reaps_what_its_processes_leave_and_nothing_else(tmp_path: Path) -> None:
    """Field case 10: zombies pile up where nobody else takes them, and no exit status of a step is stolen."""
    namespace = ("unshare", "--pid", "--fork", "--mount-proc")
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("one may not make a process namespace here")
    code = """
        import os, subprocess, sys, time
        from pathlib import Path
        from hostres.process import Supervised
        from hostres.procfs import all_processes
        own = subprocess.Popen(["sh", "-c", "exit 7"], start_new_session=True)
        def run(script):
            process = Supervised.start(["sh", "-c", script], env=dict(os.environ))
            done = process.wait(60)
            process.end(grace_s=0, reason="cleanup")
            return done.code
        print([run(f"(sleep 0.1 &); exit {number}") for number in range(5)])
        print([run(f"(setsid setsid -w sleep 600 &); sleep 0.1; exit {number}") for number in range(3)])
        daemon = "import os, time; os.setsid(); time.sleep(2.5)"
        bare = subprocess.Popen([sys.executable, "-c", "pass"])
        first = Supervised.start(["sh", "-c", f"{sys.executable} -c '{daemon}' & sleep 0.5"], env=dict(os.environ))
        first.wait(60)
        until = time.monotonic() + 20
        def zombies():
            return {pid for pid, process in all_processes().items() if process.gone and process.parent == 1}
        while zombies() != {own.pid, bare.pid} or len(all_processes()) > 3:
            assert time.monotonic() < until, zombies()
            time.sleep(0.05)
        print(own.wait(), bare.wait())
    """
    done = subprocess.run(
        [*namespace, sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = ["[0, 1, 2, 3, 4]", "[0, 1, 2]", "7 0"]
    assert (done.stdout.splitlines(), done.returncode) == (said, 0), done.stderr
