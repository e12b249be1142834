"""From an exact plan to an outcome: what each kind of executor makes of each kind of end."""

import textwrap
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import BaseModel

from actors.assignment import Assignment, Host
from actors.context import OperationFailed
from actors.control import Control, OperationAborted
from actors.operations import Operation
from actors.outcomes import Aborted, Failed
from actors.work import Job, perform
from hostres.errors import Code, HostlerError
from store.plans import NodePlan, OperationExecutor
from store.policy import FailureCode, Policy
from tests.actors.support import RUN_ID


class Given(BaseModel):
    n: int


def plan(executor: Any, input: Any, **policy: Any) -> NodePlan:
    return NodePlan(
        run_id=RUN_ID,
        node="a",
        executor=executor,
        input=input,
        input_sha256="0" * 64,
        dependencies={},
        policy=Policy(**policy),
    )


def operated(function, input):
    operation = Operation(
        kind="test.f", version=1, policy=Policy(), function=function, input_type=Given, output_type=Given
    )
    return done(plan(OperationExecutor(operation="test.f", version=1), input), operation)


def done(node_plan, code, control=None):
    errors: list[str] = []
    assignment = Assignment(run_id=RUN_ID, node="a", attempt=1, folder=Path("/"))
    job = Job(
        plan=node_plan,
        code=code,
        entry=never,
        write_log=lambda _stream, text: errors.append(text),
        assignment=assignment,
        host=cast("Host", None),
        lease=None,
    )
    outcome = perform(job, control or Control())
    return outcome, errors


def never(code):
    raise AssertionError(code)


def raises(error):
    def function(*_):
        raise error

    return function


def test_an_input_that_does_not_fit_is_refused_before_the_code_is_reached():
    reached = []
    outcome, errors = operated(lambda ctx, given: reached.append(given), {"n": "no number"})
    assert (outcome.code, outcome.dispatched) == (FailureCode.INVALID_DATA, False)
    assert "n" in outcome.message
    assert not reached
    assert not errors


def test_code_that_says_it_was_aborted_when_nobody_asked_it_to_stop_has_failed():
    """A run that nobody cancelled must not read as one."""
    outcome, errors = operated(raises(OperationAborted("enough")), {"n": 1})
    assert (outcome.code, outcome.dispatched) == (FailureCode.INTERNAL, True)
    assert "OperationAborted: enough" in outcome.message
    assert "Traceback" in errors[0]


def test_a_result_of_another_shape_is_refused_with_the_line_at_which_its_function_begins():
    """No line of that is on the way to the error, which is found once it has returned."""

    def function(ctx, given):
        return {"n": "many"}

    outcome, _ = operated(function, {"n": 1})
    assert outcome.code is FailureCode.INVALID_DATA
    assert outcome.message == f"Given.n is not a whole number (test_work.py:{function.__code__.co_firstlineno})"
    assert outcome.dispatched


def test_an_installed_function_that_is_the_operation_itself_is_its_authors():
    """The line in it that broke is named, not that at which it begins."""
    outcome, _ = operated(textwrap.indent, {"n": 1})
    assert "(textwrap.py:" in outcome.message
    assert f":{textwrap.indent.__code__.co_firstlineno})" not in outcome.message


def test_what_an_operation_says_itself_is_told_as_it_said_it():
    error = OperationFailed(FailureCode.PROVIDER_TRANSIENT, "busy", "wait", retryable=True)
    outcome, errors = operated(raises(error), {"n": 1})
    assert outcome == Failed(code=FailureCode.PROVIDER_TRANSIENT, message="busy", todo="wait", retryable=True)
    assert not errors


@pytest.mark.parametrize(
    ("code", "means"),
    [
        (Code.NOT_FOUND, FailureCode.UNAVAILABLE),
        (Code.OWNERSHIP_LOST, FailureCode.CONFLICT),
        (Code.NEWER_SCHEMA, FailureCode.INTERNAL),
    ],
)
def test_refusals_of_the_hosts_own_parts_keep_their_words(code, means):
    outcome, _ = operated(raises(HostlerError(code, "what", "todo")), {"n": 1})
    assert (outcome.code, outcome.message, outcome.todo) == (means, "what", "todo")


def test_whatever_is_raised_after_a_stop_was_asked_for_is_the_stop():
    control = Control()

    def function(ctx, given):
        control.abort("timeout", grace_s=0)
        raise ValueError("because it was stopped")

    operation = Operation(
        kind="test.f", version=1, policy=Policy(), function=function, input_type=Given, output_type=Given
    )
    outcome, _ = done(plan(OperationExecutor(operation="test.f", version=1), {"n": 1}), operation, control)
    assert outcome == Aborted(reason="timeout")


def test_code_that_this_host_lacks_is_a_conflict_before_anything_starts():
    outcome, _ = done(plan(OperationExecutor(operation="test.f", version=1), {"n": 1}), None)
    assert (outcome.code, outcome.dispatched) == (FailureCode.CONFLICT, False)
