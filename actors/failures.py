"""What an exception means for a node; the same for code in a thread of the host and in a process of its own."""

import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from pydantic import ValidationError

from actors.blame import line_to_blame
from actors.outcomes import Failed, storable
from hostres.arguments import shown
from hostres.errors import Code, HostlerError, describe
from store.lazy_dataclass import dataclass
from store.policy import HOUR_SECONDS, FailureCode

MAX_TRACEBACK_BYTES: Final = 256 * 1024
MAX_MESSAGE: Final = 4000
MAX_TODO: Final = 1000

CODES: Final = {
    Code.INVALID_CLAIMS: FailureCode.INVALID_DATA,
    Code.INVALID_DATA: FailureCode.INVALID_DATA,
    Code.NOT_FOUND: FailureCode.UNAVAILABLE,
    Code.UNAVAILABLE: FailureCode.UNAVAILABLE,
    Code.UNSAFE_STATE: FailureCode.UNAVAILABLE,
    Code.CONFLICT: FailureCode.CONFLICT,
    Code.PROFILE_MISMATCH: FailureCode.CONFLICT,
    Code.OWNERSHIP_LOST: FailureCode.CONFLICT,
    Code.WAIT_TIMEOUT: FailureCode.TIMEOUT,
    Code.WAIT_ABORTED: FailureCode.UNAVAILABLE,
}
"""Failure codes of refusals that the host's own parts raise inside an operation; any other is internal."""


class OperationFailed(Exception):
    """Raise it from an operation to say why it failed.

    Attributes:
        code: The failure code a view shows.
        message: What is wrong, one line.
        todo: What a person can do, one line.
        retryable: Whether trying the same again may help.
        after_s: Seconds before which that cannot help, as a service says (Retry-After), up to an hour; the node's
            policy may put it off for longer. None leaves it to the policy.

    Raises:
        TypeError: One of these is of another type.
        ValueError: There is no such code, or nobody can wait so long.

    """

    def __init__(
        self,
        code: FailureCode,
        message: str,
        todo: str = "",
        *,
        retryable: bool = False,
        after_s: float | None = None,
    ) -> None:
        self.code = _code(code)
        self.message = _text(message, "message")
        self.todo = _text(todo, "todo")
        super().__init__(self.code, self.message, self.todo)
        if not isinstance(retryable, bool):
            raise TypeError(f"retryable is {shown(retryable)}, not True or False")
        self.retryable = retryable
        self.after_s = None if after_s is None else _wait(after_s)

    def __reduce__(self) -> tuple[Callable[..., "OperationFailed"], tuple[FailureCode, str, str, bool, float | None]]:
        """Come back whole from another process."""
        return _made_anew, (self.code, self.message, self.todo, self.retryable, self.after_s)

    def __str__(self) -> str:
        return f"{self.code.value}: {self.message}"


def _made_anew(
    code: FailureCode,
    message: str,
    todo: str,
    retryable: bool,  # noqa: FBT001
    after_s: float | None,
) -> OperationFailed:
    return OperationFailed(code, message, todo, retryable=retryable, after_s=after_s)


def _code(code: Any) -> FailureCode:
    try:
        return FailureCode(code)
    except (ValueError, TypeError):
        raise ValueError(f"code is {shown(code)}, not a FailureCode") from None


def _text(text: Any, name: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"{name} is {shown(text)}, not text")
    return str.__str__(text)  # not what a type of its own makes of it


