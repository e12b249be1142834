"""Completion in the shells themselves: what a person sees after Tab."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.support import Terminal, command, graph, hostler


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run of two nodes, in a folder with a workflow file, and `hostler` on the PATH."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "hostler"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hostler "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent.parent.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    workflow = graph(tmp_path, command("transcode", "true"), command("publish/video", "true"), name="talk")
    return hostler("run", workflow).splitlines()[0]


def tabbed(program: list[str], begin: str, run_id: str) -> None:
    """Type what a person types in a shell, and see what Tab makes of it."""
    with Terminal(program=(shutil.which(program[0]) or "", *program[1:]), columns=200) as shell:
        shell.write("PS1='> '\n")
        shell.write(begin)
        shell.write("echo rea''dy\n")
        shell.expect("ready\r\n")
        for typed, becomes in (
            ("hostler resu\t", "hostler resume "),
            ("hostler logs - tran\t", "hostler logs - transcode "),
            ("hostler logs - pub\t", "hostler logs - publish/video "),
            (f"hostler show {run_id[:12]}\t", f"hostler show {run_id} "),
            ("hostler runs --status=comp\t", "hostler runs --status=completed "),
            ("hostler exec --claim ffm\t", "hostler exec --claim ffmpeg="),
            ("hostler plan tal\t", "hostler plan talk.json "),
            ("~/bin/hostler resu\t", "~/bin/hostler resume "),
        ):
            shell.screen = ""
            shell.write(typed)
            shell.expect(becomes.rstrip())
            shell.write("\x15")
        shell.write("exit\n")
        assert shell.wait() == 0


@needs("bash")
def test_bash(run_id: str) -> None:
    tabbed(["bash", "--norc", "--noprofile", "-i"], 'eval "$(hostler completion bash)"\n', run_id)


@needs("zsh")
def test_zsh(run_id: str) -> None:
    begin = 'setopt no_beep; autoload -U compinit; compinit -u -D; eval "$(hostler completion zsh)"\n'
    tabbed(["zsh", "-f", "-i"], begin, run_id)


def fish(line: str) -> list[str]:
    script = f"hostler completion fish | source; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return [each.partition("\t")[0] for each in done.stdout.splitlines()]


@needs("fish")
def test_fish(run_id: str) -> None:
    assert fish("hostler resu") == ["resume"]
    assert fish("hostler show ") == ["-", run_id]
    assert fish("hostler logs - ") == ["transcode", "publish/video"]
    assert fish("hostler runs --status=comp") == ["--status=completed"]
    assert fish("hostler exec --claim ffm") == ["ffmpeg="]
    assert fish("~/bin/hostler resu") == ["resume"]
    assert fish("hostler plan tal") == ["talk.json"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_that_its_shell_can_read(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = hostler("completion", shell)
    subprocess.run([shell, "-n"], input=script, text=True, check=True)
