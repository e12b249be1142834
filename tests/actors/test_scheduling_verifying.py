"""A result is there: what it must show decides whether the node is completed, or blocked until a person acts."""

from collections.abc import Sequence
from typing import Any

from actors.actions import Action, EndLeftovers, Integrate, Judge
from actors.messages import Drain, IntegrationEnded, LeftoversEnded
from actors.outcomes import Integrated, NotIntegrated, Value
from actors.scheduling.operators import as_value
from store.contracts import GrantAction, Request, RequestKind
from store.lifecycle import RunStatus, Status
from store.plans import GateExecutor, PlannedNode
from store.policy import FailureCode, Resume
from store.terms import Evidence, EvidenceType, Terms
from store.workspace import GitWorkspace
from tests.actors.support import HUMAN, RUN_ID, Drive, Model, dispatched, kinds, left, planned, rule, writing


def due(**pieces: str) -> Terms:
    return Terms(evidence=evidence(**pieces))


def evidence(**pieces: str) -> tuple[Evidence, ...]:
    return tuple(Evidence(id=name.replace("_", "-"), type=EvidenceType(kind)) for name, kind in pieces.items())


def on_terms(node: PlannedNode, **pieces: str) -> PlannedNode:
    return node.model_copy(update={"terms": due(**pieces)})


def brings(value: Any = 1, **pieces: str) -> Value:
    made = as_value(value)
    return Value(value=made.value, data=made.data, sha256=made.sha256, evidence=evidence(**pieces))


def begun(*nodes: PlannedNode, **options: Any) -> Drive:
    drive = Drive(Model(nodes), **options)
    drive.begin()
    return drive


def test_wrong_evidence_blocks_with_exactly_what_is_missing_and_what_is_unexpected():
    """G22: due commit and test, brought commit and report."""
    drive = begun(on_terms(writing("a"), fix="commit", suite="test"), planned("b", "a"))
    drive.returned("a", brings(fix="commit", notes="report"))
    record = drive.model.records["a"]
    assert record.status is Status.BLOCKED
    assert record.failure is not None
    assert record.failure.message == "evidence missing: suite (test); unexpected: notes (report)"
    assert drive.model.outputs["a"] == 1, "the result is lost"
    (told,) = [data for data in drive.model.events("node-status", "a") if data["status"] == "blocked"]
    assert told["via"] == ["verifying"]
    assert told["evidence_wanting"] == {
        "missing": [{"id": "suite", "type": "test"}],
        "unexpected": [{"id": "notes", "type": "report"}],
    }
    assert drive.status("b") is Status.PENDING
    assert drive.state.status is RunStatus.BLOCKED


def test_the_same_name_with_another_type_is_both_missing_and_unexpected():
    drive = begun(on_terms(writing("a"), fix="commit"))
    drive.returned("a", brings(fix="report"))
    failure = drive.model.records["a"].failure
    assert failure is not None
    assert failure.message == "evidence missing: fix (commit); unexpected: fix (report)"


def test_evidence_that_nobody_asked_for_blocks_a_node_without_terms_too():
    drive = begun(writing("a"))
    drive.returned("a", brings(notes="report"))
    assert drive.status("a") is Status.BLOCKED


def test_what_is_due_and_no_more_completes_in_the_transaction_that_stores_the_result():
    drive = begun(on_terms(writing("a"), fix="commit", suite="test"), writing("b", "a"))
    before = len(drive.model.transactions)
    drive.returned("a", brings(suite="test", fix="commit"))
    assert drive.status("a") is Status.COMPLETED
    assert drive.status("b") is Status.RUNNING
    assert len(drive.model.transactions) == before + 1
    assert drive.model.records["a"].evidence == evidence(fix="commit", suite="test")


def test_a_node_without_evidence_due_is_never_verified():
    drive = begun(writing("a"))
    drive.returned("a")
    (told,) = [data for data in drive.model.events("node-status", "a") if data["status"] == "completed"]
    assert "via" not in told
    assert "evidence" not in told


def test_a_retry_of_a_blocked_node_judges_its_result_again_and_runs_nothing():
    drive = begun(on_terms(writing("a"), suite="test"))
    drive.returned("a", brings())
    again = drive.crash()
    again.begin()
    assert not dispatched(again.request(RequestKind.RETRY, "a"))
    assert (again.status("a"), again.state.nodes["a"].record.attempt) == (Status.BLOCKED, 1)
    told = again.model.events("node-status", "a")[-1]
    assert (told["from"], told["via"], told["status"]) == ("blocked", ["verifying"], "blocked")


def test_a_person_can_have_a_blocked_node_run_anew_and_the_old_result_counts_for_nothing():
    drive = begun(on_terms(writing("a"), suite="test"))
    drive.returned("a", brings(1))
    assert dispatched(drive.request(RequestKind.RETRY, "a", data={"anew": True})) == ["a"]
    assert drive.model.records["a"].output_sha256 is None
    drive.returned("a", brings(2, suite="test"))
    assert drive.status("a") is Status.COMPLETED
    assert drive.model.outputs["a"] == 2


