"""What strangers' planners and reconcilers answer: plain values that can be stored, or one line that names the field."""

import enum
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, model_serializer

from actors.answers import found
from actors.control import Control, OperationAborted
from actors.operations import ExactPlan, Operation, Preparation, Reconciliation
from actors.outcomes import Exact, Failed, Finding, Found, Prepared
from actors.planner import Planning, Question, answer, still_runs
from hostres.errors import HostlerError
from store.limits import VALUE_BYTES
from store.plans import NodePlan, OperationExecutor, PlanPhase
from store.policy import FailureCode, Policy
from store.values import Domain, digest

RUN_ID = "run_01jzzzzzzzzzzzzzzzzzzzzzzz"
TOKEN = "ghp_" + "a" * 36


class Film(BaseModel):
    name: str
    length: float = 0.0
    more: Any = None


class Receipt(BaseModel):
    price: int


class Longer(Film):
    chapters: int = 0


class Kind(enum.StrEnum):
    FILM = "project:film"


class Broken(Film):
    @model_serializer
    def write(self) -> dict[str, Any]:
        raise ValueError("no")


def operation(**ports: Any) -> Operation:
    return Operation(
        kind="test.film",
        version=1,
        policy=Policy(),
        function=lambda ctx, film: None,
        input_type=Film,
        output_type=Receipt,
        **ports,
    )


def planning() -> Planning:
    return Planning(run_id=RUN_ID, node="a", folder=Path("/films"), control=Control())


def preparation(descriptors: Any) -> NodePlan:
    return NodePlan(
        run_id=RUN_ID,
        node="a",
        phase=PlanPhase.PREPARATION,
        executor=OperationExecutor(operation="test.film", version=1),
        input={"name": "x"},
        input_sha256=digest(Domain.INPUT, {"name": "x"}),
        dependencies={},
        policy=Policy(),
        descriptors=descriptors,
    )


def asked(port: Any, *, descriptors: Any = None, prepare: bool = False) -> Prepared | Exact | Failed:
    """Ask a planner that gives *port*, or calls it."""
    call = port if callable(port) and not isinstance(port, BaseModel) else lambda *_: port
    question = Question(
        operation=operation(prepare=call, plan=call),
        input={"name": "x"},
        preparation=None if prepare else preparation(descriptors),
    )
    return answer(question, planning())


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


GivenPreparation: Any = Preparation  # whose author may have written anything
GivenPlan: Any = ExactPlan
GivenFinding: Any = Reconciliation
GivenFilm: Any = Film
FILM = Film(name="x")
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "prepare of test.film gave NoneType, not a Preparation"),
        (GivenPlan(input=FILM), "prepare of test.film gave ExactPlan, not a Preparation"),
        (GivenPreparation(descriptors={"a": math.nan}), "$.a: nan is not a finite number"),
        (GivenPreparation(descriptors={"a": object()}), "$.a: a object is not a JSON value"),
        (GivenPreparation(descriptors={"a": "\ud800"}), "$.a: a string with a lone surrogate"),
        (GivenPreparation(descriptors={"\ud800": 1}), "a string with a lone surrogate"),
        (GivenPreparation(descriptors={1: 1}), "a key of type int"),
        (GivenPreparation(descriptors=2**53), "an integer beyond"),
        (GivenPreparation(descriptors=(1, 2)), "a tuple is not a JSON value"),
        (GivenPreparation(descriptors=nested(201)), "nested too deeply"),
        (GivenPreparation(descriptors=CIRCLE), "nested too deeply"),
        (GivenPreparation(descriptors="x" * VALUE_BYTES), "too large to be stored, 33554434 bytes"),
        (
            GivenPreparation(max_input_bytes="1"),
            "max_input_bytes that prepare of test.film gave is str, not a whole number",
        ),
        (GivenPreparation(max_input_bytes=True), "is bool, not a whole number"),
        (GivenPreparation(max_input_bytes=1.5), "is float, not a whole number"),
        (GivenPreparation(max_input_bytes=0), "is no number of bytes"),
        (GivenPreparation(max_input_bytes=10**400), "is no number of bytes"),
        (GivenPreparation(max_seconds="1"), "max_seconds that prepare of test.film gave is str, not a number"),
        (GivenPreparation(max_seconds=True), "is bool, not a number"),
        (GivenPreparation(max_seconds=-1), "is no time in seconds"),
        (GivenPreparation(max_seconds=math.nan), "is no time in seconds"),
        (GivenPreparation(max_seconds=math.inf), "is no time in seconds"),
        (GivenPreparation(max_seconds=10**400), "is no time in seconds"),
    ],
)
def test_a_wrong_preparation_is_invalid_data_and_names_the_field(said: Any, why: str) -> None:
    failed = asked(said, prepare=True)
    assert isinstance(failed, Failed)
    assert (failed.code, failed.dispatched) == (FailureCode.INVALID_DATA, False)
    assert why in failed.message
    assert len(failed.message) < 1000


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "plan of test.film gave NoneType, not an ExactPlan"),
        (FILM, "plan of test.film gave Film, not an ExactPlan"),
        (GivenPlan(input={"name": "x"}), "an input that is dict, not a model"),
        (GivenPlan(input=Receipt(price=1)), "Film"),
        (GivenPlan(input=GivenFilm.model_construct()), "name"),
        (GivenPlan(input=Film.model_construct(name="\ud800")), "$.name: a string with a lone surrogate"),
        (GivenPlan(input=Film(name="x", length=math.inf)), "$.length: inf"),
        (GivenPlan(input=Film(name="x", more=nested(220))), "nested too deeply"),
        (GivenPlan(input=Film(name="x", more=2**60)), "an integer beyond"),
        (GivenPlan(input=Film(name="x", more=object())), "cannot be written as JSON"),
        (GivenPlan(input=Broken(name="x")), "cannot be written as JSON"),
        (GivenPlan(input=Film(name="x" * VALUE_BYTES)), "too large to be stored"),
        (GivenPlan(input=FILM, keys="project:shop"), "keys that are str, not a tuple of texts"),
        (GivenPlan(input=FILM, keys=None), "keys that are NoneType"),
        (GivenPlan(input=FILM, keys=(key for key in "ab")), "keys that are generator"),
        (GivenPlan(input=FILM, keys=(1,)), "a publication key that is int, not a text"),
        (GivenPlan(input=FILM, keys=(b"project:x",)), "a publication key that is bytes"),
        (GivenPlan(input=FILM, keys=("film:\udcff.mp4",)), "no Unicode text: 'film:\\udcff.mp4'"),
        (GivenPlan(input=FILM, keys=("",)), "a publication key of 0 characters"),
        (GivenPlan(input=FILM, keys=("x" * 513,)), "a publication key of 513 characters"),
        (GivenPlan(input=FILM, keys=tuple(f"project:{index}" for index in range(65))), "65 publication keys"),
    ],
)
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
def test_a_wrong_exact_plan_is_invalid_data_and_names_the_field(said: Any, why: str) -> None:
    failed = asked(said)
    assert isinstance(failed, Failed)
    assert failed.code is FailureCode.INVALID_DATA
    assert why in failed.message
    assert len(failed.message) < 1000


