"""Real processes of `hostler`, and what they are given to run."""

import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Self

import pyte

from hostler.stored_runs import reading, whole
from hostler.views.show import show_json
from tests.support import until

TIMEOUT_S = 60.0
PROGRAM = (sys.executable, "-m", "hostler")

SHELL = """
import os, signal, sys
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    _, status = os.waitpid(pid, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        break
    print("stopped by", os.WSTOPSIG(status), flush=True)
    command = sys.stdin.readline().strip()
    print("command", command, flush=True)
    if command == "fg":
        os.tcsetpgrp(0, pid)
    os.killpg(pid, signal.SIGCONT)
print("ended with", os.waitstatus_to_exitcode(status), flush=True)
"""
"""What a shell does for its only job, with `fg` and `bg`, and no more."""


def hostler(*arguments: str, code: int = 0, **environ: str) -> str:
    """Run a command to its end, check its exit code, and return what it printed."""
    done = finished(*arguments, **environ)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def refused(*arguments: str, code: int, **environ: str) -> str:
    """Run a command that must fail, and return its one line."""
    done = finished(*arguments, **environ)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert re.fullmatch(r"hostler: error\[[a-z-]+\]: .+; .+\n", done.stderr), done.stderr
    assert "Traceback" not in done.stdout
    return done.stderr


def finished(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        start_new_session=True,  # without the terminal of whoever runs the tests
    )


def told(*arguments: str, code: int = 0) -> Any:
    """Run a command with `--json` and return what it said."""
    return json.loads(hostler(*arguments, "--json", code=code))


def started(*arguments: str, **environ: str) -> "AbstractContextManager[subprocess.Popen[str]]":
    """Start a command; it is killed if it is still there at the end."""
    return running(*PROGRAM, *arguments, environ=environ)


@contextmanager
def running(
    *argv: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None, stdin: int = subprocess.DEVNULL
) -> "Iterator[subprocess.Popen[str]]":
    """Start a program; it is killed if it is still there at the end."""
    process = subprocess.Popen(
        argv,
        cwd=cwd,
        env={**os.environ, **(environ or {})},
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: "subprocess.Popen[str]", text: str) -> list[str]:
    """Read lines of a started command until one holds *text*."""
    assert process.stdout is not None
    lines: list[str] = []
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if text in line:
            return lines
    raise AssertionError(f"ended without {text!r}: {lines} {process.stderr and process.stderr.read()}")


