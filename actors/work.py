"""The work of one attempt, on a helper thread: from the exact plan to an outcome. Nothing it does escapes it."""

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import orjson
from pydantic import JsonValue, ValidationError

from actors.agent_requests import AgentTask
from actors.answers import found
from actors.assignment import Assignment, Host
from actors.calling import dumped, given
from actors.command_outputs import output_of
from actors.context import Context
from actors.control import Control, OperationAborted
from actors.dependencies import KeptFile, check_files
from actors.evidence_file import VARIABLE, read_evidence
from actors.failures import MAX_TRACEBACK_BYTES, OperationFailed, failed_by, fault_of, fault_of_code, too_large
from actors.operations import Compute, Entry, Operation, Previous
from actors.outcomes import Aborted, Found, Outcome, Value
from actors.secrets import mask_of, resolved
from hostres.errors import Code, HostlerError
from hostres.lease import Lease
from hostres.masking import Mask
from store.lazy_dataclass import dataclass
from store.plans import AgentExecutor, CommandExecutor, NodePlan, OperationExecutor
from store.policy import Isolation, Policy
from store.values import Domain, canonical, digest_bytes
from store.words import Words, secrets_of_plan, words_of

EntryOf = Callable[[Operation | Compute], Entry]

INPUT: Final = "HOSTLER_INPUT"
"""Names the file in which a command finds its input."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a dispatched attempt needs.

    Attributes:
        authored: The input of its node as whoever wrote the graph plan wrote it, with its references.
        given: Canonical bytes of the input of the plan, where they are at hand.
        code: The operation or compute of the plan; None for a command.
        previous: The attempt whose outcome is to be found out; None makes an attempt.
        entry: Tells how to start the worker process of a code; called on the helper thread, where one is wanted.
        files: What completed commands left that it may use.
        task: On what terms an agent works; None for any other node.
        write_log: Keeps a text under the name of a stream, as the traceback of an exception that its code did not
            mean to raise.
        assignment: Which attempt it is.
        host: What its context asks.
        lease: The admitted claims, None for a node that claims nothing.

    """

    plan: NodePlan
    authored: JsonValue = None
    given: bytes | None = None
    code: Operation | Compute | None
    previous: Previous | None = None
    entry: EntryOf
    files: tuple[KeptFile, ...] = ()
    task: AgentTask | None = None
    write_log: Callable[[str, str], None]
    assignment: Assignment
    host: Host
    lease: Lease | None

    def mask(self) -> Mask:
        """Return the mask for all that comes of it."""
        return mask_of(secrets_of_plan(self.plan.executor, self.authored).values())


def perform(job: Job, control: Control) -> Outcome:
    """Do the work of *job*.

    Args:
        job: The attempt.
        control: Says whether it was asked to stop meanwhile.

    Returns:
        A value within its limits, or why there is none.

    """
    try:
        check_files(job.files, between=control.check)
        context = Context(job.assignment, control=control, host=job.host, lease=job.lease)
        if job.previous is None and in_worker(job.code, job.plan.policy):
            return _in_worker(job, context, control)
        if isinstance(job.plan.executor, AgentExecutor):
            return _agent(job, context, control)
        call = _prepared(job, context)
    except (OperationAborted, ValidationError, HostlerError, OperationFailed, OSError) as error:
        return _not_begun(error, control)
    try:
        value = call()
        if isinstance(value, Found):
            return value
        data = canonical(value)
    except BaseException as error:  # noqa: BLE001 - an operation may raise anything, SystemExit too
        if control.reason is not None:  # else nobody aborted it, whatever it says
            return Aborted(reason=control.reason, left=tuple(control.left))
        fault = fault_of_code(error, _called(job), trusted=False)
        if fault.trace is not None:
            job.write_log("error", fault.trace)
        return failed_by(fault, dispatched=True)
    limit = job.plan.policy.max_output_bytes
    if len(data) > limit:
        return failed_by(too_large(len(data), limit), dispatched=True)
    return Value(value=value, data=data, sha256=digest_bytes(Domain.OUTPUT, data), evidence=context.brought)


def _not_begun(error: BaseException, control: Control) -> Outcome:
    """Return what has come of an attempt that never got as far as its own code or program."""
    if isinstance(error, OperationAborted):
        return Aborted(reason=control.reason or "cancel", left=tuple(control.left), dispatched=False)
    return failed_by(fault_of(error), dispatched=False)