def _wait(after_s: Any) -> float:
    if isinstance(after_s, bool) or not isinstance(after_s, int | float):
        raise TypeError(f"after_s is {shown(after_s)}, not a number of seconds")
    if not 0 <= after_s <= HOUR_SECONDS:
        raise ValueError(f"after_s {after_s} is no time from 0 to {HOUR_SECONDS:g} s")
    return float(after_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a node's code gave no value.

    Attributes:
        message: What is wrong, one line.
        todo: What a person can do, one line.
        retryable: Whether trying the same again may help.
        after_s: Seconds before which that cannot help.
        trace: The traceback of an exception that the code did not mean to raise.

    """

    code: FailureCode
    message: str
    todo: str
    retryable: bool = False
    after_s: float | None = None
    trace: str | None = None


def fault_of(error: BaseException) -> Fault:
    """Return what an error means, whoever raised it, as it can be stored and shown.

    An author's exception is data from a stranger: its attributes may have been changed, a subclass may have set none,
    and it may fail at being printed. Whatever it is, this gives a fault.
    """
    try:
        fault = _meant(error)
        return replace(fault, message=storable(fault.message, MAX_MESSAGE), todo=storable(fault.todo, MAX_TODO))
    except BaseException as wrong:  # noqa: BLE001 - what it is made of may raise anything
        said = f"{type(error).__name__} does not say what failed: {describe(wrong)}"
        return Fault(
            code=FailureCode.INTERNAL,
            message=storable(said, MAX_MESSAGE),
            todo="mend the code that raises it, then run it again",
            trace=_trace(error),
        )


def _meant(error: BaseException) -> Fault:
    match error:
        case OperationFailed():
            said = OperationFailed(
                error.code, error.message, error.todo, retryable=error.retryable, after_s=error.after_s
            )
            return Fault(
                code=said.code,
                message=said.message,
                todo=said.todo,
                retryable=said.retryable,
                after_s=said.after_s,
            )
        case HostlerError():
            code = CODES.get(Code(error.code), FailureCode.INTERNAL)
            return Fault(code=code, message=_text(error.what, "what"), todo=_text(error.todo, "todo"))
        case ValidationError():
            return Fault(
                code=FailureCode.INVALID_DATA, message=_first_problem(error), todo="give it what its model asks for"
            )
        case OSError():
            return Fault(code=FailureCode.UNAVAILABLE, message=describe(error), todo="mend that, then run it again")
        case _:
            return Fault(
                code=FailureCode.INTERNAL, message=describe(error), todo="mend the operation, then run it again"
            )


def fault_of_code(error: BaseException, function: Callable[..., Any] | None, *, trusted: bool) -> Fault:
    """Return what an exception of the node's own code means; one that says nothing itself is told with its place.

    Args:
        error: What it raised.
        function: What was called; None if the node has a program in place of a function.
        trusted: Whether it is the workflow's own code.

    """
    fault = fault_of(error)
    if issubclass(type(error), OperationFailed | HostlerError) and fault.trace is None:
        return fault
    line = line_to_blame(error, function)
    at = f" ({line})" if line is not None else ""
    code, todo = fault.code, "read the traceback with: hostler logs RUN NODE"
    if trusted and issubclass(type(error), Exception):
        # the code ran to its end and answered; only where it did not is it unknown what it did
        code = FailureCode.INVALID_DATA
        todo = "mend the function and start a new run; this one goes on with the code stored with it"
    return Fault(code=code, message=f"{fault.message[:2000]}{at}", todo=todo, trace=_trace(error))


def _trace(error: BaseException) -> str:
    """Return the traceback of an exception, the end of a long one."""
    try:
        return "".join(traceback.format_exception(error))[-MAX_TRACEBACK_BYTES:]
    except BaseException as wrong:  # noqa: BLE001 - it copes with most that cannot be printed, not with all
        return f"{describe(error)}\nits traceback cannot be printed: {describe(wrong)}\n"


def too_large(size: int, limit: int) -> Fault:
    """Return the refusal of a result over its limit.

    Args:
        size: Bytes of its canonical form.
        limit: What its policy allows, bytes.

    """
    return Fault(
        code=FailureCode.INVALID_DATA,
        message=f"result too large: {size} bytes, limit {limit}",
        todo="put it in a file and give its path",
    )


def _first_problem(error: ValidationError) -> str:
    from store.misfits import first_misfit  # noqa: PLC0415 - only where something is wrong

    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{first_misfit(error, error.title)}{more}"


def failed_by(fault: Fault, *, dispatched: bool) -> Failed:
    """Return a fault as the outcome of an attempt."""
    return Failed(
        code=fault.code,
        message=fault.message,
        todo=fault.todo,
        retryable=fault.retryable,
        after_s=fault.after_s,
        dispatched=dispatched,
    )
