"""A failed node gets another input: the same node, the same dependents, a plan of its own; the plan of the run stays."""

import re

import pytest

from actors.actions import Dispatch, Judge
from actors.messages import LeftoversEnded
from hostres.errors import HostlerError
from store.contracts import Request, RequestKind
from store.lifecycle import RunStatus, Status
from store.plans import AgentExecutor, CommandExecutor, PlannedNode
from store.policy import FailureCode, Policy, Retry
from store.revisions import LARGEST_BYTES, check_revision, completed
from store.terms import Envelope
from tests.actors.support import HUMAN, RUN_ID, Drive, Model, dispatched, kinds, left, paid, planned, rule, writing

NEW = {"path": "other.mp4"}


def begun(*nodes: PlannedNode) -> Drive:
    made = Drive(Model(nodes))
    made.begin()
    return made


def correct(made: Drive, node: str, value=NEW, *, revision: int = 0, **fields) -> list:
    return made.request(RequestKind.CORRECT, node, data={"input": value, "revision": revision}, **fields)


def request(kind: RequestKind, node: str, **fields) -> Request:
    return Request(
        request_id="asked",
        run_id=RUN_ID,
        kind=kind,
        node=node,
        principal=HUMAN,
        at="2026-01-01T00:00:00.000Z",
        **fields,
    )


def given(actions: list) -> list:
    return [action.plan.input for action in kinds(actions, Dispatch)]


def refusals(made: Drive, node: str) -> list[str]:
    return [event["message"] for event in made.model.events("request-refused", node)]


def test_a_corrected_node_runs_with_its_new_input_and_its_dependents_follow_it():
    """G21: a new revision of the same node, the same dependents; the old revision stays among its attempts."""
    made = begun(writing("a"), writing("b", "a"), writing("c", "b"), writing("long"))
    made.failed("a", FailureCode.INVALID_DATA)
    old = made.state.nodes["a"].record.plan_sha256
    assert made.statuses() == {"a": "failed", "b": "skipped", "c": "skipped", "long": "running"}
    actions = correct(made, "a", reason="it was the wrong film")
    assert given(actions) == [NEW]
    record = made.model.records["a"]
    assert (record.status, record.attempt, record.revision, record.failures) == (Status.RUNNING, 2, 1, 0)
    assert record.plan_sha256 not in (None, old)
    assert made.statuses() == {"a": "running", "b": "pending", "c": "pending", "long": "running"}
    (grant,) = made.model.grants
    assert (grant.action, grant.plan_sha256, grant.revision.input) == ("correct", old, NEW)
    assert (grant.principal, grant.reason) == (HUMAN, "it was the wrong film")
    (event,) = made.model.events("grant", "a")
    assert event["revision"] == 1
    assert [one["plan_sha256"] for one in made.model.events("node-plan", "a")] == [old, record.plan_sha256]
    made.returned("a")
    assert made.status("b") is Status.RUNNING
    assert made.model.plan.nodes[0].input == {}, "the plan of the run stays what it was"


def test_the_earlier_end_of_the_run_stays_in_its_events_when_a_correction_reopens_it():
    """The run goes on after it had failed, with what was skipped, and its log tells of both ends."""
    made = begun(writing("a"), writing("b", "a"))
    assert left(made.failed("a")).status is RunStatus.FAILED
    made.model.post(request(RequestKind.CORRECT, "a", data={"input": NEW, "revision": 0}))
    again = made.crash()
    judged = kinds(again.begin(), Judge)
    actions = [action for case in judged for action in again.send(rule(case))]
    again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert made.model.events("run-reopened") == [{"status": "running"}]
    assert not kinds(actions, Dispatch), "what is left of the failed attempt is looked for first"
    assert given(again.after) == [NEW]
    again.returned("a")
    assert left(again.returned("b")).status is RunStatus.COMPLETED
    assert [end["status"] for end in made.model.events("run-finalized")] == ["failed", "completed"]


@pytest.mark.parametrize("crash", [False, True])
def test_a_correction_survives_a_crash_and_a_retry_repeats_it(crash):
    """The last revision counts, also for the next owner and for a later retry."""
    made = begun(writing("a"), writing("long"))
    made.failed("a")
    correct(made, "a")
    made.failed("a")
    if crash:
        made = made.crash()
        made.begin()
        made.request(RequestKind.RETRY, "a")
        actions = made.send(LeftoversEnded(nodes=("a", "long"), ended={}, remaining={}))
    else:
        actions = made.request(RequestKind.RETRY, "a")
    assert NEW in given(actions)
    made.failed("a")
    assert given(correct(made, "a", {"path": "third.mp4"}, revision=1)) == [{"path": "third.mp4"}]
    assert made.model.records["a"].revision == 2


