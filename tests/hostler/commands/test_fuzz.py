"""Whatever is typed has an answer of one line: a seeded share of what `scripts/fuzz-commands` plays for longer."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent.parent


def test_no_command_line_shows_a_traceback_or_leaves_with_an_unknown_code() -> None:
    """In a process of its own without a terminal: some lines would ask a person, and all write standard streams."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.fuzz_commands", "--seed", "7", "--lines", "400"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert "0 wrong answers" in done.stdout
