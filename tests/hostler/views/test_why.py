"""Why a run or a node does not move: a paragraph for every status, and a command that exists."""

import shlex
from dataclasses import replace

import pytest

from hostler.command_line import parsed, parser_of
from hostler.views.why import Scene, why_node, why_run
from hostres.leftovers import Leftover
from hostres.rows import ADMITTED, WAITING, Blocked, Row
from store import terms
from store.lifecycle import FINAL, LIVE, RUN_FINAL, RUN_RESTS, RunStatus, Status
from store.plans import AgentExecutor, ComputeExecutor, Executor, GateExecutor, RunLimits
from store.run_list import Owner
from store.run_view import RunView
from tests.hostler.views.support import AT, FAILURE, NODE_SHA, PLAN, RUN_ID, node, planned, record

KEYS = [each.key for each in PLAN.nodes]


def scene(*nodes, status=RunStatus.RUNNING, alive: bool | None = True, tickets=None, missing=None) -> Scene:
    known = {each.key: each for each in nodes}
    run = RunView(
        record=record(),
        status=status,
        started_at=AT,
        finished_at=None,
        owner=None if alive is None else Owner(host="host_a", alive=alive),
        summary=None,
        cancel_waits=False,
    )
    return Scene(
        run=run,
        plan=PLAN,
        nodes=tuple(known.get(key) or node(key, Status.PENDING) for key in KEYS),
        tickets=tickets or {},
        missing=missing,
    )


def ticket(state: str, *blocked: Blocked) -> Row:
    return Row(
        ticket=41,
        state=state,
        claims={"whisper": 1},
        name=f"{RUN_ID} text",
        pid=7,
        processes=(),
        since=AT,
        for_s=75.0,
        blocked_by=blocked,
    )


DONE = {Status.COMPLETED, Status.CANCELLED, Status.INCOMPATIBLE}
"""Nothing moves such a node any more, and nothing is to be typed for it."""


def can_be_typed(command: str) -> bool:
    """Whether the parser takes it; FILE and NAME stand for what a person puts there."""
    words = shlex.split(command)
    if words[0] == "hostler":
        parsed(parser_of(words[1]), words[1:])
    return words[0] in {"hostler", "kill"}


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("alive", [True, False, None])
@pytest.mark.parametrize(
    "executor", [None, AgentExecutor(external=True), GateExecutor(gate="deploy"), ComputeExecutor(compute="count")]
)
def test_every_status_has_a_plain_paragraph_and_whatever_can_move_has_a_command_that_can_be_typed(
    status: Status, alive: bool | None, executor: Executor | None
) -> None:
    """Whether a host works on the run, it is gone, or there never was one."""
    audio = node("audio", Status.COMPLETED if status is not Status.SKIPPED else Status.FAILED, failure=FAILURE)
    due = {"due_at": AT, "started_at": AT, "attempt": 1}
    run_status = next((of_run for of_node, of_run in RUN_RESTS if of_node is status), RunStatus.RUNNING)
    if status in FINAL:
        run_status = RunStatus.FAILED
    plan = PLAN.model_copy(
        update={"nodes": (PLAN.nodes[0], planned("text", executor, after=("audio",)), *PLAN.nodes[2:])}
    )
    told = node("text", status, failure=FAILURE, plan_sha256=NODE_SHA, **due)
    said = why_node(replace(scene(audio, told, status=run_status, alive=alive), plan=plan), "text")
    assert said.text.endswith(".")
    assert said.text.isprintable()
    assert said.status == status
    assert (said.command is None) is (status in DONE), said
    assert said.command is None or can_be_typed(said.command)
    if alive is not True and status in LIVE:
        assert "No host works on the run" in said.text
        by_a_worker = isinstance(executor, AgentExecutor) and status in (Status.READY, Status.RUNNING)
        expected = "hostler work " if by_a_worker else f"hostler resume {RUN_ID}"
        assert str(said.command).startswith(expected)


@pytest.mark.parametrize("status", list(RunStatus))
@pytest.mark.parametrize("alive", [True, False, None])
def test_every_run_has_one_too(status: RunStatus, alive: bool | None) -> None:
    rests = {of_run: of_node for of_node, of_run in RUN_RESTS}
    first = rests.get(status, Status.FAILED if status in RUN_FINAL else Status.RUNNING)
    said = why_run(scene(node("audio", first, failure=FAILURE), status=status, alive=alive))
    assert said.text.endswith(".")
    assert said.text.isprintable()
    assert said.command is not None
    assert can_be_typed(said.command)


