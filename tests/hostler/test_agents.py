"""Agents as programs: what they are asked, what they answer, and what that makes of their nodes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hostler import Budget, Host, RunLimits, workflow
from hostler.config import Config
from hostres.errors import Code, HostlerError
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader
from tests.support import until

TOKEN = "gh" + "p_" + "A1b2" * 9
ECHO = "import json, sys; asked = json.load(sys.stdin); "


def script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def answering(answer: Any) -> list[str]:
    """Return an agent that reads its request and prints *answer*: a value, or a text as it is."""
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return script(f"import sys; sys.stdin.read(); sys.stdout.write({hidden(text)})")


def hidden(text: str) -> str:
    """Return an expression of *text* in which no secret of it can be read: a plan with one would be refused."""
    return f"bytes.fromhex({text.encode().hex()!r}).decode()"


@workflow("agents", version=1)
def one(build, argv: list, options: dict):
    after = build.agent("do it", key="work", argv=argv, **options)
    return {"agent": after}


def ran(argv: list[str], **options: Any) -> tuple[str, Any, list[Any]]:
    """Run one agent; return the run's id, its node's record and its events."""
    with Host(release_at_rest=True) as host:
        run = host.submit(one, argv=argv, options=options)
        run.wait(timeout=60)
    with reader() as look:
        return run.run_id, look.nodes(run.run_id)[0], list(look.events(run.run_id))


def reader() -> Reader:
    return Reader.open(Home.open(Config.load().home, create=False))


def logged(run_id: str, stream: str = "stdout") -> str:
    home = Home.open(Config.load().home, create=False)
    path = home.logs_of(run_id, "work", 1).get(stream)
    return path.read_text() if path else ""


def spending(events: list[Any]) -> list[dict[str, Any]]:
    return [event.data for event in events if event.data.get("change") == "spend"]


def test_an_agent_is_asked_in_json_and_its_answer_is_the_output():
    """The request holds objective, input, evidence due, budget, key and workspace; usage is an event, not output."""
    agent = script(
        ECHO
        + "import os; answer = {'status': 'success', 'summary': 'ok', 'output': {'asked': asked, 'cwd': os.getcwd(),"
        " 'node': os.environ['HOSTLER_NODE']}, 'usage': {'tokens': 3, 'cost': '0.10'}}; print(json.dumps(answer))"
    )
    terms = {"budget": {"tokens": 100, "cost": 1}, "evidence": []}

    @workflow("whole", version=1)
    def whole(build):
        made = build.agent("first", key="first", argv=answering({"status": "success", "output": {"n": 4}}))
        return build.agent("do it", key="work", argv=agent, input={"n": made["output"]["n"]}, terms=terms)

    with Host(release_at_rest=True) as host:
        run = host.submit(whole)
        outcome = run.wait(timeout=60)
    assert outcome.status is RunStatus.COMPLETED
    asked = outcome.outputs["output"]["asked"]
    assert asked["objective"] == "do it"
    assert asked["input"] == {"n": 4}
    assert asked["budget"] == {"tokens": 100, "cost": "1"}
    assert asked["idempotency_key"] == f"{run.run_id}:work:1"
    assert os.path.samefile(asked["workspace"], outcome.outputs["output"]["cwd"])
    assert outcome.outputs["output"]["node"] == "work"
    assert sorted(outcome.outputs) == ["evidence", "output", "summary"]
    with reader() as look:
        assert spending(list(look.events(run.run_id))) == [{"change": "spend", "amount": {"tokens": 3, "cost": "0.1"}}]


def test_an_agent_starts_with_what_it_asks_for_or_not_at_all():
    """Its budget is reserved as a command's is: down to its minimum where no more is left, and it is told how much."""
    agent = script(ECHO + "print(json.dumps({'status': 'success', 'output': asked['budget']}))")

    @workflow("asking", version=1, limits=RunLimits(budget=Budget(tokens=50)))
    def asking(build, minimum: int):
        demand = {"ask": {"tokens": 100}, "minimum": {"tokens": minimum}}
        return build.agent("do it", key="work", argv=agent, budget=demand)["output"]

    with Host(release_at_rest=True) as host:
        outcome = host.submit(asking, minimum=20).wait(timeout=60)
        assert (outcome.status, outcome.outputs["tokens"]) == (RunStatus.COMPLETED, 50)
        assert host.submit(asking, minimum=100).wait(timeout=60).status is RunStatus.BUDGET_EXHAUSTED


