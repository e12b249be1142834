"""What can be said about a node's input before anything runs.

Whatever is refused here would have failed when the node runs; what cannot be known yet is let through.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, JsonValue, RootModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hostler.refusals import first_problem, invalid, listed, one_line, place
from hostler.schemas import ANYTHING, NoSuchFieldError, Schema, follow, input_schema, kinds
from hostler.templates import Path
from hostres.suggestions import nearest
from store.plans import Executor
from store.policy import Effect, Policy
from store.references import REF, Reference
from store.terms import Evidence, EvidenceType
from store.values import canonical
from store.workspace import GitWorkspace


def check_input(model: type[BaseModel], template: JsonValue, found: list[tuple[Path, Reference]], subject: str) -> None:
    """Check a node's input template against the model of its input.

    Args:
        model: The model.
        template: The template.
        found: Its references and where they stand.
        subject: Whom an error names.

    Raises:
        HostlerError: A name is unknown or missing, or a value does not fit (invalid-data).

    """
    for problem, meant in _wrong_names(model, template, ("input",)):
        todo = f"did you mean {meant}? " if meant else ""
        raise invalid(f"{subject}: {problem}", f"{todo}the input is a {model.__name__}: {_takes(model)}")
    if found and not isinstance(template, dict):
        return
    open_fields = {path[0] for path, _ in found if path}
    known = template if not isinstance(template, dict) else {k: v for k, v in template.items() if k not in open_fields}
    try:
        model.model_validate_json(canonical(known))
    except ValidationError as error:
        problem = first_problem(
            error, inside=("input",), counts=lambda each: not found or _is_certain(each, open_fields)
        )
        if problem:
            raise invalid(f"{subject}: {problem}", f"the input is a {model.__name__}") from error
    except Exception as error:
        if not found:  # a validator of the author's met a complete input and broke
            raise invalid(
                f"{subject}: input: {type(error).__name__}: {one_line(str(error))}", f"look at {model.__name__}"
            ) from error


def _is_certain(problem: ErrorDetails, open_fields: set[str | int]) -> bool:
    """Say whether a problem of an input without its references is one of the whole input too."""
    at = problem["loc"]
    return bool(at) and at[0] not in open_fields and problem["type"] != "missing"


def check_reference(accepts: Schema, at: Path, reference: Reference, output: Schema, subject: str) -> None:
    """Check that a reference leads somewhere, to the kind of value that is wanted where it stands.

    Args:
        accepts: What is known of the input it stands in.
        at: Where it stands in that input.
        reference: The reference.
        output: What is known of the output of the node it names.
        subject: Whom an error names.

    Raises:
        HostlerError: It does not (invalid-data).

    """
    shown = place((reference.node, *reference.path))
    try:
        given = follow(output, reference.path)
    except NoSuchFieldError as error:
        raise invalid(
            f"{subject}: {shown} leads nowhere in the output of node {reference.node}: {error}",
            "refer to what is there",
        ) from error
    try:
        wanted = follow(accepts, at)
    except NoSuchFieldError:
        return  # an alias, perhaps; the names were checked by the model itself
    gives, takes = kinds(given), kinds(wanted)
    if gives is not None and takes is not None and not gives & takes:
        raise invalid(
            f"{subject}: {place(('input', *at))} takes {_words(takes)}, but {shown} is {_words(gives)}",
            "refer to a part of that output",
        )


def check_published_fields(policy: Policy, model: type[BaseModel], subject: str) -> None:
    """Refuse a policy that publishes what is no field of the input.

    Raises:
        HostlerError: invalid-data.

    """
    for name in policy.publishes:
        try:
            found = follow(input_schema(model), name.split("."))
        except NoSuchFieldError as error:
            raise invalid(f"{subject}: it publishes {name}, but in its input {error}", "name a field") from error
        if found is not ANYTHING and not (kinds(found) or {"scalar"}) & {"scalar", "array"}:
            raise invalid(f"{subject}: it publishes {name}, which is no text", "name a field that holds a path")


def check_evidence(executor: Executor, due: Sequence[Evidence], subject: str) -> None:
    """Refuse evidence that can never be brought, and names that stand for two things.

    Raises:
        HostlerError: invalid-data.

    """
    names = [each.id for each in due]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise invalid(f"{subject}: evidence {twice} is due twice", "give each piece a name of its own")
    if executor.kind not in ("gate", "compute"):
        return
    for each in due:
        if each.type is not EvidenceType.HUMAN_APPROVAL:
            what = "a gate runs nothing" if executor.kind == "gate" else "a compute function has no ctx"
            raise invalid(
                f"{subject}: evidence {each.id} ({each.type}) can never be brought: {what}",
                "let an operation, a command or an agent bring it",
            )


def check_workspace(executor: Executor, policy: Policy, workspace: GitWorkspace, subject: str) -> None:
    """Refuse a worktree for what cannot work in one, or says that it changes nothing.

    Raises:
        HostlerError: invalid-data.

    """
    if executor.kind == "compute":
        raise invalid(f"{subject}: a compute function has no workspace", "use an operation or a command")
    if executor.kind == "agent" and executor.external:
        raise invalid(
            f"{subject}: an agent without argv has no worktree; its worker is given a private folder",
            "leave workspace out, or give argv",
        )
    quiet = {Effect.PURE, Effect.LOCAL_READ} if workspace.integrate else {Effect.PURE}
    if policy.effect in quiet:
        what = f"{subject}: its effect is {policy.effect}, and its workspace lies in a repository"
        raise invalid(what, "give it the effect that it has: project-mutation where it is integrated")


def _words(found: frozenset[str]) -> str:
    names = {"scalar": "a text, number or truth value", "object": "an object", "array": "a list", "null": "null"}
    return " or ".join(names[each] for each in sorted(found))


def _wrong_names(model: type[BaseModel], template: JsonValue, at: Path) -> Iterator[tuple[str, str | None]]:
    """Yield what is wrong with the names of an input, and which was probably meant."""
    if not isinstance(template, dict) or REF in template or _rewrites(model):
        return
    names = {name: _names_of(name, field, model) for name, field in model.model_fields.items()}
    known = {each for several in names.values() for each in several}
    if None in known:  # a field that is read from deep inside other names
        return
    if model.model_config.get("extra") != "allow":
        free = [each for each in known if each is not None and each not in template]
        for name in template:
            if name not in known:
                near = nearest(name, free)
                yield f"{place((*at, name))} is no field of it", near and place((*at, near))
    for name, field in model.model_fields.items():
        given = next((each for each in names[name] if each in template), None)
        if given is None:
            if field.is_required():
                yield f"{place((*at, str(next(iter(names[name]), name))))} is missing", None
            continue
        yield from _wrong_inside(field.annotation, template[given], (*at, given))


def _wrong_inside(annotation: Any, template: JsonValue, at: Path) -> Iterator[tuple[str, str | None]]:
    inner = _single(annotation)
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        yield from _wrong_names(inner, template, at)
    elif get_origin(inner) is list and isinstance(template, list):
        (element,) = get_args(inner) or (Any,)
        for index, each in enumerate(template):
            yield from _wrong_inside(element, each, (*at, index))


def _single(annotation: Any) -> Any:
    """Return the one type a value may have besides None; anything else is not looked into."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return None  # validators may stand there
    if origin in (Union, UnionType):
        kept = [each for each in get_args(annotation) if each is not type(None)]
        return _single(kept[0]) if len(kept) == 1 else None
    return annotation


def _rewrites(model: type[BaseModel]) -> bool:
    """Say whether the model may turn an input into another one before its fields are looked at."""
    decorators = model.__pydantic_decorators__.model_validators.values()
    return issubclass(model, RootModel) or any(each.info.mode != "after" for each in decorators)


def _names_of(name: str, field: FieldInfo, model: type[BaseModel]) -> tuple[str | None, ...]:
    """Return the names under which a field may be given, None for one that is not simply a name."""
    alias = field.validation_alias if field.validation_alias is not None else field.alias
    if alias is None:
        return (name,)
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    names: list[str | None] = [each if isinstance(each, str) else None for each in choices]
    config: Mapping[str, Any] = model.model_config
    if config.get("validate_by_alias") is False:
        names = []
    if config.get("populate_by_name") or config.get("validate_by_name"):
        names.append(name)
    return tuple(names)


def _takes(model: type[BaseModel]) -> str:
    def named(name: str, field: FieldInfo) -> str:
        as_given = next((each for each in _names_of(name, field, model) if each is not None), name)
        return as_given if field.is_required() else f"{as_given} (optional)"

    return listed([named(name, field) for name, field in model.model_fields.items()])