def test_an_approval_that_is_due_rests_until_a_person_gives_it_for_the_exact_plan():
    drive = begun(on_terms(writing("a"), suite="test", look="human-approval"), writing("b", "a"))
    drive.returned("a", brings(suite="test"))
    record = drive.model.records["a"]
    assert record.failure is not None
    assert record.failure.code is FailureCode.AUTHORIZATION_REQUIRED
    assert record.failure.message == "evidence unapproved: look (human-approval)"
    again = drive.crash()
    again.begin()
    again.request(RequestKind.APPROVE, "a", plan_sha256="f" * 64)
    assert again.status("a") is Status.BLOCKED
    again.approve("a")
    assert (again.status("a"), again.status("b")) == (Status.COMPLETED, Status.RUNNING)
    (grant,) = again.model.grants
    assert (grant.action, grant.attempt) == (GrantAction.EVIDENCE, 1)
    assert again.model.records["a"].evidence == evidence(suite="test", look="human-approval")


def test_whoever_did_the_work_cannot_bring_the_approval_of_it():
    drive = begun(on_terms(writing("a"), look="human-approval"))
    drive.returned("a", brings(look="human-approval"))
    assert drive.status("a") is Status.BLOCKED
    for principal in ("agent:a", "service:cron"):
        drive.approve("a", principal=principal)
        assert drive.status("a") is Status.BLOCKED
    assert not drive.model.grants


def test_an_approval_does_not_heal_what_is_missing_and_is_not_taken_while_something_is():
    drive = begun(on_terms(writing("a"), suite="test", look="human-approval"))
    drive.returned("a", brings())
    drive.approve("a")
    assert drive.status("a") is Status.BLOCKED
    assert not drive.model.grants
    assert drive.model.events("request-refused", "a")


def test_an_approval_is_for_the_result_of_one_attempt():
    drive = begun(on_terms(writing("a", resume=Resume.DETERMINISTIC), look="human-approval"))
    drive.returned("a", brings(1))
    drive.approve("a")
    assert drive.status("a") is Status.COMPLETED
    other = begun(on_terms(writing("a"), look="human-approval"))
    other.returned("a", brings(1))
    other.state.approved.add(("a", other.state.nodes["a"].record.plan_sha256 or "", 1))
    other.request(RequestKind.RETRY, "a", data={"anew": True})
    other.returned("a", brings(2))
    assert other.status("a") is Status.BLOCKED, "what was approved was another result"


def test_a_person_who_looks_at_a_result_may_refuse_it():
    drive = begun(on_terms(writing("a"), look="human-approval"), planned("b", "a"))
    drive.returned("a", brings())
    drive.request(RequestKind.DENY, "a", plan_sha256=drive.state.nodes["a"].record.plan_sha256)
    assert drive.statuses() == {"a": "failed", "b": "skipped"}


def test_a_gate_that_is_approved_has_its_approval_and_other_gates_stay_open():
    """G4: a gate with a human approval among its evidence; the run ends only after the last gate."""
    gates = [
        on_terms(planned(key, executor=GateExecutor(gate=kind)), ok="human-approval")
        for key, kind in (("merge", "merge"), ("deploy", "deploy"))
    ]
    drive = begun(*gates)
    drive.approve("merge")
    assert drive.statuses() == {"merge": "completed", "deploy": "approval-required"}
    assert drive.model.records["merge"].evidence == evidence(ok="human-approval")
    assert drive.state.status is RunStatus.APPROVAL_REQUIRED
    gone = left(drive.approve("deploy"))
    assert gone is not None
    assert gone.status is RunStatus.COMPLETED


def test_a_blocked_result_is_cancelled_with_its_run():
    drive = begun(on_terms(writing("a"), suite="test"), planned("b", "a"))
    drive.returned("a", brings())
    gone = left(drive.request(RequestKind.CANCEL))
    assert gone is not None
    assert drive.statuses() == {"a": "cancelled", "b": "cancelled"}


def test_a_node_that_is_being_cancelled_is_not_blocked_so_that_its_run_can_end():
    drive = begun(on_terms(writing("a", cancellable=False), suite="test"))
    drive.request(RequestKind.CANCEL)
    gone = left(drive.returned("a", brings()))
    assert gone is not None
    assert drive.status("a") is Status.CANCELLED


def test_an_approval_completes_the_node_also_in_a_command_that_starts_nothing():
    drive = begun(on_terms(writing("a"), look="human-approval"), planned("b", "a"))
    drive.returned("a", brings())
    plan_sha256 = drive.state.nodes["a"].record.plan_sha256
    at = "2026-01-01T00:00:00.000Z"
    assert drive.model.post(
        Request(
            request_id="r", run_id=RUN_ID, kind=RequestKind.APPROVE, node="a", plan_sha256=plan_sha256,
            principal=HUMAN, at=at,
        )
    )  # fmt: skip
    command = drive.crash(jobs=0)
    for case in kinds(command.begin(), Judge):
        command.send(rule(case))
    assert command.model.records["a"].status is Status.COMPLETED
    assert command.model.records["b"].status is Status.READY


