"""Models as they are stored: canonical bytes and digests, and back, with the digest checked."""

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

import orjson
from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from hostres.errors import HostlerError
from store.contracts import NodeRecord
from store.faults import damaged
from store.fields import MAX_SAFE_INTEGER, Contract
from store.plans import GraphPlan, NodePlan, PlannedNode
from store.values import Domain, canonical, digest_bytes, is_plain, sorted_json

Model = TypeVar("Model", bound=Contract)

_PLAIN: Final = frozenset({NodeRecord})
"""Models of validated text, flags and bounded integers only, whose fields stand in the order of their names: what
pydantic writes are the canonical bytes."""

_PIECED: Final = frozenset({GraphPlan, PlannedNode, NodePlan})
"""Models that are mostly made of others, which are the same in many of them."""
_SIMPLE: Final = frozenset({str, int, bool, type(None), dict, list})
_REFUSED: Final = object()


def document(model: Contract) -> dict[str, JsonValue]:
    """Return *model* as a JSON value, every field written out."""
    return model.model_dump(mode="json")


def encode(model: Contract) -> bytes:
    """Return the canonical bytes of *model*.

    Raises:
        HostlerError: invalid-data, for JSON inside it that is no JSON value.

    """
    if type(model) in _PLAIN:
        return model.__pydantic_serializer__.to_json(model)
    exact = exactly(model) if type(model) in _PIECED else None
    return canonical(document(model)) if exact is None else exact


def is_written(model: Contract, data: bytes) -> bool:
    """Say whether *data* are canonical bytes of *model*, which was read from them.

    A program that knew fewer fields left out those that it did not know. So what is left out stands for its default,
    and nothing that was stored is ever written anew because there is a new field; its digest is of what was stored.

    Args:
        model: From `decode`, so that it knows which fields it was given.
        data: The stored bytes.

    Raises:
        HostlerError: invalid-data, for JSON inside it that is no JSON value.

    """
    return encode(model) == data or canonical(model.model_dump(mode="json", exclude_unset=True)) == data


def exactly(model: Contract) -> bytes | None:
    """Return the canonical bytes of a validated *model*, if all JSON values in it are what is read from them.

    Returns:
        The bytes; None where one has another form in them, as 600.0 has.

    """
    return _pieced(model, 0, {})


def _pieced(model: Contract, inside: int, made: dict[int, Any]) -> bytes | None:
    """Put the canonical bytes of *model* together from those of the models in it; None if it is not so easy.

    Args:
        model: The model.
        inside: In how many levels of another value it stands.
        made: Pieces made already, by the identity of their models: the nodes of a plan share their policies.

    """
    values: dict[str, Any] = {}
    pieces: dict[str, Any] = {}
    for name, value in model.__dict__.items():
        kind = type(value)
        if kind in _SIMPLE:
            values[name] = value
        elif kind is tuple:
            if value and isinstance(value[0], Contract):
                pieces[name] = [_piece(each, inside + 2, made) for each in value]
            else:
                values[name] = list(value)
        elif isinstance(value, Contract):
            pieces[name] = made.get(id(value)) or _piece(value, inside + 1, made)
        else:
            values[name] = dict(value) if isinstance(value, Mapping) else value
    if is_plain(values, largest=MAX_SAFE_INTEGER, inside=inside):
        with contextlib.suppress(TypeError):  # what has no such bytes is no `Fragment` either
            return sorted_json(values | pieces)
    return None


def _piece(model: Contract, inside: int, made: dict[int, Any]) -> orjson.Fragment | object:
    """Return the canonical bytes of a model within another one; what orjson refuses if they are not so easy."""
    if type(model) in _PIECED:
        data = _pieced(model, inside, made)
        return _REFUSED if data is None else orjson.Fragment(data)
    try:
        piece = made[id(model)] = orjson.Fragment(_of_json(model.__pydantic_serializer__.to_json(model)))
    except (HostlerError, PydanticSerializationError):
        return _REFUSED
    return piece


@lru_cache(maxsize=256)
def _of_json(data: bytes) -> bytes:
    """Return the canonical bytes of a small model, which many others share, from what pydantic writes of it."""
    return canonical(orjson.loads(data))


def graph_plan_sha256(plan: GraphPlan) -> str:
    """Return what `show` calls `plan_sha256`."""
    return digest_bytes(Domain.GRAPH_PLAN, encode(plan))


def node_plan_sha256(plan: NodePlan) -> str:
    """Return the digest that a person approves."""
    return digest_bytes(Domain.NODE_PLAN, encode(plan))


def verified(domain: Domain, data: object, sha256: str, what: str) -> bytes:
    """Return *data* if it has that digest.

    Args:
        domain: What it is a digest of.
        data: The stored bytes.
        sha256: The digest they must have.
        what: What they are, for the error.

    Raises:
        HostlerError: invalid-data, naming *what*.

    """
    # damage makes of a column what its table does not allow
    if not isinstance(data, bytes) or digest_bytes(domain, data) != sha256:
        raise damaged(what)
    return data


def decode(model: type[Model], data: bytes, what: str) -> Model:
    """Return the model stored as *data*.

    Args:
        model: Its class.
        data: Its canonical bytes.
        what: What it is, for the error.

    Raises:
        HostlerError: invalid-data, naming *what* and the first thing that is wrong.

    """
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "it"
        raise damaged(what, f"{where}: {first['msg']}") from None
