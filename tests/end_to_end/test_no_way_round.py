"""No way round an approval: neither command line, resume, parallel branches, the API nor another process."""

import secrets
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostler.compiler import compile_workflow
from hostler.config import Config
from hostler.host import Host
from hostler.loading import load
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.requests import post
from tests.end_to_end.support import command, graph, refused, shown, statuses

PAYS = {"effect": "paid-cloud", "resume": "ambiguous-after-dispatch"}
BRANCHES = ("one", "two")


@pytest.fixture
def waiting(tmp_path: Path) -> dict[str, str]:
    """Return the plans with which two parallel branches wait."""
    pays = [command(key, "touch", str(tmp_path / key), **PAYS) for key in BRANCHES]  # type: ignore[arg-type]
    assert main(["run", graph(tmp_path, *pays)]) == 3
    return {each["node"]: each["plan_sha256"] for each in shown()["waiting_on"]}


def paid(tmp_path: Path) -> list[str]:
    return [key for key in BRANCHES if (tmp_path / key).exists()]


def test_nothing_that_an_agent_types_or_calls_lets_a_node_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: dict[str, str]
) -> None:
    run_id, plan = shown()["run_id"], waiting["one"]
    refused("approve", run_id, "one", "--plan", plan, code=5, HOSTLER_PRINCIPAL="bot")
    monkeypatch.setenv("HOSTLER_PRINCIPAL", "bot")
    for typed in (
        ["approve", run_id, "one", "--plan", plan],
        ["approve", run_id, "one", "--receipt", "none"],
        ["receipt", "create", run_id, "one", "--for", "agent:other", "--plan", plan],
        ["retry", run_id, "one"],
        ["replay", run_id, "one"],
        ["settle", run_id, "one", "--retry"],
        ["cancel", run_id],
    ):
        assert main(typed) in {4, 5}, typed
    for kind in (RequestKind.APPROVE, RequestKind.RETRY, RequestKind.REPLAY, RequestKind.SETTLE, RequestKind.RECEIPT):
        for principal in ("agent:bot", "service:bot", "bot"):
            request = Request(
                request_id=secrets.token_hex(8), run_id=run_id, kind=kind, node="one", plan_sha256=plan,
                principal=principal, data={"outcome": "retry"}, at=SystemClock().now().at,
            )  # fmt: skip
            assert post(Home.open(Config.load().home, create=False), request, clock=SystemClock())
    assert main(["resume", run_id]) == 3
    with Host(release_at_rest=True) as host:
        assert host.resume(run_id).wait(timeout=60).status == "approval-required"
        again = compile_workflow(load(str(tmp_path / "test.json"), folder=tmp_path), {}, folder=tmp_path)
        assert host.start(again).wait(timeout=60).status == "approval-required", "a run of its own waits too"
    assert statuses(run_id) == dict.fromkeys(BRANCHES, "approval-required")
    assert paid(tmp_path) == []


def test_what_was_approved_of_one_branch_or_run_opens_no_other(tmp_path: Path, waiting: dict[str, str]) -> None:
    first = shown()["run_id"]
    assert main(["approve", first, "two", "--plan", waiting["one"]]) == 5
    assert main(["approve", first, "one", "--plan", waiting["one"]]) == 0
    assert main(["run", str(tmp_path / "test.json")]) == 3
    second = shown()["run_id"]
    assert main(["approve", second, "one", "--plan", waiting["one"]]) == 5, "the same words in another run"
    assert main(["resume", second]) == 3
    assert paid(tmp_path) == []
    assert main(["resume", first]) == 3
    assert paid(tmp_path) == ["one"]
    assert statuses(first) == {"one": "completed", "two": "approval-required"}


def test_the_first_answer_counts_and_the_second_is_told_so(
    tmp_path: Path, waiting: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Field case 91."""
    name = ["approve", shown()["run_id"], "one", "--plan", waiting["one"]]
    assert main([*name, "--deny"]) == 0
    assert main(name) == 5
    assert "node one is failed; there is nothing to approve" in capsys.readouterr().err
    assert paid(tmp_path) == []
