"""What git refuses is told in git's own words, also where they are not in its last line."""

import signal
from pathlib import Path

import pytest

from hostler.git import Git, GitError
from hostres.errors import Code, HostlerError
from tests.hostler.git_support import Repository


def test_a_refusal_quotes_the_line_that_tells_wherever_it_stands_and_no_hint(tmp_path: Path) -> None:
    """The last line of this one is «Aborting», which tells nobody anything."""
    repository = Repository.made(tmp_path / "repository")
    repository.git("switch", "--quiet", "--create", "side")
    repository.commit(readme="theirs\n")
    repository.git("switch", "--quiet", "main")
    (repository.folder / "readme").write_text("mine\n", encoding="utf-8")
    with pytest.raises(GitError) as refusal:
        Git(repository.folder, run_id="run_1", node="one").text("switch", "side")
    assert "would be overwritten by checkout: readme" in refusal.value.what.replace(";", "")
    assert "\n" not in refusal.value.what
    assert "hint:" not in refusal.value.what


def test_nothing_is_asked_where_every_answer_would_be_a_yes(tmp_path: Path) -> None:
    """A program that ignores SIGCHLD learns no exit code, and `subprocess` takes that for 0."""
    repository = Repository.made(tmp_path / "repository")
    git = Git(repository.folder, run_id="run_1", node="one")
    question = ("rev-parse", "--verify", "--quiet", "refs/heads/nowhere")
    assert not git.says(*question)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(HostlerError, match="ignores SIGCHLD") as refusal:
            git.says(*question)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert refusal.value.code is Code.CONFLICT