def in_worker(code: Operation | Compute | None, policy: Policy) -> bool:
    """Say whether a node's code runs in a process of its own: trusted code always, an operation by its policy."""
    return isinstance(code, Compute) or (isinstance(code, Operation) and policy.isolation is Isolation.PROCESS)


def _in_worker(job: Job, context: Context, control: Control) -> Outcome:
    from actors.worker import perform_in_worker  # noqa: PLC0415 - many programs have no use for it

    code = job.code
    assert code is not None
    given(_input_of(job), code.input_type)  # what does not fit never gets as far as a process
    outcome, trace = perform_in_worker(job.plan, job.entry(code), context=context, host=job.host, control=control)
    if trace is not None:
        job.write_log("error", trace)
    return outcome


def _input_of(job: Job) -> bytes:
    """Return the canonical bytes of the input that its plan gives."""
    return canonical(job.plan.input) if job.given is None else job.given


def _prepared(job: Job, context: Context) -> Callable[[], JsonValue | Found]:
    """Check everything that can be checked before the node's own code or program is reached."""
    match job.plan.executor, job.code:
        case OperationExecutor(), Operation() as operation:
            argument = given(_input_of(job), operation.input_type)
            if job.previous is not None:
                return partial(_reconciled, operation, context, argument, job.previous)
            return lambda: dumped(operation.function(context, argument), operation.output_type)
        case CommandExecutor() as command, _:
            words = words_of(command, job.authored, job.plan.input)
            return lambda: _command(context, command, words, cast("dict[str, Any]", job.plan.input).get("value"))
        case executor, _:
            raise HostlerError(Code.CONFLICT, f"this host has no {executor.kind} for it", "resume it where it is")


def _called(job: Job) -> Callable[..., Any] | None:
    """Return the function of an author that this attempt, or its reconciliation, calls in this process."""
    if not isinstance(job.code, Operation):
        return None
    return job.code.function if job.previous is None else job.code.reconcile


def _reconciled(operation: Operation, context: Context, argument: Any, previous: Previous) -> JsonValue | Found:
    if operation.reconcile is None:
        raise TypeError(f"{operation.kind} cannot be reconciled here")
    return found(operation.reconcile(context, argument, previous), operation)


def _command(context: Context, executor: CommandExecutor, words: Words, value: JsonValue) -> JsonValue:
    """Run a command node: {argv, env, stdin, value} in, {exit_code, outputs} out."""
    secrets = _secrets(words)
    given_files = {VARIABLE: str(context.evidence_file), INPUT: str(context.input_file)}
    if value is not None:
        context.input_file.write_bytes(orjson.dumps(value))
    completed = context.run(
        words.argv,
        env={**words.env} | secrets | given_files,
        secrets=tuple(secrets.values()),
        cwd=context.path(executor.cwd) if executor.cwd is not None else None,
        stdin=None if words.stdin is None else words.stdin.encode(),
    )
    for piece in read_evidence(context.evidence_file):
        context.evidence(piece.id, piece.type)
    outputs = {
        name: output_of(context.workspace, name, path, between=context.beat) for name, path in executor.outputs.items()
    }
    return {"exit_code": completed.code, "outputs": cast("JsonValue", outputs)}


def _agent(job: Job, context: Context, control: Control) -> Outcome:
    from actors.agent_work import perform_agent  # noqa: PLC0415 - likewise

    words = words_of(job.plan.executor, job.authored, job.plan.input)
    return perform_agent(
        job.plan,
        list(words.argv),
        {**words.env},
        _secrets(words),
        task=job.task or AgentTask(),
        context=context,
        control=control,
        write_log=job.write_log,
    )


def _secrets(words: Words) -> dict[str, str]:
    """Return the variables of a program that are secrets, with their values.

    Raises:
        OperationFailed: The environment of this host has not got one of these.

    """
    return {name: resolved(variable) for name, variable in words.secrets.items()}


def write_log(path: Path, text: str) -> None:
    """Keep *text* as a private log; that it cannot be kept must not hide what it tells of."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(text[-MAX_TRACEBACK_BYTES:].encode("utf-8", "backslashreplace"))
    except OSError:
        log.warning("the log %s could not be written", path, exc_info=True)
