"""How a workflow is written in Python: three decorators, and the `Build` that a workflow function receives.

A decorated function stays callable as the function it is.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final, overload

from pydantic import BaseModel

from actors.operations import Compute, Operation
from hostler.annotations import annotation_of
from hostler.building import Build
from hostler.checks import check_published_fields
from hostler.handles import NodeHandle
from hostler.refusals import invalid
from hostler.schemas import input_schema, output_schema
from hostler.workflows import Workflow, declared_inputs
from store.fields import MAX_SAFE_INTEGER
from store.patterns import NAME_PATTERN
from store.plans import RunLimits
from store.policy import MIB, Effect, Isolation, Policy, Resume

__all__ = ["COMPUTE_POLICY", "Build", "NodeHandle", "Workflow", "compute", "operation", "workflow"]

COMPUTE_POLICY: Final = Policy(
    effect=Effect.TRUSTED_CODE,
    resume=Resume.EXPLICIT_CODE_REPLAY,
    claims={"cpu": 1},
    max_seconds=300,
    max_input_bytes=2 * MIB,
    max_output_bytes=2 * MIB,
    isolation=Isolation.PROCESS,
)
"""What trusted code of a workflow may do; nobody authors it."""

NO_POLICY: Final = Policy()
NO_LIMITS: Final = RunLimits()


def operation(
    kind: str,
    *,
    version: int = 1,
    policy: Policy = NO_POLICY,
    prepare: Callable[..., Any] | None = None,
    plan: Callable[..., Any] | None = None,
    reconcile: Callable[..., Any] | None = None,
    probe: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Operation]:
    """Make an operation of a function `(ctx, input: Model) -> Model`.

    Args:
        kind: Dotted name that plans use, `media.probe`.
        version: Raise it when the meaning changes.
        policy: What it may do, needs and costs at most.
        prepare: `(ctx: Planning, input) -> Preparation`: what the exact plan will be worked out from.
        plan: `(ctx: Planning, input, descriptors) -> ExactPlan`: the exact input, which is what a person approves.
        reconcile: `(ctx: Context, input, previous: Previous) -> Model | Reconciliation`: what an attempt did that
            left no result; the output if it did its work after all.
        probe: `(ctx: Planning, input) -> bool`: whether what a silent attempt waits for still runs, elsewhere maybe;
            only if it does not is the attempt stopped.

    Returns:
        The decorator; it gives an `Operation`, still callable as the function.

    Raises:
        HostlerError: The kind, the version or the policy is not allowed, or an annotation is missing
            (invalid-data, naming the function).

    """
    _check_name(kind, f"operation {kind!r}", "kind")
    _check_version(version, f"operation {kind}")
    policy = policy.authored
    if policy.effect is Effect.TRUSTED_CODE or policy.resume is Resume.EXPLICIT_CODE_REPLAY:
        raise invalid(
            f"operation {kind}: trusted-code and explicit-code-replay are derived, for compute functions only",
            "choose another effect and resume class, or use @compute",
        )
    _check_ports(kind, policy, prepare=prepare, plan=plan, reconcile=reconcile, probe=probe)
    names = _names_of_caller()

    def decorate(function: Callable[..., Any]) -> Operation:
        subject = f"operation {kind} ({_name_of(function)})"
        parameters = _positional(function, subject)
        if len(parameters) != 2:
            raise invalid(
                f"{subject}: it takes {len(parameters)} parameters instead of two",
                "write it as def f(ctx, input: Model) -> Model",
            )
        input_type = annotation_of(function, parameters[1], names, subject)
        output_type = annotation_of(function, "return", names, subject)
        for where, found in ((f"parameter {parameters[1]}", input_type), ("its return value", output_type)):
            if not _is_model(found):
                raise invalid(
                    f"{subject}: the annotation of {where} is {_shown(found)}, not a pydantic model",
                    "annotate it with a class derived from pydantic.BaseModel",
                )
        input_schema(input_type)
        output_schema(output_type)
        check_published_fields(policy, input_type, subject)
        return Operation(
            kind=kind,
            version=version,
            policy=policy,
            function=function,
            input_type=input_type,
            output_type=output_type,
            prepare=prepare,
            plan=plan,
            reconcile=reconcile,
            probe=probe,
        )

    return decorate


def _check_ports(kind: str, policy: Policy, **ports: Callable[..., Any] | None) -> None:
    """Refuse ports that could not be called, or never would be."""
    takes = {
        "prepare": "(ctx, input)",
        "plan": "(ctx, input, descriptors)",
        "reconcile": "(ctx, input, previous)",
        "probe": "(ctx, input)",
    }
    for name, function in ports.items():
        if function is None:
            continue
        subject = f"operation {kind}: {name} ({_name_of(function)})"
        given, wanted = len(_positional(function, subject)), takes[name].count(",") + 1
        if given != wanted:
            raise invalid(
                f"{subject}: it takes {given} parameters instead of {wanted}", f"write it as def f{takes[name]}"
            )
    if ports["reconcile"] is not None and policy.resume is Resume.DETERMINISTIC:
        raise invalid(
            f"operation {kind}: an interrupted deterministic attempt is simply made again; reconcile would never run",
            "leave it out, or choose another resume class",
        )
    if ports["probe"] is not None and policy.heartbeat is None:
        raise invalid(
            f"operation {kind}: without a heartbeat it is never silent, so that its probe would never be asked",
            "give its policy a heartbeat, or leave probe out",
        )
    if policy.preparation and ports["prepare"] is None and ports["plan"] is None:
        raise invalid(
            f"operation {kind}: its policy names what its planner looks at, but it has none",
            "give it prepare or plan, or leave preparation out of its policy",
        )


@overload
def compute(name: Callable[..., Any]) -> Compute: ...


@overload
def compute(name: str | None = None) -> Callable[[Callable[..., Any]], Compute]: ...


def compute(name: str | Callable[..., Any] | None = None) -> Compute | Callable[[Callable[..., Any]], Compute]:
    """Make trusted code of a function `(input) -> value` of the workflow's own file.

    It runs from the stored copy of that file. Its input is JSON, or the pydantic model that annotates it. It returns
    JSON, in which models may stand; a model that annotates its value checks it. Its policy is derived.

    Args:
        name: Its name in the plan; the function's name by default.

    Returns:
        The decorator, or the `Compute` itself where it is used without parentheses.

    Raises:
        HostlerError: The name is not allowed or the parameters do not fit (invalid-data, naming the function).

    """
    names = _names_of_caller()

    def decorate(function: Callable[..., Any]) -> Compute:
        chosen = _name_of(function) if name is None or callable(name) else name
        subject = f"compute {chosen}"
        _check_name(chosen, subject, "name")
        parameters = _positional(function, subject)
        if len(parameters) != 1:
            raise invalid(
                f"{subject}: it takes {len(parameters)} parameters instead of one", "write it as def f(input)"
            )
        found = [annotation_of(function, where, names, subject, missing=None) for where in (parameters[0], "return")]
        input_type, output_type = (each if _is_model(each) else None for each in found)
        if input_type is not None:
            input_schema(input_type)
        if output_type is not None:
            output_schema(output_type)
        return Compute(
            name=chosen,
            policy=COMPUTE_POLICY,
            function=function,
            input_type=input_type,
            output_type=output_type,
        )

    return decorate(name) if callable(name) else decorate


def workflow(id: str, *, version: int = 1, limits: RunLimits = NO_LIMITS) -> Callable[[Callable[..., Any]], Workflow]:
    """Make a workflow of a function `(build, input: type, …)` that calls `build` and returns the outputs.

    Its inputs are its further parameters, checked by their annotations; a default makes one optional.

    Args:
        id: Its name in plans, lists and logs.
        version: Raise it when its meaning changes.
        limits: What a run of it may take as a whole.

    Returns:
        The decorator; it gives a `Workflow`, still callable as the function.

    Raises:
        HostlerError: The id, the version or a parameter is not allowed (invalid-data, naming the function).

    """
    _check_name(id, f"workflow {id!r}", "id")
    _check_version(version, f"workflow {id}")
    names = _names_of_caller()

    def decorate(function: Callable[..., Any]) -> Workflow:
        subject = f"workflow {id} ({_name_of(function)})"
        _refuse_unusual(function, subject)
        inputs = declared_inputs(function, names, subject)

        def author(build: Build, values: Mapping[str, Any]) -> Any:
            return function(build, **values)

        return Workflow(id=id, version=version, inputs=inputs, author=author, limits=limits, function=function)

    return decorate


def _names_of_caller() -> dict[str, Any]:
    """Return the names where the decorator stands, so that annotations may use classes of a function body."""
    return sys._getframe(2).f_locals  # noqa: SLF001 - pydantic looks up annotations in the same way


def _is_model(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseModel)


def _shown(found: Any) -> str:
    return found.__name__ if isinstance(found, type) else str(found)


def _name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _check_name(name: object, subject: str, what: str) -> None:
    if not isinstance(name, str) or len(name) > 255 or not re.fullmatch(NAME_PATTERN, name):
        raise invalid(
            f"{subject}: its {what} must be lower-case words joined by dots, dashes or underscores",
            "write it like media.probe",
        )


def _check_version(version: object, subject: str) -> None:
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= MAX_SAFE_INTEGER:
        raise invalid(f"{subject}: version {version!r} is not a whole number from 1", "count versions from 1")


def _refuse_unusual(function: Callable[..., Any], subject: str) -> None:
    if not isinstance(function, FunctionType):
        raise invalid(f"{subject}: only a plain function can be decorated", "decorate a function made with def")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise invalid(f"{subject}: async functions and generators are not called here", "use a plain def")


def _positional(function: Callable[..., Any], subject: str) -> list[str]:
    """Return the parameters that must be given; further ones need a default."""
    _refuse_unusual(function, subject)
    required = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    for parameter in required:
        if parameter.kind is parameter.KEYWORD_ONLY:
            raise invalid(f"{subject}: parameter {parameter.name} can only be given by name", "give it a default")
    return [parameter.name for parameter in required]
