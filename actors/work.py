"""The work of one attempt, on a helper thread: from the exact plan to an outcome. Nothing it does escapes it."""

import logging
import math
import os
import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import orjson
from pydantic import BaseModel, JsonValue, ValidationError

from actors.context import Context, OperationFailed
from actors.control import Control, OperationAborted
from actors.dependencies import KeptFile, check_files, sha256_of
from actors.failures import failed
from actors.messages import Aborted, Failed, Found, Outcome, Value
from actors.operations import Compute, Operation, Previous, Reconciliation
from hostres.errors import Code, HostlerError
from store.contracts import CommandExecutor, ComputeExecutor, FailureCode, NodePlan, OperationExecutor
from store.values import Domain, canonical, digest_bytes

MAX_ERROR_CHARACTERS: Final = 256 * 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a dispatched attempt needs.

    Attributes:
        code: The operation or compute of the plan; None for a command.
        previous: The attempt whose outcome is to be found out; None makes an attempt.
        files: What completed commands left that it may use.
        write_error: Keeps the traceback of an exception that its code did not mean to raise.
        open_context: Makes the attempt's context; called on the helper thread.

    """

    plan: NodePlan
    code: Operation | Compute | None
    previous: Previous | None = None
    files: tuple[KeptFile, ...] = ()
    write_error: Callable[[str], None]
    open_context: Callable[[], Context]


def perform(job: Job, control: Control) -> Outcome:
    """Do the work of *job*.

    Args:
        job: The attempt.
        control: Says whether it was asked to stop meanwhile.

    Returns:
        A value within its limits, or why there is none.

    """
    try:
        call = _prepared(job)
    except (ValidationError, HostlerError, OperationFailed, OSError) as error:
        return failed(error, dispatched=False)
    try:
        value = call()
        if isinstance(value, Found):
            return value
        data = canonical(value)
    except OperationAborted:
        return Aborted(reason=control.reason or "cancel", left=tuple(control.left))
    except BaseException as error:  # noqa: BLE001 - an operation may raise anything, SystemExit too
        if control.reason is not None:
            return Aborted(reason=control.reason, left=tuple(control.left))
        return _raised(error, job)
    limit = job.plan.policy.max_output_bytes
    if len(data) > limit:
        return Failed(
            code=FailureCode.INVALID_DATA,
            message=f"result too large: {len(data)} bytes, limit {limit}",
            todo="put it in a file and give its path",
        )
    return Value(value=value, data=data, sha256=digest_bytes(Domain.OUTPUT, data))


def _prepared(job: Job) -> Callable[[], JsonValue | Found]:
    """Check everything that can be checked before the node's own code or program is reached."""
    check_files(job.files)
    match job.plan.executor, job.code:
        case OperationExecutor(), Operation() as operation:
            given = operation.input_type.model_validate_json(canonical(job.plan.input))
            context = job.open_context()
            if job.previous is not None:
                return lambda: _reconciled(operation, context, given, job.previous)
            return lambda: _dumped(operation.function(context, given), operation.output_type)
        case ComputeExecutor(), Compute() as compute:
            argument: Any = job.plan.input
            if compute.input_type is not None:
                argument = compute.input_type.model_validate_json(canonical(job.plan.input))
            return lambda: _dumped(compute.function(argument), compute.output_type)
        case CommandExecutor() as command, _:
            context = job.open_context()
            return lambda: _command(context, command, cast("dict[str, Any]", job.plan.input))
        case executor, _:
            raise HostlerError(Code.CONFLICT, f"this host has no {executor.kind} for it", "resume it where it is")


def _reconciled(
    operation: Operation, context: Context, given: BaseModel, previous: Previous | None
) -> JsonValue | Found:
    if operation.reconcile is None:
        raise TypeError(f"{operation.kind} cannot be reconciled here")
    result = operation.reconcile(context, given, previous)
    if isinstance(result, Reconciliation):
        return Found(finding=result.finding, message=result.message)
    return _dumped(result, operation.output_type)


def _dumped(result: Any, output_type: type[BaseModel] | None) -> JsonValue:
    if output_type is None:
        return cast("JsonValue", result)
    if not isinstance(result, output_type):
        result = output_type.model_validate(result)
    _refuse_non_finite(result.model_dump(), "$")  # as JSON, pydantic writes NaN under `Any` as null
    return cast("JsonValue", result.model_dump(mode="json"))


def _refuse_non_finite(value: Any, path: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise HostlerError(Code.INVALID_DATA, f"{path}: {value} is no JSON number", "use null, or a text")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _refuse_non_finite(inner, f"{path}.{key}")
    elif isinstance(value, list | tuple | set | frozenset):
        for index, inner in enumerate(value):
            _refuse_non_finite(inner, f"{path}[{index}]")


def _command(context: Context, executor: CommandExecutor, given: dict[str, Any]) -> JsonValue:
    """Run a command node: {argv, env, stdin, value} in, {exit_code, outputs} out."""
    argv = [_word(word) for word in given["argv"]]
    stdin = given.get("stdin")
    if given.get("value") is not None:
        (context.workspace / "input.json").write_bytes(orjson.dumps(given["value"]))
    completed = context.run(
        argv,
        env={name: _word(text) for name, text in (given.get("env") or {}).items()},
        cwd=context.path(executor.cwd) if executor.cwd is not None else None,
        stdin=stdin.encode() if isinstance(stdin, str) else None,
    )
    outputs = {name: _output(context.workspace, name, path) for name, path in executor.outputs.items()}
    return {"exit_code": completed.code, "outputs": cast("JsonValue", outputs)}


def _word(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise OperationFailed(
            FailureCode.INVALID_DATA,
            f"an argument is {type(value).__name__}, not text or a number",
            "refer to a field that holds text",
        )
    return str(value)


def _output(workspace: Path, name: str, path: str) -> dict[str, JsonValue]:
    file = (workspace / path).resolve()
    if not file.is_relative_to(workspace.resolve()):
        raise OperationFailed(
            FailureCode.INVALID_DATA,
            f"output {name} lies outside the workspace: {path}",
            "let the command write the file itself into its workspace",
        )
    if not file.is_file():
        raise OperationFailed(
            FailureCode.MALFORMED_OUTPUT, f"the command left no file {path} for its output {name}", "look at its log"
        )
    return {"path": str(file), "bytes": file.stat().st_size, "sha256": sha256_of(file)}


def write_log(path: Path, text: str) -> None:
    """Keep *text* as a private log; that it cannot be kept must not hide what it tells of."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text[-MAX_ERROR_CHARACTERS:].encode("utf-8", "backslashreplace"))
    except OSError:
        log.warning("the log %s could not be written", path, exc_info=True)


def empty(workspace: Path) -> None:
    """Remove what an earlier attempt left in its workspace: a half-made file must not look like a result."""
    for entry in workspace.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _raised(error: BaseException, job: Job) -> Failed:
    """Return what an exception of the node's own code means; one that says nothing itself is told with its place."""
    told = failed(error, dispatched=True)
    if isinstance(error, OperationFailed | HostlerError):
        return told
    job.write_error("".join(traceback.format_exception(error)))  # which copes with what cannot be printed
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    told = replace(told, message=f"{told.message[:2000]}{at}", todo="read the traceback with: hostler logs RUN NODE")
    if isinstance(job.code, Compute) and isinstance(error, Exception):
        # the code ran to its end and answered; only where it did not is it unknown what it did
        todo = "mend the function and start a new run; this one goes on with the code stored with it"
        return replace(told, code=FailureCode.INVALID_DATA, todo=todo)
    return told