def test_a_host_that_only_settles_requests_leaves_the_new_input_to_the_one_that_works_on_the_run():
    """The command takes a run up for a moment; whoever resumes it plans the node from its revision."""
    made = begun(writing("a"), writing("b", "a"))
    made.failed("a")
    made.model.post(request(RequestKind.CORRECT, "a", data={"input": NEW, "revision": 0}))
    settling = made.crash(jobs=0)
    for case in kinds(settling.begin(), Judge):
        settling.send(rule(case))
    record = made.model.records["a"]
    assert (record.status, record.revision, record.plan_sha256) == (Status.READY, 1, None)
    again = made.crash()
    again.begin()
    assert given(again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))) == [NEW]


def test_what_has_completed_or_was_replaced_already_is_not_corrected():
    """G21: correcting a completed node, or a revision that was replaced, is refused."""
    made = begun(writing("a"), writing("b"), writing("long"))
    made.returned("b")
    correct(made, "b")
    assert "node b is completed; there is nothing to correct" in refusals(made, "b")[0]
    made.failed("a")
    correct(made, "a")
    made.failed("a")
    correct(made, "a", {"path": "again.mp4"}, revision=0)
    assert "has revision 1 by now; the request corrects 0" in refusals(made, "a")[0]
    old = made.model.grants[0].plan_sha256
    correct(made, "a", {"path": "again.mp4"}, revision=1, plan_sha256=old)
    assert f"not {old}" in refusals(made, "a")[1]
    assert made.model.records["a"].revision == 1
    assert len(made.model.grants) == 1


def test_a_blocked_node_is_corrected_too():
    """Blocked nodes wait for just that."""
    policy = Policy(effect="local-derived-write", retry=Retry(exhausted="block"))
    made = begun(planned("a", policy=policy), writing("b", "a"))
    made.failed("a")
    assert made.status("a") is Status.BLOCKED
    assert given(correct(made, "a")) == [NEW]
    assert made.status("b") is Status.PENDING


def test_an_approval_of_the_old_input_does_not_count_for_the_new_one():
    """An approval is for one exact plan, and a corrected node has another."""
    made = begun(paid("a"), writing("long"))
    made.approve("a")
    made.failed("a")
    made.request(RequestKind.SETTLE, "a", data={"outcome": "failed"})
    for value in (NEW, {}):
        assert not dispatched(correct(made, "a", value, revision=made.model.records["a"].revision))
        assert made.status("a") is Status.APPROVAL_REQUIRED
        plan = made.model.records["a"].plan_sha256
        made.request(RequestKind.DENY, "a", plan_sha256=plan)


def test_a_correction_with_the_same_input_is_another_plan_all_the_same():
    """The revision is part of the exact plan."""
    made = begun(writing("a"), writing("long"))
    made.failed("a")
    old = made.model.records["a"].plan_sha256
    correct(made, "a", {})
    assert made.model.records["a"].plan_sha256 != old


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"$ref": {"node": "b"}}, "it refers to node b, which a does not depend on"),
        ({"x": "y" * LARGEST_BYTES}, "bytes are allowed"),
        ({"$ref": 3}, "not a reference"),
    ],
)
def test_an_input_that_cannot_be_the_nodes_is_refused_before_anything_changes(value, why):
    """A revision waits for the same nodes, is bounded, and is a template like the plan's."""
    made = begun(writing("x"), writing("a", "x"), writing("b"), writing("long"))
    made.returned("x")
    made.failed("a")
    correct(made, "a", value)
    assert why.replace("bytes are allowed", "are allowed") in refusals(made, "a")[0]
    assert (made.status("a"), made.model.records["a"].revision) == (Status.FAILED, 0)
    assert given(correct(made, "a", {"from": {"$ref": {"node": "x", "path": ["by"]}}})) == [{"from": "x"}]


def wrong(node: PlannedNode, value, **more) -> str | None:
    try:
        check_revision(node, value, **({"folder": "/run", "outputs": {}} | more))
    except HostlerError as error:
        return f"{error.code}: {error.what}"
    return None