def test_what_is_right_comes_out_as_plain_values() -> None:
    said = asked(GivenPreparation(descriptors={"n": 600.0, "kind": Kind.FILM}, max_seconds=2), prepare=True)
    assert said == Prepared(descriptors={"n": 600, "kind": "project:film"}, max_input_bytes=None, max_seconds=2.0)
    assert isinstance(said, Prepared)
    assert isinstance(said.descriptors, dict)
    assert type(said.descriptors["kind"]) is str
    plan = asked(GivenPlan(input=Longer(name="y"), keys=[Kind.FILM, "project:shop"]))
    assert isinstance(plan, Exact)
    assert (plan.input, plan.keys) == (
        {"name": "y", "length": 0, "more": None, "chapters": 0},
        ("project:film", "project:shop"),
    )
    assert [type(key) for key in plan.keys] == [str, str]


def test_what_was_answered_and_what_is_frozen_are_not_the_planners_to_change() -> None:
    mine = {"film": ["a"]}
    said = asked(GivenPreparation(descriptors=mine), prepare=True)
    mine["film"].append("b")
    assert said == Prepared(descriptors={"film": ["a"]}, max_input_bytes=None, max_seconds=None)
    frozen = preparation({"film": ["a"]})

    def spoils(ctx: Planning, film: Film, descriptors: Any) -> ExactPlan:
        descriptors["film"].clear()
        return GivenPlan(input=film)

    answer(Question(operation=operation(plan=spoils), input={"name": "x"}, preparation=frozen), planning())
    assert frozen.descriptors == {"film": ["a"]}


@pytest.mark.parametrize("said", [GivenPlan(input=Film(name=TOKEN)), GivenPlan(input=FILM, keys=(f"project:{TOKEN}",))])
def test_a_secret_in_a_plan_is_refused_wherever_it_stands(said: Any) -> None:
    failed = asked(said)
    assert isinstance(failed, Failed)
    assert "a secret" in failed.message
    assert TOKEN not in failed.message


@pytest.mark.parametrize(
    "error", [KeyError("x"), SystemExit(3), KeyboardInterrupt(), OperationAborted(), GeneratorExit()]
)
def test_whatever_a_planner_or_a_probe_raises_there_is_an_answer(error: BaseException) -> None:
    def raises(*_: Any) -> Any:
        raise error

    assert isinstance(asked(raises), Failed)
    assert still_runs(operation(probe=raises), {"name": "x"}, planning()) is None


def altered(finding: Any, message: Any = "") -> GivenFinding:
    """A finding that is none any more: where it is made, it is refused."""
    said = GivenFinding(Finding.RETRY)
    object.__setattr__(said, "finding", finding)
    object.__setattr__(said, "message", message)
    return said


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "reconcile of test.film gave NoneType, neither its output nor a Reconciliation"),
        ("x", "gave str, neither its output nor a Reconciliation"),
        (Finding.RETRY, "gave Finding, neither its output nor a Reconciliation"),
        (altered("nope"), "found 'nope', which is no Finding"),
        (altered("retry"), "found 'retry', which is no Finding"),
        (altered(Finding.RETRY, 5), "gave a message that is int, not a text"),
        (altered(Finding.RETRY, None), "gave a message that is NoneType"),
    ],
)
def test_a_wrong_answer_of_a_reconciler_is_refused_and_says_what_is_wrong(said: Any, why: str) -> None:
    with pytest.raises(HostlerError) as refused:
        found(said, operation())
    assert why in refused.value.what


def test_a_right_answer_of_a_reconciler_is_taken() -> None:
    assert found(Receipt(price=1), operation()) == {"price": 1}
    assert found({"price": 1}, operation()) == {"price": 1}
    assert found(GivenFinding(Finding.RETRY, "m"), operation()) == Found(finding=Finding.RETRY, message="m")
