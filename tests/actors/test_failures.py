"""What an exception of a node's own code means for the node."""

import json
import pickle
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from actors.failures import OperationFailed, failed_by, fault_of, fault_of_code
from actors.operations import Reconciliation
from actors.outcomes import Finding
from actors.scheduling.outcomes import check_storable
from hostres.errors import Code, HostlerError
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


WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "code": (("not-found", "m"), {}),
    "code is None": ((None, "m"), {}),
    "code is \\[\\]": (([], "m"), {}),
    "message": ((FailureCode.INVALID_DATA, ValueError("x")), {}),
    "todo": ((FailureCode.INVALID_DATA, "m", None), {}),
    "retryable": ((FailureCode.INVALID_DATA, "m"), {"retryable": "yes"}),
    "after_s": ((FailureCode.INVALID_DATA, "m"), {"after_s": "30"}),
}


@pytest.mark.parametrize("named", WRONG)
def test_a_failure_that_says_nothing_is_refused_where_it_is_made_and_names_what_is_wrong(named: str) -> None:
    """So that the author's own line is told of, and not one of the host."""
    args, given = WRONG[named]
    with pytest.raises((TypeError, ValueError), match=f"^{named}"):
        OperationFailed(*args, **given)


@pytest.mark.parametrize("args", [("nope",), (None,), (Finding.AMBIGUOUS, 5), (Finding.RETRY, None)])
def test_a_reconciliation_that_finds_nothing_is_refused_where_it_is_made(args: tuple[Any, ...]) -> None:
    """Likewise."""
    with pytest.raises(TypeError, match=r"^(finding|message) is"):
        Reconciliation(*args)


def test_a_code_may_be_given_as_its_text() -> None:
    """As it stands in views and in the documentation."""
    assert OperationFailed("unavailable", "m").code is FailureCode.UNAVAILABLE  # type: ignore[arg-type] # what authors write


class OwnText(str):
    """A text that makes something else of itself."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no")

    def encode(self, *_: Any) -> bytes:
        raise RuntimeError("no")


class Silent(OperationFailed):
    """One that never says what failed."""

    def __init__(self) -> None:
        pass


class Unprintable(Exception):
    """One that ends whoever wants to print it."""

    def __str__(self) -> str:
        raise SystemExit(1)


class Closed(Exception):
    """One that shows nothing of itself."""

    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(name)


def changed(**attributes: Any) -> OperationFailed:
    error = OperationFailed(FailureCode.UNAVAILABLE, "m", "t", retryable=True, after_s=5)
    vars(error).update(attributes)
    return error


STRANGE = [
    changed(code="zzz"),
    changed(code=None),
    changed(message=ValueError("x")),
    changed(message=OwnText("m")),
    changed(message="\ud800" * 5000, todo="\ud800" * 5000),
    changed(todo=None),
    changed(retryable="yes"),
    changed(after_s=float("nan")),
    changed(after_s="30"),
    Silent(),
    HostlerError("nope", "a", "b"),  # type: ignore[arg-type] # what authors write
    HostlerError(Code.INVALID_DATA, None, None),  # type: ignore[arg-type] # likewise
    OSError(2, "\udcff", "\udcff"),
    Unprintable(),
    Closed(),
    BaseException(),
]


@pytest.mark.parametrize("number", range(len(STRANGE)))
@pytest.mark.parametrize("trusted", [False, True])
def test_whatever_an_author_raises_becomes_a_failure_that_can_be_stored(number: int, *, trusted: bool) -> None:
    """Attributes can be changed, a subclass may set none, and printing may fail: nothing of it reaches the scheduler."""
    error = raised(STRANGE[number])
    for fault in (fault_of(error), fault_of_code(error, throw, trusted=trusted)):
        check_storable(failed_by(fault, dispatched=True))
        assert fault.message


def test_a_failure_that_was_changed_to_nonsense_says_so_with_its_traceback() -> None:
    """As it is the code that is wrong, and not what it was given."""
    fault = fault_of_code(raised(changed(code="zzz")), throw, trusted=False)
    assert fault.code is FailureCode.INTERNAL
    assert fault.message.startswith("OperationFailed does not say what failed: ValueError: code is 'zzz'")
    assert "test_failures.py" in fault.message
    assert "Traceback" in (fault.trace or "")
