"""Planners: asked once, off the scheduler's thread, authorized twice, bounded, cancellable, retried by the rule."""

import pytest

from actors.actions import AskPlanner, ForgetPlanner, SetTimer
from actors.messages import Drain, Due, LeftoversEnded, PlannerAnswered
from actors.outcomes import Exact, Failed, Prepared
from actors.scheduling.operators import as_value
from actors.scheduling.planning import PLANNING
from actors.scheduling.retrying import RETRY
from actors.scheduling.state import Port
from store.contracts import RequestKind
from store.lifecycle import RunStatus, Status
from store.limits import VALUE_BYTES
from store.plans import PlannedNode, PlanPhase
from store.policy import Effect, FailureCode, Policy, PreparationKind, Retry
from tests.actors.support import Drive, Model, dispatched, kinds, planned

WORK = ("test.work", 1)
BOTH = {WORK: frozenset({Port.PREPARE, Port.PLAN})}
ONLY_PLAN = {WORK: frozenset({Port.PLAN})}


def planning(key: str = "a", **policy) -> PlannedNode:
    return planned(key, policy=Policy(effect=Effect.LOCAL_DERIVED_WRITE, **policy), input={"n": 1})


def drive(*nodes, ports=BOTH, **options) -> Drive:
    made = Drive(Model(nodes or [planning()]), ports=ports, **options)
    made.begin()
    return made


def asked(made: Drive) -> AskPlanner:
    return kinds(made.after, AskPlanner)[-1]


def answer(made: Drive, said, node: str = "a", number: int | None = None) -> list:
    count = made.state.nodes[node].asked if number is None else number
    return made.send(PlannerAnswered(node=node, number=count, answer=said))


def prepared(**bounds) -> Prepared:
    return Prepared(
        descriptors={"films": 3}, max_input_bytes=bounds.get("max_input_bytes"), max_seconds=bounds.get("max_seconds")
    )


def exact(n: int = 7, *keys: str) -> Exact:
    return Exact(input={"n": n}, keys=keys)


def broken(code: FailureCode = FailureCode.UNAVAILABLE) -> Failed:
    return Failed(code=code, message="no such project", todo="open it", dispatched=False)


def test_a_planner_is_asked_for_the_preparation_and_then_for_the_exact_plan():
    made = drive()
    assert made.status("a") is Status.PREPARING
    assert (asked(made).input, asked(made).preparation) == ({"n": 1}, None)
    answer(made, prepared())
    preparation = asked(made).preparation
    assert preparation is not None
    assert preparation.descriptors == {"films": 3}
    assert dispatched(answer(made, exact(7, "project:x"))) == []
    plan = made.state.nodes["a"].plan
    assert plan is not None
    assert (plan.phase, plan.input, plan.keys) == (PlanPhase.EFFECT, {"n": 7}, ("project:x",))
    assert plan.preparation_sha256 == made.state.nodes["a"].record.preparation_sha256
    made.admitted("a")
    assert made.status("a") is Status.RUNNING


def test_an_operation_that_only_plans_is_asked_once():
    made = drive(ports=ONLY_PLAN)
    assert dispatched(answer(made, exact())) == ["a"]
    assert len(kinds(made.after, AskPlanner)) == 1


def test_a_planner_is_asked_only_when_the_intent_to_ask_is_durable():
    made = drive()
    assert not kinds(made.now, AskPlanner)
    assert made.model.records["a"].status is Status.PREPARING


@pytest.mark.parametrize("kind", [PreparationKind.SCREEN_CAPTURE, PreparationKind.TYPED_TEXT])
def test_what_is_private_is_asked_for_before_it_is_looked_at_and_the_effect_after(kind):
    """R6."""
    policy = Policy(effect=Effect.PAID_CLOUD, resume="ambiguous-after-dispatch", preparation=(kind,))
    made = drive(planned("a", policy=policy, input={"n": 1}), ports=ONLY_PLAN)
    assert made.status("a") is Status.APPROVAL_REQUIRED
    assert not kinds(made.after, AskPlanner)
    made.approve("a")
    assert made.status("a") is Status.PREPARING
    answer(made, exact())
    assert made.status("a") is Status.APPROVAL_REQUIRED
    made.approve("a")
    assert made.status("a") is Status.RUNNING
    assert [grant.action.value for grant in made.model.grants] == ["preparation", "effect"]
    record = made.model.records["a"]
    assert [grant.plan_sha256 for grant in made.model.grants] == [record.preparation_sha256, record.plan_sha256]


