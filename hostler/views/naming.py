"""How views name things in one word."""

from collections.abc import Mapping
from typing import Final

from store.plans import AgentExecutor, CommandExecutor, ComputeExecutor, Executor, GateExecutor, OperationExecutor
from store.policy import Isolation, Policy

EXTERNAL: Final = "agent:external"
"""An agent whose work is for whoever takes it."""


def executor_name(executor: Executor) -> str:
    """Return `kind@version` of an operation, `command`, `compute:name`, `agent` or `gate:kind`."""
    match executor:
        case OperationExecutor(operation=operation, version=version):
            return f"{operation}@{version}"
        case ComputeExecutor(compute=compute):
            return f"compute:{compute}"
        case GateExecutor(gate=gate):
            return f"gate:{gate}"
        case CommandExecutor():
            return "command"
        case AgentExecutor(external=external):
            return EXTERNAL if external else "agent"


def runs_text(executor: Executor, policy: Policy) -> str:
    """Return what runs, for people: its name, and that it has a process of its own where it is a Python function."""
    name = executor_name(executor)
    isolated = isinstance(executor, OperationExecutor | ComputeExecutor) and policy.isolation is Isolation.PROCESS
    return f"{name}, own process" if isolated else name


def claims_text(claims: Mapping[str, int]) -> str:
    """Return claims as `cpu=1 ffmpeg=1`, or a dash for none."""
    return " ".join(f"{name}={units}" for name, units in sorted(claims.items())) or "–"
