"""What an exception of a node's own code means for the node."""

import json
import pickle

import pytest
from pydantic import BaseModel, ValidationError

from actors.failures import OperationFailed, failed_by, fault_of, fault_of_code
from store.policy import FailureCode


def throw(error):
    raise error


def raised(error):
    try:
        throw(error)
    except BaseException as caught:
        return caught


def test_an_exception_of_compute_code_is_its_answer_and_not_an_interruption():
    """Trusted code that ran to its end has answered: nothing about it is ambiguous."""
    fault = fault_of_code(raised(KeyError("x")), None, trusted=True)
    assert fault.code is FailureCode.INVALID_DATA
    assert "KeyError" in fault.message
    assert "test_failures.py" in fault.message
    assert "new run" in fault.todo
    assert "Traceback" in (fault.trace or "")


class Out(BaseModel):
    """What `unfit` does not give."""

    v: str


def reads(text):
    return json.loads(text)


def unfit(value):
    return Out(v=value)


@pytest.mark.parametrize("function", [reads, unfit])
def test_the_innermost_line_of_the_author_is_named_and_not_one_of_a_library(function) -> None:
    """Neither json nor pydantic is what an author can mend."""
    with pytest.raises((TypeError, ValidationError)) as caught:
        function(3)
    message = fault_of_code(caught.value, function, trusted=True).message
    assert message.endswith(f" (test_failures.py:{function.__code__.co_firstlineno + 1})")


def test_compute_code_that_leaves_by_system_exit_may_have_done_anything():
    """It did not run to its end."""
    assert fault_of_code(raised(SystemExit(1)), None, trusted=True).code is FailureCode.INTERNAL


def test_an_operation_that_raises_is_at_fault_itself():
    """The same exception in an operation says nothing of its input."""
    fault = fault_of_code(raised(KeyError("x")), None, trusted=False)
    assert fault.code is FailureCode.INTERNAL
    assert "hostler logs" in fault.todo


@pytest.mark.parametrize("after_s", [None, 0, 3600.0])
def test_a_failure_comes_back_whole_from_another_process(after_s: float | None) -> None:
    """With all that it says of another try."""
    error = OperationFailed(FailureCode.PROVIDER_TRANSIENT, "busy", "wait", retryable=True, after_s=after_s)
    back = pickle.loads(pickle.dumps(error))
    assert vars(back) == vars(error)
    assert failed_by(fault_of(back), dispatched=True).after_s == after_s


@pytest.mark.parametrize("after_s", [-1, 3601, float("nan")])
def test_a_time_that_nobody_can_wait_is_refused(after_s: float) -> None:
    """As a mistake in the operation."""
    with pytest.raises(ValueError, match="after_s"):
        OperationFailed(FailureCode.PROVIDER_TRANSIENT, "busy", after_s=after_s)