def test_a_grant_of_the_preparation_is_none_of_the_effect():
    policy = Policy(effect=Effect.PAID_CLOUD, preparation=(PreparationKind.CAMERA,))
    made = drive(planned("a", policy=policy), ports=ONLY_PLAN)
    first = made.state.nodes["a"].record.preparation_sha256
    made.approve("a")
    answer(made, Exact(input={}, keys=()))
    made.request(RequestKind.APPROVE, "a", plan_sha256=first)
    assert made.status("a") is Status.APPROVAL_REQUIRED
    assert len(made.model.events("request-refused")) == 1


@pytest.mark.parametrize("kind", [PreparationKind.LOCAL_MEDIA, PreparationKind.PROJECT_STATE])
def test_looking_at_local_media_and_at_the_project_needs_no_one(kind):
    made = drive(planning(preparation=(kind,)), ports=ONLY_PLAN)
    assert made.status("a") is Status.PREPARING


def test_a_denied_preparation_fails_its_node_before_anything_is_looked_at():
    made = drive(planning(preparation=(PreparationKind.MICROPHONE,)), ports=ONLY_PLAN)
    made.request(RequestKind.DENY, "a", plan_sha256=made.state.nodes["a"].record.frozen_sha256)
    assert made.status("a") is Status.FAILED
    assert not kinds(made.after, AskPlanner)


@pytest.mark.parametrize("bounds", [{"max_seconds": 3601.0}, {"max_input_bytes": 33 << 20}, {"max_seconds": 0}])
def test_bounds_beyond_the_policy_are_refused(bounds):
    made = drive()
    answer(made, prepared(**bounds))
    assert made.status("a") is Status.FAILED
    failure = made.state.nodes["a"].record.failure
    assert failure is not None
    assert failure.code is FailureCode.INVALID_DATA


def test_the_bounds_of_the_preparation_hold_for_the_exact_plan():
    made = drive()
    answer(made, prepared(max_input_bytes=4))
    answer(made, exact())
    assert made.status("a") is Status.FAILED
    late = drive()
    answer(late, prepared(max_seconds=2.0))
    answer(late, exact())
    deadlines = [action.seconds for action in kinds(late.after, SetTimer) if action.timer.kind == "deadline"]
    assert deadlines == [2.0]


def test_too_many_or_too_long_publication_keys_are_refused():
    for keys in (tuple(f"project:{index}" for index in range(65)), ("x" * 513,), ("",)):
        made = drive(ports=ONLY_PLAN)
        answer(made, exact(1, *keys))
        assert made.status("a") is Status.FAILED


def test_a_file_name_that_cannot_be_fails_before_anything_starts():
    """Field case 32: of a name that the planner made."""
    made = drive(planning(publishes=("to",)), ports=ONLY_PLAN)
    answer(made, Exact(input={"to": "x" * 256}, keys=()))
    assert made.status("a") is Status.FAILED
    assert "a file name of 256 bytes" in made.state.nodes["a"].record.failure.message


def test_a_preparation_that_always_fails_is_tried_as_often_as_the_policy_says_and_starts_nothing():
    for exhausted, ends in (("fail", Status.FAILED), ("block", Status.BLOCKED)):
        made = drive(planning(retry=Retry(attempts=2, exhausted=exhausted)))
        answer(made, broken())
        assert made.status("a") is Status.PREPARING
        answer(made, broken())
        assert made.status("a") is ends
        assert len(kinds(made.after, AskPlanner)) == 2
        assert made.state.nodes["a"].record.attempt == 0


def test_an_answer_to_an_earlier_question_does_not_count():
    made = drive(planning(retry=Retry(attempts=2, delays=(5.0,))))
    answer(made, broken())
    assert made.status("a") is Status.CORRECTIVE
    (timer,) = [action.timer for action in kinds(made.now, SetTimer) if action.timer.kind == RETRY]
    made.send(Due(timer=timer))
    answer(made, prepared(), number=1)
    assert made.status("a") is Status.PREPARING
    assert made.state.nodes["a"].plan is None


