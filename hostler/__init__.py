"""Hostler, a durable workflow host for one machine: what users name.

Importing this package costs nothing; each name is loaded when it is first used.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # what type checkers know by this name, without the import of typing

if TYPE_CHECKING:
    from typing import Any

    from actors.actions import NodeChanged, RunChanged, RunLeft
    from actors.context import Completed, Context
    from actors.control import OperationAborted
    from actors.failures import OperationFailed
    from actors.host_messages import RunLost
    from actors.messages import Progress
    from actors.operations import Compute, ExactPlan, Operation, Preparation, Previous, Reconciliation
    from actors.outcomes import Finding
    from actors.planner import Planning
    from hostler.authoring import Build, NodeHandle, Workflow, compute, operation, workflow
    from hostler.compiler import Compiled, compile_workflow
    from hostler.config import Config
    from hostler.host import Host
    from hostler.hosted_run import Outcome, Run
    from hostler.loading import load
    from hostler.work_client import Work, Worker
    from hostres.errors import Code, HostlerError
    from store.amounts import Ask, Budget, Demand
    from store.plans import RunLimits
    from store.policy import Backoff, Effect, FailureCode, Heartbeat, Isolation, Policy, PreparationKind, Resume, Retry

_HOMES = {
    "actors.actions": ("NodeChanged", "RunChanged", "RunLeft"),
    "actors.context": ("Completed", "Context"),
    "actors.control": ("OperationAborted",),
    "actors.failures": ("OperationFailed",),
    "actors.host_messages": ("RunLost",),
    "actors.messages": ("Progress",),
    "actors.outcomes": ("Finding",),
    "actors.operations": ("Compute", "ExactPlan", "Operation", "Preparation", "Previous", "Reconciliation"),
    "actors.planner": ("Planning",),
    "hostler.authoring": ("Build", "NodeHandle", "Workflow", "compute", "operation", "workflow"),
    "hostler.compiler": ("Compiled", "compile_workflow"),
    "hostler.config": ("Config",),
    "hostler.host": ("Host",),
    "hostler.hosted_run": ("Outcome", "Run"),
    "hostler.loading": ("load",),
    "hostler.work_client": ("Work", "Worker"),
    "hostres.errors": ("Code", "HostlerError"),
    "store.amounts": ("Ask", "Budget", "Demand"),
    "store.plans": ("RunLimits",),
    "store.policy": (
        "Backoff",
        "Effect",
        "FailureCode",
        "Heartbeat",
        "Isolation",
        "Policy",
        "PreparationKind",
        "Resume",
        "Retry",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Ask",
    "Backoff",
    "Budget",
    "Build",
    "Code",
    "Compiled",
    "Completed",
    "Compute",
    "Config",
    "Context",
    "Demand",
    "Effect",
    "ExactPlan",
    "FailureCode",
    "Finding",
    "Heartbeat",
    "Host",
    "HostlerError",
    "Isolation",
    "NodeChanged",
    "NodeHandle",
    "Operation",
    "OperationAborted",
    "OperationFailed",
    "Outcome",
    "Planning",
    "Policy",
    "Preparation",
    "PreparationKind",
    "Previous",
    "Progress",
    "Reconciliation",
    "Resume",
    "Retry",
    "Run",
    "RunChanged",
    "RunLeft",
    "RunLimits",
    "RunLost",
    "Work",
    "Worker",
    "Workflow",
    "compile_workflow",
    "compute",
    "load",
    "operation",
    "workflow",
]


def __getattr__(name: str) -> Any:
    """Load a public name on its first use."""
    import gc  # noqa: PLC0415 - not before it is needed
    from importlib import import_module  # noqa: PLC0415 - likewise

    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    collects = gc.isenabled()
    gc.disable()  # what is imported stays
    try:
        value = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        from hostler.own_names import RENAME, stranger  # noqa: PLC0415 - likewise

        file = stranger()
        if file is None:
            raise
        raise ImportError(f"Hostler finds {file} in the place of its own package; {RENAME}") from error
    finally:
        if collects:
            gc.enable()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
