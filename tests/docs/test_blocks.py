"""Every block in the README and in docs/ is typed, run or read; what is not says why."""

import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from tests.docs.blocks import PAGES, Block, blocks_of, typed_in
from tests.docs.loosely import matches
from tests.docs.session import follow
from tests.hostler.operations.support import needs_av, needs_ffmpeg

NEEDS: Final = {"docs/tutorial.md": [pytest.mark.media, needs_ffmpeg, needs_av]}

NOT_RUN: Final = {
    "CONTRIBUTING.md": 1,
    "README.md": 2,
    "docs/how-to/embed.md": 1,
    "docs/performance.md": 1,
    "docs/pictures.md": 1,
    "docs/proofs.md": 1,
    "docs/tutorial.md": 2,
}
"""Blocks that say why they are not run; one more is a decision."""

COMMAND: Final = re.compile(r"^ *(\$ |scripts/|hostler [a-z-]+($| \S))", re.MULTILINE)
READ: Final = {"", "text", "mermaid", "toml", "yaml", "json"}
"""Not typed and not run; of data, tests/test_documents.py sees that it means something."""


@pytest.mark.parametrize("page", [pytest.param(page, marks=NEEDS.get(page, [])) for page in PAGES])
def test_a_page_can_be_followed_from_top_to_bottom(page: str, tmp_path: Path) -> None:
    """All its commands and programs, in order, in one shell."""
    problems = follow(page, tmp_path)
    assert not problems, "\n\n".join(problems)


def test_what_is_not_run_is_counted() -> None:
    """By page."""
    unrun = Counter(block.page for page in PAGES for block in blocks_of(page) if block.not_run)
    assert unrun == NOT_RUN


def test_what_is_not_run_is_written_as_it_would_have_to_be() -> None:
    """Its syntax is checked by who would run it."""
    for page in PAGES:
        for block in blocks_of(page):
            if block.language == "console":
                words = "\n".join(typed.command for typed in typed_in(block))
                read = subprocess.run(["bash", "-n"], input=words, capture_output=True, text=True, check=False)
                assert not read.stderr, f"{block}: {read.stderr}"
            elif block.language == "python":
                compile(block.code, str(block), "exec")


def test_commands_stand_in_blocks_that_are_typed() -> None:
    """A block of another kind holds no command that nobody would try."""
    for page in PAGES:
        for block in blocks_of(page):
            assert block.language in {*READ, "python", "console"} or block.title, block
            if block.language in {"", "text"}:
                assert not COMMAND.search(block.code), f"{block}: a command stands in a block ```console, after `$ `"


@pytest.mark.parametrize(
    ("line", "typed"),
    [
        ("hostler top", True),
        ("hostler run flow.toml", True),
        ("$ ls", True),
        ("    scripts/test", True),
        ("hostler top  2 admitted", False),
        ("hostler: error[usage]: no", False),
    ],
)
def test_a_command_is_told_from_what_is_printed(line: str, *, typed: bool) -> None:
    """By what a line begins with."""
    assert bool(COMMAND.search(f"before\n{line}\nafter\n")) is typed


def test_a_block_says_what_is_shown_and_how_it_ends() -> None:
    """Commands, what goes on in a next line, output, exit code."""
    block = Block("page", 5, "console", "$ a \\\n  b\nout\n$ c\n[3]\n$ d\n")
    assert [(typed.line, typed.command, typed.shown, typed.code) for typed in typed_in(block)] == [
        (5, "a \\\n  b", ["out"], 0),
        (8, "c", [], 3),
        (10, "d", [], 0),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        (["a   b"], "a b\n", True),
        (["a"], "a\nb\n", False),
        (["a", "..."], "a\nb\n", True),
        (["...", "b"], "a\nb\n", True),
        (["run_..."], "run_01k\n", True),
        (["run_..."], "ran\n", False),
        (["a.c"], "abc\n", False),
    ],
)
def test_output_is_compared_as_a_reader_would(shown: list[str], printed: str, *, same: bool) -> None:
    """What is shown must be there."""
    assert matches(shown, printed) is same
