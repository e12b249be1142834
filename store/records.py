"""Models as they are stored: canonical bytes and digests, and back, with the digest checked."""

from typing import Final, TypeVar

from pydantic import JsonValue, ValidationError

from hostres.errors import Code, HostlerError
from store.contracts import NodeRecord
from store.fields import Contract
from store.plans import GraphPlan, NodePlan
from store.values import Domain, canonical, digest_bytes

Model = TypeVar("Model", bound=Contract)

_PLAIN: Final = frozenset({NodeRecord})
"""Models of validated text, flags and bounded integers only, whose fields stand in the order of their names: what
pydantic writes are the canonical bytes."""

_LONGEST_TEXT: Final = 1000
_TODO: Final = "restore the store from a copy; what it names can no longer be trusted"


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
    return canonical(document(model))


def graph_plan_sha256(plan: GraphPlan) -> str:
    """Return what `show` calls `plan_sha256`."""
    return digest_bytes(Domain.GRAPH_PLAN, encode(plan))


def node_plan_sha256(plan: NodePlan) -> str:
    """Return the digest that a person approves."""
    return digest_bytes(Domain.NODE_PLAN, encode(plan))


def damaged(what: str, why: str = "its digest does not match") -> HostlerError:
    """Return the error for stored bytes that are not what was stored; what they say of themselves is not trusted."""
    text = f"stored {what} is damaged: {why}"
    shown = "".join(character if character.isprintable() else "?" for character in text[:_LONGEST_TEXT])
    return HostlerError(Code.INVALID_DATA, shown, _TODO)


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
