"""Authority rules of one's own, from the configuration file to what a run does."""

import os
from pathlib import Path
from typing import Any

import pytest

from hostler.authority_keys import ACTIONS, BY_RECEIPT, EFFECTS, NEVER_ASKED, PREPARATIONS, VERDICTS
from hostler.compiler import compile_workflow
from hostler.host import Host
from hostler.loading import load
from store.contracts import EventKind
from store.lifecycle import RunStatus
from store.policy import Effect, PreparationKind
from store.reader import Reader
from store.receipts import USES
from store.rules import Action, Verdict
from tests.end_to_end.support import command, graph


def started(tmp_path: Path, text: str) -> tuple[RunStatus, list[dict[str, Any]], dict[str, str]]:
    """Run one command under the rules of *text*; return how it stands, what was asked, and why nodes failed."""
    Path(os.environ["HOSTLER_CONFIG"]).write_text(text, encoding="utf-8")
    workflow = load(graph(tmp_path, command("go", "touch", str(tmp_path / "done"))), folder=tmp_path)
    with Host() as host:
        outcome = host.start(compile_workflow(workflow, {}, folder=tmp_path)).wait(timeout=60)
        with Reader.open(host._home) as reader:
            asked = [dict(e.data) for e in reader.events(outcome.run_id) if e.kind is EventKind.APPROVAL_REQUIRED]
            failures = {n.key: n.failure.message for n in reader.nodes(outcome.run_id) if n.failure is not None}
    return outcome.status, asked, failures


def test_the_words_of_the_file_are_those_of_the_rules() -> None:
    """They are written twice, since a command that checks the file does without the rules."""
    assert tuple(Verdict) == VERDICTS
    assert tuple(Action) == ACTIONS
    assert tuple(Effect) == EFFECTS
    assert tuple(PreparationKind) == PREPARATIONS


def test_a_rule_may_ask_where_somebody_can_be_asked() -> None:
    """Effects and preparations wait for an approval; for what a receipt is for, a person gives one to somebody else."""
    assert set(Action) == {*NEVER_ASKED, *BY_RECEIPT, Action.PREPARE, Action.EFFECT}
    assert set(USES.values()) == BY_RECEIPT


RULE = '[[authority.rule]]\nid = "mine"\naction = "effect"\n'


def test_a_rule_that_asks_lets_the_run_rest_and_is_recorded(tmp_path: Path) -> None:
    status, asked, _ = started(tmp_path, RULE + 'verdict = "ask"\noperation = "comm*"\n')
    assert status is RunStatus.APPROVAL_REQUIRED
    assert [each["rule"] for each in asked] == ["mine"]
    assert not (tmp_path / "done").exists()


def test_a_rule_that_denies_fails_the_node_and_is_named(tmp_path: Path) -> None:
    status, asked, failures = started(tmp_path, RULE + 'verdict = "deny"\neffect = "local-derived-write"\n')
    assert (status, asked) == (RunStatus.FAILED, [])
    assert failures == {"go": "authority rule mine denies local-derived-write"}
    assert not (tmp_path / "done").exists()


@pytest.mark.parametrize("principal", ["agent", "human"])
def test_a_rule_about_agents_is_about_runs_that_agents_create(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, principal: str
) -> None:
    if principal == "agent":
        monkeypatch.setenv("HOSTLER_PRINCIPAL", "bot")
    status, _, _ = started(tmp_path, RULE + 'verdict = "ask"\nprincipal = "agent"\n')
    assert status is (RunStatus.APPROVAL_REQUIRED if principal == "agent" else RunStatus.COMPLETED)
