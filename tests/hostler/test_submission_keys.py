"""A run under a key of the caller's own: asked for twice, made once, also by many processes at the same moment."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from hostler import Host, Policy, operation, workflow
from hostler.__main__ import main
from hostler.stored_runs import reading
from hostres.errors import Code, HostlerError
from store.lifecycle import RunStatus

GRAPH = """
workflow = { id = "once" }
[inputs.word]
type = "string"
[[nodes]]
key = "say"
executor.command = { argv = ["sh", "-c", "echo ran >> \\"$0\\"", { "$input" = "word" }] }
"""


class Number(BaseModel):
    n: int = 0


@operation("test.once", policy=Policy(effect="local-read"))
def once(ctx, input: Number) -> Number:
    return Number(n=input.n + 1)


@workflow("once")
def flow(build, n: int = 0):
    return {"n": build.call(once, key="a", input={"n": n})["n"]}


def test_a_key_gives_the_run_that_was_submitted_under_it():
    """Field case 23: while it runs, after it has ended, and in another host."""
    with Host() as host:
        first = host.submit(flow, n=1, submission_key="film 7")
        meanwhile = host.submit(flow, n=1, submission_key="film 7")
        assert meanwhile.run_id == first.run_id
        assert first.wait(60).outputs == {"n": 2}
        again = host.submit(flow, n=1, submission_key="film 7")
        assert again.run_id == first.run_id
        assert again.wait(60).outputs == {"n": 2}
    with Host() as another:
        later = another.submit(flow, n=1, submission_key="film 7")
        assert (later.run_id, later.wait(60).status) == (first.run_id, RunStatus.COMPLETED)
        assert another.submit(flow, n=1, submission_key="film 8").run_id != first.run_id


def test_other_inputs_under_the_same_key_are_refused():
    """Field case 23."""
    with Host() as host:
        first = host.submit(flow, n=1, submission_key="k")
        with pytest.raises(HostlerError, match=f"run {first.run_id}, with another plan or other inputs") as caught:
            host.submit(flow, n=2, submission_key="k")
        assert caught.value.code is Code.CONFLICT
        first.wait(60)


@pytest.mark.parametrize("key", ["", "x" * 1025])
def test_a_key_that_cannot_be_kept_is_refused(key):
    with Host() as host, pytest.raises(HostlerError) as caught:
        host.submit(flow, submission_key=key)
    assert caught.value.code is Code.INVALID_DATA


def submitting(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "hostler", *arguments, "once.toml", "-i", "word=log", "--key", "k"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_that_submit_the_same_key_at_once_all_get_the_one_run(tmp_path):
    """Field case 23."""
    (tmp_path / "once.toml").write_text(GRAPH)
    told = [process.communicate(timeout=60) for process in [submitting(tmp_path, "submit", "--json") for _ in range(6)]]
    assert all(err == "" for _, err in told), told
    assert len({json.loads(out)["run_id"] for out, _ in told}) == 1
    with reading() as (_, reader):
        assert len(list(reader.runs())) == 1


def test_run_with_a_key_runs_once_and_then_says_how_it_ended(tmp_path, monkeypatch, capsys):
    (tmp_path / "once.toml").write_text(GRAPH)
    monkeypatch.chdir(tmp_path)
    log = str(tmp_path / "log")
    for _ in range(2):
        assert main(["run", "once.toml", "-i", f"word={log}", "--key", "k"]) == 0
    assert (tmp_path / "log").read_text() == "ran\n"
    assert capsys.readouterr().out.count("completed") >= 2
    assert main(["run", "once.toml", "-i", "word=other", "--key", "k"]) == 5


def test_a_key_with_a_secret_in_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be stored and shown."""
    monkeypatch.setenv("WORD", "quite-a-secret")
    monkeypatch.setenv("HOSTLER_SECRETS", "WORD")
    with Host() as host, pytest.raises(HostlerError) as refused:
        host.submit(flow, submission_key="nightly quite-a-secret")
    assert refused.value.code is Code.INVALID_DATA
    assert "quite-a-secret" not in refused.value.what
