"""The git command line, asked by words and never through a shell.

Nothing of the caller's surroundings counts: no variable of git's, no configuration of the user or the machine, no hook,
no prompt, no network. What the repository's own configuration says about its files (filters, line ends) does.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from actors.control import Control
from hostres import descriptors
from hostres.children import require_heard_ends
from hostres.errors import Code, HostlerError
from hostres.exits import Ended, Left
from hostres.leftovers import NODE, RUN

LIMIT_S: Final = 300.0
"""No single question to git takes longer; a large checkout may take minutes."""

KILLED_WITHIN_S: Final = 5.0
"""How long a killed process may take to be gone; only one that the disk keeps waiting takes any time."""

LONGEST: Final = 2000
"""Characters of git's own words that are repeated."""

_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.askPass=",
    "core.pager=cat",
    "core.quotePath=false",
    "credential.helper=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
_ENVIRONMENT: Final = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "false",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}


class GitError(HostlerError):
    """Git refused, or answered what it should not."""

    def __init__(self, what: str) -> None:
        super().__init__(Code.UNAVAILABLE, what, "see to that in the repository, then try again")


class Git:
    """Asks git about one repository or worktree.

    Args:
        folder: Where it lies; git does not look for it further up.
        run_id: The run for which it is asked, so that what is left of a dead host is found.
        node: The node.
        control: Of the attempt for which it is asked: where that is asked to stop, git is ended, and whoever waits for
            its answer leaves by `OperationAborted`.

    """

    def __init__(self, folder: Path, *, run_id: str, node: str, control: Control | None = None) -> None:
        self.folder = folder
        self._run_id = run_id
        self._node = node
        self._control = control or Control()

    def text(self, *words: str, stdin: bytes | None = None) -> str:
        """Return what git prints, without the line end."""
        return os.fsdecode(self.ask(*words, stdin=stdin)).removesuffix("\n")

    def names(self, *words: str, stdin: bytes | None = None) -> list[str]:
        """Return names that git prints with a NUL after each."""
        return [os.fsdecode(name) for name in self.ask(*words, stdin=stdin).split(b"\0") if name]

    def says(self, *words: str) -> bool:
        """Return whether git says yes to a question that it answers by its exit code, 0 or 1."""
        return self._run(words, None, (0, 1)).returncode == 0

    def ask(self, *words: str, stdin: bytes | None = None, codes: Sequence[int] = (0,)) -> bytes:
        """Return what git prints.

        Args:
            *words: Its command and arguments.
            stdin: What it reads; by default nothing.
            codes: Exit codes that are an answer.

        Raises:
            GitError: unavailable, with what git said.
            HostlerError: unavailable: there is no git; conflict: this program ignores SIGCHLD.

        """
        return self._run(words, stdin, codes).stdout

    def _run(
        self, words: Sequence[str], stdin: bytes | None, codes: Sequence[int]
    ) -> "subprocess.CompletedProcess[bytes]":
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        require_heard_ends()  # else `subprocess` takes every answer for a yes
        argv = [_program(), "--no-pager", "--literal-pathspecs", *settings, *words]
        try:
            with descriptors.starting:
                process = subprocess.Popen(
                    argv,
                    cwd=self.folder,
                    env=self._environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
                descriptors.hide_all(process.stdin, process.stdout, process.stderr)
        except OSError as error:
            raise GitError(f"git cannot be run in {self.folder}: {error.strerror}") from error
        asked = _Asked(process)
        with process, self._control.supervising(asked):
            try:
                out, err = process.communicate(stdin if stdin is not None else b"", timeout=LIMIT_S)
            except subprocess.TimeoutExpired as error:
                asked.end(grace_s=0.0, reason="time")
                raise GitError(f"git {words[0]} in {self.folder} did not end within {LIMIT_S:g} s") from error
        self._control.check()
        if process.returncode not in codes:
            why = _said(err) or f"exit code {process.returncode}"
            raise GitError(f"git {words[0]} in {self.folder}: {why}"[:LONGEST])
        return subprocess.CompletedProcess(argv, process.returncode, out, err)

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        above = {"GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        return {**kept, **_ENVIRONMENT, **above, RUN: self._run_id, NODE: self._node}


class _Asked:
    """Git at work, as an abort finds it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def end(self, *, grace_s: float, reason: str) -> Ended:  # noqa: ARG002 - git has no log to tell it in
        """End it and what it has started: TERM, at which it takes its lock files away, the grace, KILL."""
        for number, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILLED_WITHIN_S)):
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
            try:
                self._process.wait(wait_s)
            except subprocess.TimeoutExpired:
                continue
            return Ended(exit=None, left=())
        return Ended(exit=None, left=(Left(pid=self._process.pid, command="git"),))


def _said(stderr: bytes) -> str:
    """Return all that git says in one line, without its hints: what is wrong may stand in any line of it."""
    lines = (line.strip() for line in stderr.decode("utf-8", "replace").splitlines())
    return "; ".join(line for line in lines if line and not line.startswith("hint:"))


def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise HostlerError(Code.UNAVAILABLE, "there is no git on the PATH", "install git, or use no git workspace")
    return found
