"""An agent as a program: the request on its standard input, the result on its standard output.

It runs as a command does: under the machine lease, in a session of its own, ended as a tree. Its output is kept in no
log before it has been looked through for secrets; what it writes to standard error is its log while it works.
"""

from collections.abc import Callable
from typing import Any

import orjson

from actors.agent_outcomes import outcome_of
from actors.agent_requests import AgentTask, agent_request
from actors.context import Context
from actors.control import Control, OperationAborted
from actors.failures import fault_of_code
from actors.outcomes import Aborted, Failed, Outcome, Value
from actors.program import Completed, process_failed
from store.agent_results import MOST_BYTES, Malformed, excerpt_of, read_result, usage_in
from store.plans import AgentExecutor, NodePlan
from store.secrets import mask, secrets_of


class Answer:
    """The output of an agent, up to what is ever kept of one.

    Attributes:
        data: The first of it.
        size: How many bytes there were, those that were not kept included.

    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._kept = 0
        self.size = 0

    @property
    def data(self) -> bytes:
        """What was kept."""
        return b"".join(self._pieces)

    def feed(self, piece: bytes) -> None:
        """Take the next bytes."""
        self.size += len(piece)
        kept = piece[: MOST_BYTES - self._kept]
        if kept:
            self._pieces.append(kept)
            self._kept += len(kept)


def perform_agent(
    plan: NodePlan,
    argv: list[str],
    env: dict[str, str],
    hidden: dict[str, str],
    *,
    task: AgentTask,
    context: Context,
    control: Control,
    write_log: Callable[[str, str], None],
) -> Outcome:
    """Run an agent to its end and read its answer.

    Args:
        plan: The exact plan of its node.
        argv: Program and arguments.
        env: Added to its environment.
        hidden: Likewise, and no log may show their values.
        task: On what terms it works.
        context: Its place and its processes.
        control: Says whether it was asked to stop.
        write_log: Keeps a text under the name of a stream in the node's logs.

    """
    answer = Answer()
    secrets = (*secrets_of({**context.environment(), **env}), *hidden.values())
    try:
        completed = _run(plan, argv, env, hidden, task, context, answer)
    except BaseException as error:  # noqa: BLE001 - whatever breaks, what was spent is told
        write_log("stdout", excerpt_of(answer.data, secrets))
        if isinstance(error, OperationAborted) or control.reason is not None:
            return Aborted(reason=control.reason or "cancel", left=tuple(control.left), usage=usage_in(answer.data))
        fault = fault_of_code(error, None, trusted=False)
        if fault.trace is not None:
            write_log("error", fault.trace)
        return Failed(
            code=fault.code,
            message=fault.message,
            todo=fault.todo,
            retryable=fault.retryable,
            usage=usage_in(answer.data),
        )
    result = read_result(answer.data, limit=plan.policy.max_output_bytes, size=answer.size, secrets=secrets)
    if isinstance(result, Malformed):
        write_log("stdout", result.excerpt)
    else:
        write_log("stdout", answer.data.decode())
    outcome = outcome_of(result)
    if completed.code != 0 and (isinstance(result, Malformed) or isinstance(outcome, Value)):
        return _ended_badly(argv, completed, secrets, outcome)
    return outcome


def _run(
    plan: NodePlan,
    argv: list[str],
    env: dict[str, str],
    hidden: dict[str, str],
    task: AgentTask,
    context: Context,
    answer: Answer,
) -> Completed:
    executor, given = plan.executor, plan.input
    assert isinstance(executor, AgentExecutor)
    assert isinstance(given, dict)
    request = agent_request(
        task, given, run_id=context.run_id, node=context.node, attempt=context.attempt, workspace=context.workspace
    )
    return context.run(
        argv,
        stdin=orjson.dumps(request) + b"\n",
        env=env | hidden,
        secrets=tuple(hidden.values()),
        cwd=None if executor.cwd is None else context.path(executor.cwd),
        on_stdout=answer.feed,
        check=False,
        keep_stdout=False,
    )


def _ended_badly(argv: list[str], completed: Completed, secrets: Any, outcome: Value | Failed) -> Failed:
    """Return the failure of a program that ended with another code than 0 and did not itself say why."""
    code, signal = (completed.code, None) if completed.code < 128 else (None, completed.code - 128)
    failure = process_failed(argv[0].rpartition("/")[2], code, signal, completed.stderr)
    return Failed(
        code=failure.code,
        message=mask(failure.message, secrets),
        todo=failure.todo,
        retryable=failure.retryable,
        usage=outcome.usage,
    )