def in_tree(node: PlannedNode, **pieces: str) -> PlannedNode:
    workspace = GitWorkspace(repository="repository", base="main")
    return node.model_copy(update={"workspace": workspace, "terms": due(**pieces) if pieces else None})


def integrated(drive: Drive, node: str = "a", answer: Any = None) -> list[Action]:
    answer = answer or Integrated(commit="c" * 40)
    return drive.send(IntegrationEnded(node=node, attempt=drive.state.nodes[node].record.attempt, answer=answer))


def wanted(actions: Sequence[Action]) -> list[tuple[str, bool]]:
    return [(action.node, action.begin) for action in kinds(actions, Integrate)]


CONFLICT = NotIntegrated(reason="conflict", message="both changed it", todo="merge", paths=("src/a", "src/b"))


def test_a_result_is_stored_before_it_is_integrated_and_its_node_completes_after():
    drive = begun(in_tree(writing("a")), writing("b", "a"))
    assert wanted(drive.returned("a")) == [("a", True)]
    record = drive.model.records["a"]
    assert record.status is Status.VERIFYING
    assert drive.model.outputs["a"] == {"by": "a"}
    assert dispatched(integrated(drive)) == ["b"]
    assert drive.status("a") is Status.COMPLETED
    told = drive.model.events("node-status", "a")[-1]
    assert told["integration"] == {"commit": "c" * 40}


def test_what_cannot_be_integrated_is_blocked_with_the_reason_and_the_paths_and_a_retry_integrates_again():
    drive = begun(in_tree(writing("a")))
    drive.returned("a")
    integrated(drive, answer=CONFLICT)
    record = drive.model.records["a"]
    assert record.status is Status.BLOCKED
    assert record.failure is not None
    assert record.failure.message == "not integrated, conflict: both changed it: src/a, src/b"
    told = drive.model.events("node-status", "a")[-1]
    assert told["integration"] == {"reason": "conflict", "paths": ["src/a", "src/b"]}
    again = drive.crash()
    again.begin()
    actions = again.request(RequestKind.RETRY, "a")
    assert (wanted(actions), dispatched(actions)) == ([("a", True)], [])
    integrated(again)
    assert again.status("a") is Status.COMPLETED


def test_evidence_is_judged_before_anything_is_integrated():
    drive = begun(in_tree(writing("a"), suite="test", look="human-approval"))
    assert wanted(drive.returned("a", brings())) == []
    drive.request(RequestKind.RETRY, "a", data={"anew": True})
    assert wanted(drive.returned("a", brings(suite="test"))) == []
    assert wanted(drive.approve("a")) == [("a", True)]
    integrated(drive)
    assert drive.model.records["a"].evidence == evidence(suite="test", look="human-approval")


def test_a_host_that_died_between_the_result_and_its_integration_has_the_next_one_integrate_it():
    """G23: the resume integrates what was stored; nothing runs again, and leftovers are ended first."""
    drive = begun(in_tree(writing("a")))
    drive.returned("a")
    again = drive.crash()
    assert [action.nodes for action in kinds(again.begin(), EndLeftovers)] == [("a",)]
    actions = again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert (wanted(actions), dispatched(actions)) == ([("a", True)], [])
    assert integrated(again)
    assert again.status("a") is Status.COMPLETED


def test_beside_what_a_dead_host_left_running_nothing_is_integrated():
    drive = begun(in_tree(writing("a")))
    drive.returned("a")
    again = drive.crash()
    again.begin()
    assert wanted(again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={"a": "git (pid 7)"}))) == []
    assert again.status("a") is Status.BLOCKED


def test_a_cancel_during_an_integration_waits_for_what_it_comes_to():
    for answer, status in ((None, Status.COMPLETED), (CONFLICT, Status.CANCELLED)):
        drive = begun(in_tree(writing("a")), writing("b", "a"))
        drive.returned("a")
        assert left(drive.request(RequestKind.CANCEL)) is None
        assert left(integrated(drive, answer=answer)) is not None
        assert drive.statuses() == {"a": status.value, "b": "cancelled"}


def test_after_a_crash_a_cancelled_node_only_finds_out_whether_it_was_integrated():
    drive = begun(in_tree(writing("a")))
    drive.returned("a")
    drive.request(RequestKind.CANCEL)
    again = drive.crash()
    again.begin()
    assert wanted(again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))) == [("a", False)]


def test_a_host_that_drains_finishes_an_integration_and_begins_none():
    drive = begun(in_tree(writing("a")), in_tree(writing("b")))
    drive.returned("a")
    drive.send(Drain(grace_s=1))
    assert wanted(drive.returned("b")) == []
    gone = left(integrated(drive))
    assert gone is not None
    assert gone.drained
    assert drive.statuses() == {"a": "completed", "b": "verifying"}


def test_an_answer_that_nobody_waits_for_changes_nothing():
    drive = begun(in_tree(writing("a")))
    integrated(drive)
    assert drive.status("a") is Status.RUNNING
    drive.returned("a")
    drive.send(IntegrationEnded(node="a", attempt=7, answer=Integrated(commit=None)))
    assert drive.status("a") is Status.VERIFYING