ARGV = {"$ref": {"node": "x", "path": ["word"]}}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (["true"], "the input of a command is an object of argv, env, stdin, value"),
        ({"argv": []}, "its argv is no list of words"),
        ({"argv": "true"}, "its argv is no list of words"),
        ({"env": {}}, "its argv is no list of words"),
        ({"argv": ["true"], "cwd": "/"}, "the input of a command is an object of"),
        ({"argv": [None]}, "argv[0] is nothing"),
        ({"argv": ["a\0b"]}, "argv[0] holds a NUL"),
        ({"argv": ["true"], "env": {"HOSTLER_RUN": "x"}}, "cannot be set"),
        ({"argv": ["true"], "env": {"A": {"$secret": "HOSTLER_RUN"}}}, "cannot be set"),
        ({"argv": ["true"], "stdin": 3}, "stdin is 3, not a text"),
        ({"argv": ["rm"]}, "its authority does not name the command rm"),
        ({"argv": ["true", {"$ref": {"node": "x", "path": ["words"]}}]}, "the output of node x has no $.words"),
        ({"argv": ["true", {"$ref": {"node": "x"}}]}, "argv[1] is an object"),
        ({"argv": ["true", ARGV], "env": {"A": {"$secret": "B"}}, "stdin": None, "value": None}, None),
    ],
)
def test_a_command_stays_a_command(value, why):
    """Each word is held to what a plan is held to, and a reference to what it leads to."""
    command = planned("a", "x", executor=CommandExecutor(), input={"argv": ["false"]})
    found = wrong(command, value, envelope=Envelope(commands=("true",)), outputs={"x": {"word": "text"}})
    assert (found is None) if why is None else re.match(f"invalid-data: .*{re.escape(why)}", str(found))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("text", "the input of an agent is an object of argv, env, objective, value"),
        (None, "the input of an agent is an object of"),
        ({"objective": "y", "argv": ["sh"], "q": 2}, "the input of an agent is an object of"),
        ({"objective": "y"}, "its argv is no list of words"),
        ({"objective": "y", "argv": None}, "its argv is no list of words"),
        ({"argv": ["sh"]}, "objective is nothing, not a text"),
        ({"objective": "", "argv": ["sh"]}, "its objective has 0 characters"),
        ({"objective": 3, "argv": ["sh"]}, "objective is 3, not a text"),
        ({"objective": "y", "argv": ["sh"], "env": ["A"]}, "env is no object"),
        ({"objective": "y", "argv": ["sh"], "stdin": "x"}, "the input of an agent is an object of"),
        ({"objective": "y", "argv": ["sh"], "env": {}, "value": {"q": 2}}, None),
    ],
)
def test_an_agent_stays_an_agent(value, why):
    """It keeps an objective, and its program if it has one; work that others take gets none."""
    found = wrong(planned("a", executor=AgentExecutor(), input={}), value)
    assert (found is None) if why is None else re.match(f"invalid-data: .*{re.escape(why)}", str(found))
    external = planned("a", executor=AgentExecutor(external=True), input={})
    assert wrong(external, {"objective": "y", "argv": None, "env": {}, "value": 1}) is None
    for more in ({"argv": ["sh"]}, {"env": {"A": "b"}}):
        assert (
            wrong(external, {"objective": "y", **more})
            == "invalid-data: argv and env are for its program, and it has none"
        )


def test_what_a_correction_of_a_program_leaves_out_stays_as_it_was():
    """Of an agent as of a command; whatever else runs is given its input whole."""
    before = {"argv": ["sh"], "env": {"A": "b"}, "objective": "x", "value": {"q": 1}}
    agent = planned("a", executor=AgentExecutor(), input=before)
    assert completed(agent, {"objective": "y"}) == {**before, "objective": "y"}
    assert completed(agent, "text") == "text"
    assert completed(planned("a", input={"n": 1}), {"m": 2}) == {"m": 2}


def test_an_agent_that_cannot_be_asked_any_more_is_refused_by_whoever_owns_the_run():
    """However the request came there; the node stays what it was."""
    agent = planned("a", executor=AgentExecutor(), input={"argv": ["sh"], "objective": "x", "env": {}, "value": None})
    made = begun(agent, writing("long"))
    made.failed("a")
    correct(made, "a", {"objective": "y"})
    assert refusals(made, "a") == ["the new input of node a: its argv is no list of words"]
    assert (made.status("a"), made.model.records["a"].revision) == (Status.FAILED, 0)


def test_a_node_that_failed_before_it_had_a_plan_is_corrected_as_well():
    """Its input led nowhere; the new one does."""
    made = begun(writing("x"), planned("a", "x", input={"$ref": {"node": "x", "path": ["nothing"]}}), writing("long"))
    made.returned("x")
    assert made.status("a") is Status.FAILED
    assert made.model.records["a"].plan_sha256 is None
    assert dispatched(correct(made, "a")) == ["a"]
