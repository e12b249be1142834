"""What an agent's answer makes of its attempt: a value, or a failure that says how it may go on. Pure."""

from pydantic import JsonValue

from actors.outcomes import Failed, Value
from store.agent_results import AgentResult, AgentStatus, Malformed
from store.policy import FailureCode
from store.values import Domain, canonical, digest_bytes

READ_LOG = "read its log with: hostler logs RUN NODE"


def outcome_of(result: AgentResult | Malformed) -> Value | Failed:
    """Return the outcome of an attempt that gave this answer."""
    match result:
        case Malformed():
            shown = " ".join(result.excerpt.split())[:200]
            return Failed(
                code=FailureCode.MALFORMED_OUTPUT,
                message=f"its answer cannot be used: {result.why}" + (f": {shown}" if shown else ""),
                todo=READ_LOG,
                usage=result.usage,
            )
        case AgentResult(status=AgentStatus.SUCCESS):
            return _value(result)
        case AgentResult(status=AgentStatus.RETRY):
            return _failed(result, FailureCode.PROVIDER_TRANSIENT, "wait, then retry it", retryable=True)
        case AgentResult(status=AgentStatus.BLOCKED):
            return _failed(result, FailureCode.UNAVAILABLE, "give it what it lacks, then retry it", blocked=True)
        case AgentResult(status=AgentStatus.BUDGET_EXHAUSTED):
            return _failed(result, FailureCode.BUDGET_EXHAUSTED, "raise its budget, then retry it")
        case _:
            return _failed(result, FailureCode.INTERNAL, "read what it says, then retry or correct it")


def _value(result: AgentResult) -> Value:
    value: JsonValue = {
        "summary": result.summary,
        "evidence": [each.model_dump(mode="json") for each in result.evidence],
        "output": result.output,
    }
    data = canonical(value)
    return Value(
        value=value,
        data=data,
        sha256=digest_bytes(Domain.OUTPUT, data),
        usage=result.usage,
        evidence=result.evidence,
    )


def _failed(
    result: AgentResult, code: FailureCode, todo: str, *, retryable: bool = False, blocked: bool = False
) -> Failed:
    return Failed(
        code=code,
        message=result.summary or f"the agent says {result.status} and nothing more",
        todo=todo,
        retryable=retryable,
        blocked=blocked,
        usage=result.usage,
    )