def test_a_run_whose_owner_is_about_to_begin_says_how_to_look_on() -> None:
    assert why_run(scene()).command == f"hostler watch {RUN_ID}"


def test_a_ready_node_names_what_takes_its_room() -> None:
    limited = PLAN.model_copy(update={"limits": RunLimits(active=1)})
    ready = scene(node("audio", Status.RUNNING, attempt=1), node("text", Status.READY))
    assert "when its host has room for another node beside audio." in why_node(ready, "text").text
    said = why_node(replace(ready, plan=limited), "text").text
    assert "the limits of the run allow one node at a time; active: audio." in said
    idle = scene(node("text", Status.READY))
    assert why_node(idle, "text").text.endswith("when its host has room for another node.")


@pytest.mark.parametrize(("limit", "said"), [("per_owner", "for agent:ann"), ("per_parent", "below lead")])
def test_a_ready_node_that_an_owner_or_a_parent_has_no_room_for_says_so(limit: str, said: str) -> None:
    on = terms.Terms(owner=terms.Owner(role="agent", id="ann"), parent="lead")
    nodes = tuple(each.model_copy(update={"terms": on, "dependencies": ()}) for each in PLAN.nodes)
    plan = PLAN.model_copy(update={"nodes": nodes, "limits": RunLimits.model_validate({limit: 1})})
    ready = scene(node("audio", Status.QUEUED, attempt=1), node("text", Status.READY))
    assert f"allow one node at a time {said}; active: audio." in why_node(replace(ready, plan=plan), "text").text


def test_a_pending_node_names_what_is_first_to_blame_and_what_moves_that() -> None:
    waiting = node("upload", Status.APPROVAL_REQUIRED, plan_sha256=NODE_SHA)
    done = [node("audio", Status.COMPLETED), node("text", Status.COMPLETED)]
    said = why_node(scene(*done, waiting, status=RunStatus.APPROVAL_REQUIRED, alive=None), "release")
    assert "It waits for upload (approval-required)." in said.text
    assert "paid-cloud" in said.text
    assert said.command == f"hostler approve {RUN_ID} upload --plan {NODE_SHA}"


def test_all_that_a_person_can_do_about_what_may_have_happened_is_named_wherever_it_is_asked():
    """Of the node, of its run, and of what waits for it."""
    unknown = scene(node("audio", Status.AMBIGUOUS, attempt=1), status=RunStatus.AMBIGUOUS, alive=None)
    expected = [f"hostler settle {RUN_ID} audio {how}" for how in ("--failed", "--retry", "--completed FILE")]
    for said in (why_node(unknown, "audio"), why_run(unknown), why_node(unknown, "text")):
        assert said.commands == expected
        assert said.to_json(RUN_ID)["otherwise"] == expected[1:]
    resting = scene(node("audio", Status.READY), alive=None)
    assert why_node(resting, "audio").otherwise == ()
    assert "otherwise" not in why_node(resting, "audio").to_json(RUN_ID)


def test_a_queued_node_says_which_resource_is_short_and_who_has_it() -> None:
    short = Blocked(resource="whisper", wanted=1, free=0, tickets=(40,))
    queued = [node("audio", Status.COMPLETED), node("text", Status.QUEUED)]
    said = why_node(scene(*queued, tickets={"text": ticket(WAITING, short)}), "text")
    assert "ticket 41" in said.text
    assert "whisper: wants 1, 0 free, held by ticket 40" in said.text


def test_a_running_node_names_its_ticket() -> None:
    said = why_node(scene(node("text", Status.RUNNING, attempt=2), tickets={"text": ticket(ADMITTED)}), "text")
    assert "Attempt 2 has run since" in said.text
    assert "holds whisper=1 with ticket 41" in said.text


