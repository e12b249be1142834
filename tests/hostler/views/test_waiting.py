"""What waits for a person."""

import pytest

from hostler.commands import COMMANDS
from hostler.views.waiting import waiting_on
from store.contracts import Failure
from store.lifecycle import RESTING, Status
from store.policy import FailureCode
from tests.hostler.views.support import FAILURE, NODE_SHA, PLAN, RUN_ID, node


@pytest.mark.parametrize("status", sorted(RESTING))
def test_every_resting_node_has_a_command_that_exists(status: Status) -> None:
    (entry,) = waiting_on(RUN_ID, PLAN, [node("upload", status, plan_sha256=NODE_SHA)])
    program, command, run, key, *_ = entry.command.split()
    assert (program, run, key) == ("hostler", RUN_ID, "upload")
    assert command in COMMANDS
    assert entry.message
    assert entry.to_json()["reason"] == status


def test_an_approval_names_the_exact_plan() -> None:
    (entry,) = waiting_on(RUN_ID, PLAN, [node("upload", Status.APPROVAL_REQUIRED, plan_sha256=NODE_SHA)])
    assert entry.to_json() == {
        "node": "upload",
        "reason": "approval-required",
        "message": "command wants to run; its effect is paid-cloud",
        "plan_sha256": NODE_SHA,
        "command": f"hostler approve {RUN_ID} upload --plan {NODE_SHA}",
    }


def test_a_gate_says_its_kind() -> None:
    (entry,) = waiting_on(RUN_ID, PLAN, [node("release", Status.APPROVAL_REQUIRED, plan_sha256=NODE_SHA)])
    assert "gate (publication)" in entry.message
    assert entry.command == f"hostler approve {RUN_ID} release --plan {NODE_SHA}"


def test_an_interrupted_effect_names_its_three_ways_out_and_what_each_says() -> None:
    """Each as it can be typed: `settle` alone asks on a terminal, and says nothing anywhere else."""
    (entry,) = waiting_on(RUN_ID, PLAN, [node("text", Status.AMBIGUOUS)])
    settle = f"hostler settle {RUN_ID} text"
    assert entry.typed("") == [f"{settle} --failed", f"or: {settle} --retry", f"or: {settle} --completed FILE"]
    assert all(how in entry.message for how in ("--failed", "--retry", "--completed"))


@pytest.mark.parametrize("status", [Status.AMBIGUOUS, Status.AMBIGUOUS_CODE])
def test_an_attempt_in_doubt_that_ended_by_itself_says_how_it_ended(status: Status) -> None:
    """Nobody interrupted a program that left by an exit code; what it did before that is in doubt all the same."""
    ended = Failure(code=FailureCode.SUBPROCESS, message="sh ended with exit code 4")
    (entry,) = waiting_on(RUN_ID, PLAN, [node("text", status, failure=ended)])
    assert entry.message.startswith("sh ended with exit code 4; it")
    assert " may " in entry.message
    for code in (FailureCode.AMBIGUOUS, FailureCode.CANCELLED):
        broken_off = Failure(code=code, message="stopped by drain")
        (entry,) = waiting_on(RUN_ID, PLAN, [node("text", status, failure=broken_off)])
        assert "was interrupted; it" in entry.message


def test_interrupted_code_names_both_ways_out() -> None:
    (entry,) = waiting_on(RUN_ID, PLAN, [node("text", Status.AMBIGUOUS_CODE)])
    assert entry.typed("  ") == [f"  hostler replay {RUN_ID} text", f"  or: hostler cancel {RUN_ID} --node text"]
    assert entry.to_json()["command"] == f"hostler replay {RUN_ID} text"
    assert entry.to_json()["otherwise"] == [f"hostler cancel {RUN_ID} --node text"]


def test_a_blocked_node_says_why_and_what_to_mend() -> None:
    """A retry alone would come to the same."""
    known = FAILURE.model_copy(update={"todo": "mend it, see hostler logs RUN NODE"})
    (entry,) = waiting_on(RUN_ID, PLAN, [node("text", Status.BLOCKED, failure=known)])
    assert entry.message == f"{FAILURE.message}; mend it, see hostler logs {RUN_ID} text"
    retry, correct = (f"hostler {word} {RUN_ID} text" for word in ("retry", "correct"))
    assert entry.typed("") == [retry, f"or: {correct} --input FILE"]
    assert "plan_sha256" not in entry.to_json()


def test_what_moves_by_itself_waits_for_nobody() -> None:
    nodes = [node("text", status) for status in Status if status not in RESTING]
    assert waiting_on(RUN_ID, PLAN, nodes) == []