@pytest.mark.parametrize(
    ("said", "status", "code", "retryable"),
    [
        ("retry", "failed", "provider-transient", True),
        ("failed", "failed", "internal", False),
        ("blocked", "blocked", "unavailable", False),
        ("budget-exhausted", "failed", "budget-exhausted", False),
    ],
)
def test_what_an_agent_says_decides_how_its_node_ends(said, status, code, retryable):
    """Its summary is the message; what it spent is recorded in every case."""
    _, node, events = ran(answering({"status": said, "summary": "no key", "usage": {"tokens": 9}}))
    assert (node.status.value, node.failure.code.value, node.failure.retryable) == (status, code, retryable)
    assert node.failure.message == "no key"
    assert spending(events) == [{"change": "spend", "amount": {"tokens": 9}}]


def test_an_agent_that_says_retry_is_tried_again_and_one_that_failed_is_not(tmp_path):
    """One attempt more, in an empty workspace and under a key of its own."""
    mark = tmp_path / "mark"
    agent = script(
        ECHO + f"import pathlib; mark = pathlib.Path({str(mark)!r}); again = mark.exists(); mark.touch();"
        " print(json.dumps({'status': 'success' if again else 'retry', 'summary': asked['idempotency_key']}))"
    )
    run_id, node, _ = ran(agent, retry={"attempts": 3})
    assert (node.status.value, node.attempt) == ("completed", 2)
    with reader() as look:
        assert look.output(run_id, "work")["summary"] == f"{run_id}:work:2"
    _, node, _ = ran(answering({"status": "failed"}), retry={"attempts": 3})
    assert (node.status.value, node.attempt) == ("failed", 1)


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        ("All done!", {}),
        ({"status": "success", "summary": "x" * 5000}, {"max_output_bytes": 1000}),
        ({"status": "success", "summary": f"the key is {TOKEN}"}, {}),
    ],
)
def test_an_answer_that_cannot_be_used_leaves_a_masked_excerpt_and_what_it_spent(answer, options):
    """G24: over its size, not JSON, with secret material."""
    if isinstance(answer, str):
        answer = f'{answer} {TOKEN}\n{{"usage": {{"tokens": 5}}}}'
    else:
        answer["usage"] = {"tokens": 5}
    run_id, node, events = ran(answering(answer), **options)
    assert (node.status.value, node.failure.code.value) == ("failed", "malformed-output")
    excerpt = logged(run_id)
    assert excerpt[:8] in json.dumps(answer)
    assert len(excerpt.encode()) <= 2048
    assert spending(events) == [{"change": "spend", "amount": {"tokens": 5}}]
    home = Config.load().home
    for path in Path(home).rglob("*"):
        if path.is_file() and path.name != "runs.db" and "runs.db" not in path.name:
            assert TOKEN not in path.read_text(errors="replace"), path
    assert TOKEN not in "".join(str(event.data) for event in events)


def test_a_key_of_the_environment_in_the_answer_is_secret(monkeypatch):
    """G24: the agent prints what it was given to log in with."""
    monkeypatch.setenv("PROVIDER_API_KEY", "correct-horse-battery")
    run_id, node, _ = ran(answering({"status": "success", "summary": "used correct-horse-battery"}))
    assert node.failure.code.value == "malformed-output"
    assert "correct-horse" not in logged(run_id)