def test_a_running_node_says_that_it_is_being_cancelled_and_which_of_its_processes_were_stopped() -> None:
    running = node("text", Status.RUNNING, attempt=1, cancelling=True)
    ffmpeg = Leftover(pid=7, start_time=1.0, command=("ffmpeg", "-i"), run_id=RUN_ID, node="text", stopped=True)
    other = replace(ffmpeg, pid=8, node="audio")
    said = why_node(replace(scene(running), stopped=[ffmpeg, other]), "text")
    assert "It is being cancelled, and will be once nothing of it lives." in said.text
    assert "Somebody has stopped ffmpeg -i (pid 7): nothing" in said.text
    assert said.command == "kill -CONT 7"


def test_a_host_that_somebody_has_stopped_is_named_for_the_run_and_all_that_it_would_move() -> None:
    """It lives, so that nobody else may go on with its runs, and nothing of them moves."""
    known = replace(scene(node("audio", Status.COMPLETED), node("text", Status.QUEUED)), stopped_host=9)
    for said in (why_run(known), why_node(known, "text"), why_node(known, "release")):
        assert said.text.endswith("Somebody has stopped its host (pid 9): it does nothing until it is continued.")
        assert said.command == "kill -CONT 9"
    assert "stopped" not in why_node(known, "audio").text


def test_a_skipped_node_names_what_failed_and_how_to_try_that_again() -> None:
    failed = node("audio", Status.FAILED, failure=FAILURE)
    skipped = [node(key, Status.SKIPPED) for key in KEYS[1:]]
    said = why_node(scene(failed, *skipped, status=RunStatus.FAILED), "release")
    assert "because audio is failed: subprocess: ffmpeg ended" in said.text
    assert said.command == f"hostler retry {RUN_ID} audio"


def test_a_run_whose_host_is_gone_says_so_and_how_to_resume_it() -> None:
    stopped = scene(node("audio", Status.RUNNING, attempt=1), alive=False)
    for said in (why_run(stopped), why_node(stopped, "audio")):
        assert "No host works on the run: host_a is gone." in said.text
        assert said.command == f"hostler resume {RUN_ID}"


def test_what_this_program_lacks_for_the_run_is_named() -> None:
    said = why_run(
        scene(node("audio", Status.READY), alive=None, missing="operation media.extract-audio@1: not installed")
    )
    assert "cannot go on with it: operation media.extract-audio@1: not installed" in said.text
    assert f"hostler resume {RUN_ID} --accept-incompatible" in said.text
    assert said.command is None


def test_a_run_that_waits_for_a_person_names_what_this_program_lacks_too():
    waiting = node("upload", Status.APPROVAL_REQUIRED, plan_sha256=NODE_SHA)
    said = why_run(scene(waiting, status=RunStatus.APPROVAL_REQUIRED, alive=None, missing="operation x@1: gone"))
    assert "It waits for a person: upload" in said.text
    assert "cannot go on with it: operation x@1: gone" in said.text
    assert said.command.startswith("hostler approve")


def test_a_node_that_waits_for_its_next_try_says_when_and_why() -> None:
    later = node("audio", Status.CORRECTIVE, failure=FAILURE, failures=2, due_at="2030-01-01T00:10:00.000Z")
    said = why_node(scene(later), "audio")
    assert "subprocess (2 times): ffmpeg ended" in said.text
    assert "is tried again at 2030-01-01T00:10:00.000Z" in said.text


@pytest.mark.parametrize("alive", [None, False, True])
def test_what_could_not_be_found_out_says_why_and_what_can_be_done(alive: bool | None) -> None:
    failed = node("audio", Status.RUNNING, attempt=2, failure=FAILURE)
    told = replace(scene(failed, alive=alive), deferred={"audio": "the shop does not answer; wait for it"})
    for said in (why_node(told, "audio"), why_run(told)):
        assert "Attempt 2 is over, failed (subprocess: ffmpeg ended" in said.text
        assert "the shop does not answer; wait for it. It is asked about once more" in said.text
        assert "leave reconcile out" in said.text
        assert said.command is not None
        assert can_be_typed(said.command)
    assert why_node(told, "audio").command == f"hostler {'recover' if alive else 'resume'} {RUN_ID}" + (
        " audio" if alive else ""
    )
    interrupted = node("audio", Status.RUNNING, attempt=2)
    assert "Attempt 2 is over, and" in why_node(replace(told, nodes=[interrupted, *told.nodes[1:]]), "audio").text
