"""Odd surroundings: closed or unwritable standard streams, undecodable words, endless files, a folder that is gone."""

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hostres.coordinator import Coordinator
from tests.crash.support import ROOT, hostler, show

ENVIRONMENT = {"PYTHONPATH": str(ROOT)}

FLOW = """
from hostler import workflow
@workflow("empty")
def empty(build):
    build.gate("publication", key="look")
"""


def closed(*arguments: str, which: tuple[int, ...] = (0, 1, 2)) -> int:
    """Run a command with standard descriptors closed, as a careless parent may start it; return its exit code."""
    code = textwrap.dedent(
        """
        import os, sys
        which, arguments = eval(sys.argv[1]), sys.argv[2:]
        child = os.fork()
        if child == 0:
            for descriptor in which:
                os.close(descriptor)
            os.execv(sys.executable, [sys.executable, "-m", "hostler", *arguments])
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", code, repr(which), *arguments],
        env={**os.environ, **ENVIRONMENT},
        timeout=60,
        check=False,
    )
    return done.returncode


def test_a_ticket_never_becomes_a_standard_stream_of_the_command(tmp_path):
    look = "import os, sys; print([os.readlink(f'/proc/self/fd/{n}') for n in range(3)], file=open(sys.argv[1], 'w'))"
    out = tmp_path / "seen"
    assert closed("exec", "--claim", "cpu=1", "--", sys.executable, "-c", look, str(out)) == 0
    assert out.read_text().strip() == str(["/dev/null"] * 3)


@pytest.mark.parametrize("which", [(1,), (1, 2), (0, 1, 2)])
def test_the_exit_code_of_a_command_survives_closed_streams(which):
    assert closed("exec", "--", "sh", "-c", "exit 7", which=which) == 7


def graph(tmp_path: Path, **node) -> str:
    path = tmp_path / "graph.json"
    node = {"key": "a", "executor": {"command": {"argv": ["true"]}}, **node}
    path.write_text(json.dumps({"workflow": {"id": "g", "version": 1}, "nodes": [node], "outputs": {}}))
    return str(path)


def test_a_run_with_closed_streams_runs_to_its_end(tmp_path):
    assert closed("run", graph(tmp_path)) == 0
    assert show()["status"] == "completed"


@pytest.mark.parametrize("words", ["plan GRAPH", "plan GRAPH --format svg", "--help", "run --help", "--version"])
def test_a_full_standard_output_is_told_in_one_line_and_is_no_bug(words, tmp_path):
    path = graph(tmp_path)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "hostler", *(path if word == "GRAPH" else word for word in words.split())],
            env={**os.environ, **ENVIRONMENT},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 69
    assert done.stderr.startswith("hostler: error[unavailable]: No space left on device: standard output")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_does_not_cost_the_exit_code_of_a_command_that_writes_nothing(unbuffered):
    """Nor does `exec` write anything of its own there."""
    words = [sys.executable, "-m", "hostler", "exec", "--", "sh", "-c", "exit 7"]
    with open("/dev/full", "w") as full:
        environment = {**os.environ, **ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered}
        done = subprocess.run(words, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize("unwritable", ["full", "pipe"])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["exec", "--claim", "cpu=1", "--wait", "0s", "--", "true"], 75),
        (["exec", "--", "./nope"], 127),
        (["exec", "--claim", "nope=1", "--", "true"], 2),
        (["exec", "--priority", "high", "--", "true"], 2),
        (["machine", "revoke", "9999"], 4),
        (["exec", "--", "sh", "-c", "exit 7"], 7),
    ],
    ids=["timeout", "program", "claim", "usage", "revoke", "command"],
)
def test_a_standard_error_that_takes_nothing_does_not_cost_the_exit_code(words, code, unwritable):
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\ncpu = 1\n")
    command = [sys.executable, "-m", "hostler"]
    if unwritable == "full":
        error = os.open("/dev/full", os.O_WRONLY)
    else:
        read, error = os.pipe()
        os.close(read)
    hold = contextlib.nullcontext()
    if code == 75:
        hold = Coordinator(Path(os.environ["HOSTLER_MACHINE_DIR"]), explicit={"cpu": 1}).lease({"cpu": 1})
    try:
        with hold:
            done = subprocess.run([*command, *words], env={**os.environ, **ENVIRONMENT}, stderr=error, check=False)
    finally:
        os.close(error)
    assert done.returncode == code


def test_a_character_that_a_terminal_cannot_show_does_not_end_a_run(tmp_path):
    path = graph(tmp_path, label="caf\u00e9 \u2013 \u00b7")
    for command in ("plan", "run"):
        done = subprocess.run(
            [sys.executable, "-m", "hostler", command, path],
            env={**os.environ, **ENVIRONMENT, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["show", b"\xff"], ["run", b"caf\xe9.py"], ["cancel", "-", "--reason", b"\xff"]])
def test_words_that_are_not_utf_8_are_refused_in_one_line(words):
    done = subprocess.run(
        [sys.executable, "-m", "hostler", *words], env={**os.environ, **ENVIRONMENT}, capture_output=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.decode().startswith("hostler: error[invalid-data]: the argument")
    assert len(done.stderr.splitlines()) == 1


def test_a_command_gets_words_that_are_not_utf_8_as_they_are():
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "exec", "--", "printf", "%s", b"caf\xe9"],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"caf\xe9")


@pytest.mark.parametrize("endless", ["/dev/zero", "pipe"])
def test_an_endless_file_is_refused(tmp_path, endless):
    if endless == "pipe":
        endless = str(tmp_path / "pipe")
        os.mkfifo(endless)
    done = hostler("plan", graph(tmp_path), "--input", endless, timeout=60)
    assert done.returncode == 2
    assert "is not a regular file" in done.stderr


@pytest.mark.parametrize("text", ["x = " + "[" * 3000, "x = " + "9" * 5000])
def test_a_graph_file_that_python_cannot_read_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "deep.toml"
    path.write_text(text)
    done = hostler("plan", str(path))
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_path_that_is_too_long_is_no_bug(tmp_path):
    done = hostler("run", "k" * 5000 + ".py")
    assert done.returncode in {2, 69}
    assert "error[internal]" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_current_folder_that_is_gone_is_named(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, '-m', 'hostler', 'run', 'x.py'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=gone,
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 69, done.stderr
    assert "the current folder is gone" in done.stderr


def test_a_folder_whose_name_is_not_utf_8_is_named_before_anything_is_stored(tmp_path):
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(odd)
    Path(os.fsdecode(odd), "flow.py").write_text(FLOW)
    for workflow in (graph(tmp_path), "flow.py", "flow:empty"):
        done = subprocess.run(
            [sys.executable, "-m", "hostler", "run", workflow],
            cwd=odd,
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert "caf?' is not UTF-8; rename it, or use another folder" in done.stderr
    home = subprocess.run(
        [sys.executable, "-m", "hostler", "runs"],
        env={**os.environb, b"PYTHONPATH": os.fsencode(ROOT), b"HOSTLER_HOME": odd},
        capture_output=True,
        text=True,
        check=False,
    )
    assert home.returncode == 2, home.stderr
    assert "the state folder" in home.stderr


def test_a_plan_without_its_node_and_a_reason_without_end_are_refused(tmp_path):
    hostler("submit", graph(tmp_path))
    done = hostler("approve", "-", "--plan", "f" * 64)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--plan names the plan of one node" in done.stderr
    assert hostler("cancel", "-", "--reason", "x" * 5000).returncode == 2
    endless = hostler("settle", "-", "a", "--completed", "/dev/zero", timeout=60)
    assert endless.returncode == 2
    assert "is not a regular file" in endless.stderr


PROGRAMS = """
from hostler import workflow
@workflow("programs")
def programs(build):
    build.command(["sh", "-c", "echo hi"], key="said", effect="local-read")
"""


def test_programs_end_as_they_do_where_the_caller_ignores_their_ends(tmp_path):
    """An ignored SIGCHLD passes through exec; the kernel would forget each program as it ends."""
    (tmp_path / "flow.py").write_text(PROGRAMS)
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", ignoring, sys.executable, "-m", "hostler", "run", str(tmp_path / "flow.py")],
        env={**os.environ, **ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_a_descriptor_to_spare_one_line_says_so():
    """What would tell of an error better cannot even be imported."""
    script = 'ulimit -n "$0"; exec "$@"'
    told = []
    for limit in range(4, 9):
        done = subprocess.run(
            ["sh", "-c", script, str(limit), sys.executable, "-m", "hostler", "exec", "--claim", "cpu=1", "--", "true"],
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if "Python" not in done.stderr and "shared libraries" not in done.stderr:  # else the interpreter has not begun
            told.append((done.returncode, done.stderr))
    assert told[-1] == (0, "")
    for code, said in told:
        assert code in (0, 69), said
        assert said.count("\n") <= 1
        assert "ulimit -n" in said or not said
