"""A workflow before it is compiled: its name, the inputs it declares and the function that builds its nodes."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from hostler.annotations import annotation_of
from hostler.refusals import about, first_problem, invalid, listed
from hostler.schemas import ANYTHING, Schema, takes_text
from hostler.templates import as_template
from hostres.errors import HostlerError
from hostres.suggestions import nearest
from store.lazy_dataclass import dataclass
from store.plans import RunLimits
from store.references import marker_in
from store.values import check

if TYPE_CHECKING:
    from hostler.building import Build
    from hostler.bundles import Bundle

UNKNOWN: Final = object()


class Check(Protocol):
    """How a given input value is checked."""

    def __call__(self, value: JsonValue) -> Any:
        """Return what the workflow receives for a given value, or raise HostlerError (invalid-data)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One input a workflow declares.

    Attributes:
        schema: JSON schema of its values.
        required: Whether it must be given.
        default: What it is where it is not given.
        check: Turns a given value into what the workflow receives.
        text: Whether its values are strings, so that a command line gives them verbatim.
        description: For people.

    """

    schema: Schema
    required: bool
    default: Any
    check: Check
    text: bool
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A workflow that can be compiled.

    Attributes:
        id: Its name in plans, lists and logs.
        version: Its version.
        inputs: Name → what it takes, in order.
        author: Builds the nodes and gives the outputs.
        limits: What a run of it may take as a whole.
        function: The decorated function of a Python workflow.
        source: Where it came from: `path`, `path:name` or `module:name`, None where it was built in a program.
        bundle: The code it was loaded from, exactly as it was then.

    """

    id: str
    version: int
    inputs: Mapping[str, Input]
    author: Callable[["Build", Mapping[str, Any]], Any]
    limits: RunLimits = field(default_factory=RunLimits)
    function: Callable[..., Any] | None = None
    source: str | None = None
    bundle: "Bundle | None" = field(default=None, repr=False)

    def __call__(self, build: "Build", *args: Any, **values: Any) -> Any:
        """Call it as the function it is, to use one workflow inside another."""
        if self.function is None:
            return self.author(build, self.concrete(values)[0])
        return self.function(build, *args, **values)

    def coming_from(self, source: str, bundle: "Bundle | None" = None) -> "Workflow":
        """Return this workflow with the place it was loaded from."""
        return replace(self, source=source, bundle=bundle)

    def concrete(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, JsonValue]]:
        """Check given inputs and fill in defaults.

        Args:
            given: Values by name, plain Python or JSON.

        Returns:
            What the workflow receives, and the same as JSON, as the plan names it.

        Raises:
            HostlerError: An input is unknown, missing or of the wrong kind (invalid-data naming it).

        """
        self.check_names(given)
        received: dict[str, Any] = {}
        recorded: dict[str, JsonValue] = {}
        for name, declared in self.inputs.items():
            subject = f"input {name} of workflow {self.id}"
            if name not in given:
                received[name] = declared.default
            else:
                try:
                    plain = as_template(given[name], lambda _: NotImplemented)
                    _refuse_markers(plain)
                    received[name] = declared.check(plain)
                except HostlerError as error:
                    raise about(subject, error) from error
            recorded[name] = _as_json(received[name], subject)
        return received, recorded

    def check_names(self, given: Mapping[str, Any]) -> None:
        """Refuse names that are not declared, and required ones that are missing.

        Raises:
            HostlerError: invalid-data, with the list of inputs.

        """
        has = f"it takes: {listed([f'{name}' for name in self.inputs])}"
        unknown = [name for name in given if name not in self.inputs]
        if unknown:
            meant = nearest(unknown[0], self.inputs)
            todo = has if meant is None else f"{has}; did you mean {meant}?"
            raise invalid(f"workflow {self.id} has no input {listed(unknown)}", todo)
        missing = [name for name, declared in self.inputs.items() if declared.required and name not in given]
        if missing:
            raise invalid(f"workflow {self.id} needs the input {listed(missing)}", f"give it with -i NAME=VALUE; {has}")


def _as_json(value: Any, subject: str) -> JsonValue:
    try:
        plain: JsonValue = to_jsonable_python(value)
        check(plain)
        _refuse_markers(plain)
    except HostlerError as error:
        raise about(subject, error) from error
    except (PydanticSerializationError, ValueError) as error:
        raise invalid(f"{subject}: {error}", "give a value that JSON can hold") from error
    return plain


def _refuse_markers(value: JsonValue) -> None:
    """Refuse an input that could be taken for what only the author of the workflow may say."""
    found = marker_in(value)
    if found is not None:
        raise invalid(f"it holds an object with the key {found}, which has a meaning in plans", "rename that key")


def declared_inputs(function: Callable[..., Any], names: Mapping[str, Any], subject: str) -> dict[str, Input]:
    """Return the inputs a workflow function declares by the parameters after its first.

    Args:
        function: The function.
        names: Names its annotations may use besides those of its module.
        subject: Whom an error names.

    Raises:
        HostlerError: A parameter cannot be an input (invalid-data).

    """
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind not in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    ):
        raise invalid(f"{subject}: it has no parameter for the build", "write it as def f(build, source: str)")
    return {each.name: _declared(function, each, names, subject) for each in parameters[1:]}


def _declared(
    function: Callable[..., Any], parameter: inspect.Parameter, names: Mapping[str, Any], subject: str
) -> Input:
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise invalid(
            f"{subject}: parameter {parameter} cannot be an input", "name every input, without * and without /"
        )
    required = parameter.default is parameter.empty
    default = None if required else parameter.default
    kind = annotation_of(function, parameter.name, names, subject, missing=UNKNOWN)
    if kind is UNKNOWN:
        text = isinstance(default, str)
        return Input(schema=ANYTHING, required=required, default=default, check=_anything, text=text)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema(mode="validation")
    except PydanticUserError as error:
        raise invalid(
            f"{subject}: parameter {parameter.name} is of a type that cannot be an input: {error}",
            "annotate it with a type that JSON can hold",
        ) from error
    return Input(schema=schema, required=required, default=default, check=_by(adapter), text=takes_text(schema))


def _anything(value: JsonValue) -> Any:
    return value


def _by(adapter: TypeAdapter[Any]) -> Check:
    def check_type(value: JsonValue) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            raise invalid(first_problem(error), "give a value of the declared type") from error

    return check_type
