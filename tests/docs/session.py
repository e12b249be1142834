"""A page, followed from top to bottom by somebody who types what it says: one shell, one folder, one home."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.docs.blocks import ROOT, Block, Typed, blocks_of, typed_in
from tests.docs.loosely import matches

TIMEOUT_S: Final = 120
PATIENCE_S: Final = 60
"""For what a reader waits to see."""

QUESTION: Final = re.compile(r"(.*(?:\[y/N\]|\[N\]ot now:)) (\S+)")
END: Final = re.compile(r"^@@(\d+) (\d+)@@\n", re.MULTILINE)
TYPIST: Final = Path(__file__).with_name("typist.py")


@dataclass(frozen=True)
class Step:
    """One thing that is done, and what must come of it."""

    where: str
    typed: Typed


def follow(page: str, folder: Path) -> list[str]:
    """Do what a page says; return what did not come out as it says.

    Args:
        page: Relative to the project.
        folder: Where it is done; the examples are copied there.

    """
    work = folder / "work"
    work.mkdir()
    shutil.copytree(ROOT / "examples", work / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", work)
    (work / "scripts").symlink_to(ROOT / "scripts")
    steps = [step for block in blocks_of(page) if not block.not_run for step in _steps(block, folder)]
    if not steps:
        return []
    return _problems(steps, _run(steps, folder))


def _steps(block: Block, folder: Path) -> list[Step]:
    if block.language == "console":
        steps = [Step(f"{block.page}:{typed.line}", typed) for typed in typed_in(block)]
        waits = f"until {block.until}; do [ $SECONDS -lt {PATIENCE_S} ] || break; sleep 0.05; done >&3 2>&1"
        return [Step(str(block), Typed(block.line, f"SECONDS=0; {waits}")), *steps] if block.until else steps
    file = folder / f"block-{block.line}{Path(block.title).suffix or '.py'}"
    if block.title:
        file.write_text(block.code, encoding="utf-8")
        return [Step(str(block), Typed(block.line, f"install -D -m 644 {file} {shlex.quote(block.title)}"))]
    if block.language == "python":
        file.write_text(block.code, encoding="utf-8")
        return [Step(str(block), Typed(block.line, f"python {file}"))]
    return []


def _run(steps: list[Step], folder: Path) -> str:
    """Return what all steps printed, each followed by its number and its exit code."""
    (folder / "user").mkdir()
    (folder / "script").write_text(
        "exec 3>/dev/null\n"
        + "".join(f"{_line(step.typed)}\nprintf '\\n@@%d %d@@\\n' {n} $?\n" for n, step in enumerate(steps)),
        encoding="utf-8",
    )
    environ = {
        **os.environ,
        "HOME": str(folder / "user"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "110",
    }
    output = folder / "output"
    with output.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", str(folder / "script")],
            cwd=folder / "work",
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            shell.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    return output.read_text(encoding="utf-8", errors="replace")


def _line(typed: Typed) -> str:
    answers = [word for line in typed.shown if (found := QUESTION.fullmatch(line)) for word in found.groups()]
    if not answers:
        return typed.command
    return shlex.join(["python", "-P", str(TYPIST), *answers, "--", typed.command])


def _problems(steps: list[Step], output: str) -> list[str]:
    parts = END.split(output)
    ended = {
        int(n): (printed, int(code)) for printed, n, code in zip(parts[0::3], parts[1::3], parts[2::3], strict=False)
    }
    problems = []
    for number, step in enumerate(steps):
        if number not in ended:
            problems.append(f"{step.where}: did not end: {step.typed.command}\n{parts[-1]}")
            break
        printed, code = ended[number]
        if code != step.typed.code:
            problems.append(f"{step.where}: exit code {code}, not {step.typed.code}: {step.typed.command}\n{printed}")
        elif step.typed.shown and not matches(step.typed.shown, printed):
            problems.append(f"{step.where}: {step.typed.command}\nprints\n{printed}")
        elif "Traceback (most recent call last)" in printed:
            problems.append(f"{step.where}: {step.typed.command}\nprints a traceback\n{printed}")
    return problems
