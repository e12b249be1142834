"""An approval is confirmed on the controlling terminal, wherever the standard streams lead."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostler.commands import posting
from tests.end_to_end.support import (
    PROGRAM,
    Terminal,
    command,
    gate,
    graph,
    hostler,
    read_until,
    refused,
    shown,
    started,
    statuses,
)
from tests.support import until

CONFIRM = '[authority]\nconfirm = "terminal"\n'


@pytest.fixture
def waiting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the hash of the plan with which a gate waits."""
    assert main(["run", graph(tmp_path, gate("ok"))]) == 3
    capsys.readouterr()
    (waits,) = shown()["waiting_on"]
    return str(waits["plan_sha256"])


@pytest.mark.usefixtures("waiting")
def test_what_is_piped_in_approves_nothing() -> None:
    done = subprocess.run(
        [*PROGRAM, "approve", "-", "ok"], input="y\ny\n", capture_output=True, text=True, check=False,
        start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, statuses()) == (3, {"ok": "approval-required"})


@pytest.mark.usefixtures("waiting")
def test_on_a_terminal_the_question_goes_to_the_person_though_something_else_is_piped_in() -> None:
    program = ("/bin/sh", "-c", 'yes | "$0" "$@"')
    with Terminal("approve", "-", "ok", program=(*program, *PROGRAM)) as terminal:
        terminal.expect("approve? [y]es, [d]eny, [N]ot now: ")
        terminal.write("n\n")
        assert terminal.wait() == 3
    assert statuses() == {"ok": "approval-required"}
    with Terminal("approve", "-", "ok", program=(*program, *PROGRAM)) as terminal:
        terminal.expect("approve? [y]es, [d]eny, [N]ot now: ")
        terminal.write("y\n")
        assert terminal.wait() == 0
    assert statuses() == {"ok": "completed"}


def test_where_every_approval_is_confirmed_a_named_plan_alone_approves_nothing(waiting: str) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text(CONFIRM, encoding="utf-8")
    name = ("approve", "-", "ok", "--plan", waiting)
    error = refused(*name, code=5)
    assert "this is confirmed on the terminal, and this process has none in front of it" in error
    give = ("receipt", "create", "-", "ok", "--for", "human:bob", "--plan", waiting)
    assert "have a person do it who has one" in refused(*give, code=5)
    assert statuses() == {"ok": "approval-required"}
    for answer, code in (("n", 3), ("y", 0)):
        with Terminal(*name) as terminal:
            terminal.expect("approve? [y/N] ")
            assert f"plan    {waiting}" in terminal.screen, "what is confirmed is shown there"
            terminal.write(f"{answer}\n")
            assert terminal.wait() == code
    assert statuses() == {"ok": "completed"}


def test_a_denial_of_a_named_plan_needs_no_terminal(waiting: str) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text(CONFIRM, encoding="utf-8")
    hostler("approve", "-", "ok", "--plan", waiting, "--deny")
    assert statuses() == {"ok": "failed"}


def test_a_receipt_without_a_named_plan_is_confirmed_on_the_terminal(waiting: str) -> None:
    give = ("receipt", "create", "-", "ok", "--for", "human:bob", "--id", "b")
    assert "name the exact plan with --plan" in refused(*give, code=5)
    with Terminal(*give) as terminal:
        terminal.expect("let human:bob approve it once? [y/N] ")
        assert waiting in terminal.screen
        terminal.write("y\n")
        assert terminal.wait() == 0


@pytest.mark.usefixtures("waiting")
def test_an_empty_plan_is_none_and_gives_no_receipt() -> None:
    """A script whose variable is not set would give leave for what nobody has looked at."""
    assert "'' is no plan digest" in refused("receipt", "create", "-", "ok", "--for", "human:bob", "--plan", "", code=5)
    assert hostler("receipt", "list", "-").strip().endswith("has no receipts")


def test_a_plan_is_asked_for_only_where_one_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = graph(tmp_path, gate("ok"), {**command("after", "true"), "after": ["ok"]}, command("bad", "false"))
    assert main(["run", flow]) == 3
    capsys.readouterr()
    for node, status in (("after", "pending"), ("bad", "failed")):
        for plan in ("", "abc", "a" * 64):
            said = refused("approve", "-", node, "--plan", plan, code=5)
            assert f"node {node} is {status}; there is nothing to approve" in said
    for use in ("approve", "retry", "replay"):
        for plan in ("", "abc", "a" * 64):
            give = ("receipt", "create", "-", "after", "--for", "agent:x", "--to", use, "--plan", plan)
            assert "node after has no exact plan yet" in refused(*give, code=5)
    assert "'abc' is no plan digest; " in refused(
        "receipt", "create", "-", "bad", "--for", "agent:x", "--to", "retry", "--plan", "abc", code=5
    )
    assert hostler("receipt", "list", "-").strip().endswith("has no receipts")


def test_of_several_answers_those_that_hold_are_told_though_one_is_refused(tmp_path: Path) -> None:
    """Somebody else was first at one of them."""
    assert main(["run", graph(tmp_path, gate("one"), gate("two"))]) == 3
    plan = next(str(each["plan_sha256"]) for each in shown()["waiting_on"] if each["node"] == "two")
    with Terminal("approve", "-") as terminal:
        terminal.expect("approve? [y]es, [d]eny, [N]ot now: ")
        terminal.write("y\n")
        terminal.expect("node two of ")
        hostler("approve", "-", "two", "--plan", plan, "--deny")
        terminal.write("y\n")
        terminal.expect("node two is failed; there is nothing to approve")
        assert terminal.wait() == 5
        assert "approved one with plan" in terminal.screen
        assert "approved two" not in terminal.screen


def test_a_host_that_stands_still_has_decided_nothing_and_nobody_is_told_that_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two people one who approved and one who denied were both told that it was done."""
    monkeypatch.setattr(posting, "ANSWER_S", 0.0)
    busy = command("busy", "sleep", "60") | {"budget": {"tasks": 9}}
    with started("run", graph(tmp_path, gate("ok"), busy)) as host:
        read_until(host, "busy  running")
        until(lambda: statuses() == {"ok": "approval-required", "busy": "running"})
        (waits,) = shown()["waiting_on"]
        host.send_signal(signal.SIGSTOP)
        try:
            exactly = ("--plan", str(waits["plan_sha256"]))
            for what, *words in (("approve", "approve", *exactly), ("deny", "approve", *exactly, "--deny"),
                                 ("recover", "recover")):  # fmt: skip
                node = "busy" if what == "recover" else "ok"
                asked = [words[0], "-", node, *words[1:]]
                assert main(asked) == 0
                late = f"{what} of {node} asked for; host .* has not answered yet; the request waits for it\n"
                assert re.fullmatch(late, capsys.readouterr().out)
                assert main([*asked, "--json"]) == 0
                assert json.loads(capsys.readouterr().out)["answered"] is False
            assert main(["budget", "-", "busy", "--add", "tasks=1", "--json"]) == 0
            told = json.loads(capsys.readouterr().out)
            assert (told["answered"], told["budget"]["tasks"]["limit"]) == (False, 9)
            receipt = ("receipt", "create", "-", "ok", "--for", "human:bob", *exactly, "--id", "r1")
            assert main([*receipt]) == 0
            assert "is asked for; host " in capsys.readouterr().out
        finally:
            host.send_signal(signal.SIGCONT)
        until(lambda: statuses()["ok"] == "completed")
        hostler("cancel", "-")
        host.wait()