TOO_LARGE = Prepared(descriptors={"film": "x" * VALUE_BYTES}, max_input_bytes=None, max_seconds=None)


def nested(levels: int) -> dict:
    value: dict = {}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (TOO_LARGE, "its preparation plan is too large"),
        (Prepared(descriptors=nested(245), max_input_bytes=None, max_seconds=None), "nested too deeply"),
    ],
)
def test_a_preparation_that_cannot_be_stored_fails_its_node_and_the_run_ends(said, why):
    made = drive(planning(), planning("b"))
    answer(made, said)
    assert made.status("a") is Status.FAILED
    failure = made.model.records["a"].failure
    assert failure is not None
    assert (failure.code, why in failure.message) == (FailureCode.INVALID_DATA, True)
    assert made.state.active == 1, "the other one goes on"
    answer(made, prepared(), "b")
    assert made.status("b") is Status.PREPARING


def test_a_run_that_was_left_preparing_what_cannot_be_stored_is_ended_by_its_next_owner():
    again = drive().crash(ports=BOTH)
    again.begin()
    answer(again, TOO_LARGE)
    assert again.model.records["a"].status is Status.FAILED
    assert again.state.status is RunStatus.FAILED


def test_an_exact_plan_that_cannot_be_stored_fails_its_node_whoever_works_it_out():
    large = {"film": "x" * (VALUE_BYTES - 100)}
    by_planner = drive(ports=ONLY_PLAN)
    answer(by_planner, Exact(input=large, keys=()))
    by_itself = drive(planned("z"), planned("a", "z", input={"$ref": {"node": "z", "path": []}}), ports={})
    by_itself.returned("z", as_value(large))
    for made in (by_planner, by_itself):
        assert made.status("a") is Status.FAILED
        assert "effect plan is too large" in made.model.records["a"].failure.message


def test_a_planner_that_does_not_answer_runs_out_of_time():
    made = drive()
    (timer,) = [action.timer for action in kinds(made.after, SetTimer) if action.timer.kind == PLANNING]
    actions = made.send(Due(timer=timer))
    assert made.status("a") is Status.FAILED
    assert [(each.node, each.number) for each in kinds(actions, ForgetPlanner)] == [("a", 1)]
    answer(made, prepared())
    assert made.status("a") is Status.FAILED


def test_a_cancel_lets_the_planner_go():
    made = drive()
    actions = made.request(RequestKind.CANCEL)
    assert made.status("a") is Status.CANCELLED
    assert kinds(actions, ForgetPlanner)
    assert made.state.active == 0


def test_a_drained_host_gives_the_node_back_as_ready_and_the_next_one_asks_again():
    made = drive()
    actions = made.send(Drain(grace_s=1))
    assert kinds(actions, ForgetPlanner)
    assert made.model.records["a"].status is Status.READY
    again = made.crash(ports=BOTH)
    again.begin()
    assert again.status("a") is Status.PREPARING


def test_a_crash_while_preparing_loses_the_question_and_nothing_else():
    made = drive()
    answer(made, prepared())
    again = made.crash(ports=BOTH)
    again.begin()
    assert asked(again).preparation is not None, "its preparation was frozen"
    answer(again, exact())
    last = again.crash(ports=BOTH)
    last.begin()
    actions = last.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert dispatched(actions) == ["a"], "its exact plan is frozen too"
    assert not kinds(last.after, AskPlanner)


def test_no_more_nodes_prepare_at_once_than_there_are_jobs():
    made = drive(*(planning(key) for key in "abc"), jobs=2)
    assert [each.node for each in kinds(made.after, AskPlanner)] == ["a", "b"]


def test_of_the_nodes_that_are_ready_the_highest_priority_goes_first():
    nodes = [planned("a"), planned("b").model_copy(update={"priority": 3}), planned("c")]
    made = Drive(Model(nodes), jobs=1)
    made.begin()
    assert dispatched(made.now) == ["b"]
    made.returned("b")
    assert dispatched(made.now) == ["b", "a"]
