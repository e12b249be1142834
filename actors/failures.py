"""What an exception means for a node: a failure code, what is wrong, what to do."""

from typing import Final

from pydantic import ValidationError

from actors.context import OperationFailed
from actors.messages import Failed
from hostres.errors import Code, HostlerError, describe
from store.contracts import FailureCode

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
}
"""Failure codes of refusals that the host's own parts raise inside an operation; any other is internal."""


def failed(error: BaseException, *, dispatched: bool) -> Failed:
    """Return what *error* means.

    Args:
        error: What an operation, a planner or the host's own parts raised.
        dispatched: Whether the node's own code or program was reached.

    """
    match error:
        case OperationFailed():
            return Failed(
                code=error.code,
                message=error.message,
                todo=error.todo,
                retryable=error.retryable,
                dispatched=dispatched,
            )
        case HostlerError():
            code = CODES.get(error.code, FailureCode.INTERNAL)
            return Failed(code=code, message=error.what, todo=error.todo, dispatched=dispatched)
        case ValidationError():
            return Failed(
                code=FailureCode.INVALID_DATA,
                message=_first_fault(error),
                todo="give it what its model asks for",
                dispatched=dispatched,
            )
        case OSError():
            return Failed(
                code=FailureCode.UNAVAILABLE,
                message=describe(error),
                todo="mend that, then run it again",
                dispatched=dispatched,
            )
        case _:
            return Failed(
                code=FailureCode.INTERNAL,
                message=describe(error),
                todo="mend the operation, then run it again",
                dispatched=dispatched,
            )


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(str(part) for part in fault["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{error.title}.{path}: {fault['msg']}{more}" if path else f"{error.title}: {fault['msg']}{more}"