class Terminal:
    """A command on a terminal of its own, as a person has it."""

    def __init__(self, *arguments: str, rows: int = 24, columns: int = 100, program: tuple[str, ...] = PROGRAM) -> None:
        self.screen = ""
        self._seen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._seen)
        self._kept = False
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            _resize(0, rows, columns)
            environ = {**os.environ, "TERM": "xterm"}
            for name in ("LINES", "COLUMNS"):  # of whoever runs the tests
                environ.pop(name, None)
            os.execve(program[0], [*program, *arguments], environ)
        self._code: int | None = None

    @property
    def fd(self) -> int:
        """The person's side of it."""
        return self._fd

    @property
    def pid(self) -> int:
        """The command."""
        return self._pid

    @property
    def rows(self) -> list[str]:
        """What a person sees, a line each, as of what was read so far."""
        return [row.rstrip() for row in self._seen.display]

    def hides_cursor(self) -> bool:
        """Say whether the person sees no cursor."""
        return bool(self._seen.cursor.hidden)

    def resize(self, rows: int, columns: int) -> None:
        """Make the window another size; the command is told."""
        self._seen.resize(rows, columns)
        _resize(self._fd, rows, columns)

    def see(self, condition: Callable[[str], Any]) -> str:
        """Read until what the person sees is as *condition* wants it, and return it."""
        deadline = time.monotonic() + TIMEOUT_S
        while not condition(shown := "\n".join(self.rows)):
            assert time.monotonic() < deadline, f"not so:\n{shown}"
            assert self._read(deadline - time.monotonic()), f"ended with:\n{shown}"
        return shown

    def see_text(self, text: str) -> str:
        """Read until the person sees *text*."""
        return self.see(lambda shown: text in shown)

    def expect(self, text: str) -> None:
        """Read until *text* has been written."""
        deadline = time.monotonic() + TIMEOUT_S
        while text not in self.screen:
            assert time.monotonic() < deadline, f"no {text!r} in {self.screen!r}"
            assert self._read(deadline - time.monotonic()), f"ended without {text!r}: {self.screen!r}"

    def write(self, text: str) -> None:
        """Type something; `\x03` is Ctrl-C."""
        os.write(self._fd, text.encode())

    def wait(self, *, keep: bool = False) -> int:
        """Read to the end and return the exit code; *keep* leaves the person's side open, to be looked at."""
        if self._code is None:
            deadline = time.monotonic() + TIMEOUT_S
            while self._read(deadline - time.monotonic()):
                assert time.monotonic() < deadline, f"does not end: {self.screen!r}"
            _, status = os.waitpid(self._pid, 0)
            self._kept = keep
            if not keep:
                os.close(self._fd)
            self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def close(self) -> None:
        """Close the window while the command runs."""
        os.close(self._fd)
        self._fd = -1

    def wait_unseen(self) -> int:
        """Return the exit code of a command whose window was closed."""
        if self._code is None:
            until(self._ended_unseen)
        assert self._code is not None
        return self._code

    def _ended_unseen(self) -> bool:
        ended, status = os.waitpid(self._pid, os.WNOHANG)
        if ended:
            self._code = os.waitstatus_to_exitcode(status)
        return bool(ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            self.wait() if self._fd >= 0 else self.wait_unseen()
        if self._kept:
            os.close(self._fd)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._fd], [], [], max(seconds, 0.0))
        if not ready:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:  # what Linux says of a terminal whose other side is closed
            return False
        self.screen += data.decode(errors="replace")
        self._stream.feed(data)
        return bool(data)


def _resize(fd: int, rows: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))


def graph(folder: Path, *nodes: dict[str, Any], name: str = "test", inputs: Any = None) -> str:
    """Write a graph file and return its path."""
    path = folder / f"{name}.json"
    path.write_text(
        json.dumps({"workflow": {"id": name, "version": 1}, "inputs": inputs or {}, "nodes": list(nodes)}),
        encoding="utf-8",
    )
    return str(path)


def command(key: str, *argv: Any, after: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Return a node that runs a program."""
    given = {"claims": {}, "effect": "local-derived-write", "max_seconds": 60, **more}
    return {"key": key, "after": list(after), "executor": {"command": {"argv": list(argv), **given}}}


ECHO = command("say", "echo", "hello")
"""The smallest of them."""


def gate(key: str, *, after: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a node that a person opens."""
    return {"key": key, "after": list(after), "executor": {"gate": "publication"}}


def held(key: str, fifo: Path, **more: Any) -> dict[str, Any]:
    """Return a node that runs until somebody writes into *fifo*."""
    if not fifo.exists():
        os.mkfifo(fifo)
    return command(key, "sh", "-c", 'echo begun; read line < "$0"', str(fifo), **more)


def let_go(fifo: Path) -> None:
    """Let a held node end."""

    def opened() -> int | None:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:  # nobody reads yet; one that has ended never will
            if error.errno != errno.ENXIO:
                raise
            return None

    end: int = until(opened)
    os.write(end, b"go\n")
    os.close(end)


def statuses(run: str = "-") -> dict[str, str]:
    """Return node → status of a run, read from the store."""
    with reading() as (_, reader):
        return {node.key: node.status.value for node in reader.nodes(reader.find(run))}


def shown(run: str = "-") -> Any:
    """Return what `show --json` prints of a run, without a process of its own."""
    with reading() as (_, reader):
        return show_json(*whole(reader, reader.find(run)))