def test_an_agent_that_ends_badly_fails_by_its_exit_code_and_what_it_spent_is_kept():
    """A success that is said by a program which then crashes is none; another answer counts as said."""
    text = json.dumps({"status": "success", "usage": {"tokens": 2}})
    _, node, events = ran(script(f"print({text!r}); raise SystemExit(3)"))
    assert (node.status.value, node.failure.code.value) == ("failed", "subprocess")
    assert spending(events) == [{"change": "spend", "amount": {"tokens": 2}}]
    text = json.dumps({"status": "blocked", "summary": "no login"})
    _, node, _ = ran(script(f"print({text!r}); raise SystemExit(1)"))
    assert (node.status.value, node.failure.message) == ("blocked", "no login")


def test_an_agent_that_does_not_read_its_request_is_no_fault():
    """A request larger than a pipe, and nobody who takes it."""
    _, node, _ = ran(script('print(\'{"status": "success"}\')'), input="x" * 300_000)
    assert node.status.value == "completed"


def test_an_agent_that_runs_out_of_time_is_ended_and_what_it_said_it_spent_is_kept():
    """Its time limit is its policy's; the tree goes with it."""
    said = f'{TOKEN}\n{{"usage": {{"tokens": 8}}}}'
    run_id, node, events = ran(
        script(f"import subprocess, time; print({hidden(said)}, flush=True); subprocess.run(['sleep', '60'])"),
        max_seconds=1,
    )
    assert (node.status.value, node.failure.code.value) == ("failed", "timeout")
    assert logged(run_id).startswith("[secret]\n")
    assert spending(events) == [{"change": "spend", "amount": {"tokens": 8}}]


def test_a_cancelled_agent_is_ended(tmp_path):
    """As any other program of a node."""
    mark = tmp_path / "mark"
    agent = script(f"import pathlib, time; pathlib.Path({str(mark)!r}).touch(); time.sleep(60)")
    with Host(release_at_rest=True) as host:
        run = host.submit(one, argv=agent, options={})
        until(mark.exists)
        host.cancel(run.run_id)
        assert run.wait(timeout=60).status is RunStatus.CANCELLED


def test_a_missing_program_is_named():
    """As for a command."""
    _, node, _ = ran(["no-such-agent"])
    assert node.status.value == "failed"
    assert "no-such-agent" in node.failure.message


@pytest.mark.parametrize(
    "options",
    [
        {"argv": []},
        {"argv": "agent --now"},
        {"argv": None, "claims": {"cpu": 1}},
        {"argv": None, "cwd": "/"},
        {"argv": ["x"], "env": {"HOSTLER_RUN": "x"}},
        {"argv": ["x"], "effect": "trusted-code"},
        {"argv": ["x"], "max_seconds": -1},
    ],
)
def test_what_cannot_be_is_refused_when_it_is_authored(options):
    """Each names the node."""

    @workflow("refused", version=1)
    def refused(build):
        build.agent("do it", key="work", **options)

    with pytest.raises(HostlerError) as caught, Host() as host:
        host.submit(refused)
    assert caught.value.code in {Code.INVALID_DATA, Code.INVALID_CLAIMS}
    assert caught.value.what.startswith("node work")


def test_a_secret_variable_reaches_its_program_and_no_log(monkeypatch):
    """Named in the plan, resolved when the program starts, masked in what it says."""
    monkeypatch.setenv("THE_WORD", "quite-a-secret-word")
    agent = script(ECHO + "import os; print(os.environ['WORD'], file=sys.stderr); print(json.dumps({'status': 'success',"
                   " 'summary': str(len(os.environ['WORD']))}))")  # fmt: skip

    @workflow("hiding", version=1)
    def hiding(build):
        build.agent("do it", key="work", argv=agent, env={"WORD": {"$secret": "THE_WORD"}})

    with Host(release_at_rest=True) as host:
        run = host.submit(hiding)
        assert run.wait(timeout=60).status is RunStatus.COMPLETED
    run_id = run.run_id
    with reader() as look:
        assert look.output(run_id, "work")["summary"] == str(len("quite-a-secret-word"))
    assert logged(run_id, "stderr") == "[secret]\n"
