"""What fields of stored values look like: names, digests, instants, bounded texts and numbers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainSerializer

from store.patterns import NAME_PATTERN, NODE_KEY_PATTERN, RUN_ID_PATTERN, SHA256_PATTERN

MAX_SAFE_INTEGER: Final = 2**53 - 1


def read_only(mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of *mapping* that nobody can change, in the order of its keys."""
    return MappingProxyType(dict(sorted(mapping.items())))


NodeKey = Annotated[str, Field(min_length=1, max_length=255, pattern=NODE_KEY_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=255, pattern=NAME_PATTERN)]
Sha256 = Annotated[str, Field(pattern=SHA256_PATTERN)]
RunId = Annotated[str, Field(pattern=RUN_ID_PATTERN)]
Instant = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
"""RFC 3339, UTC, milliseconds, Z."""
Weight = Annotated[int, Field(ge=1, le=MAX_SAFE_INTEGER)]
Claims = Annotated[
    Mapping[Name, Weight],
    AfterValidator(read_only),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, int]),  # noqa: PLW0108 - pydantic needs a signature
]
"""Resource → units, read-only."""
Text = Annotated[str, Field(max_length=4096)]
"""A path, or a text of about a page."""
Reason = Annotated[str, Field(max_length=4000)]
Principal = Annotated[str, Field(min_length=1, max_length=1024)]
"""`kind:id`."""
Id = Annotated[str, Field(min_length=1, max_length=1024)]
Attempt = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Revisions = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Number = Annotated[int, Field(ge=0, le=MAX_SAFE_INTEGER)]
Strings = Annotated[
    Mapping[Id, Text],
    AfterValidator(read_only),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, str]),  # noqa: PLW0108 - likewise
]
Counts = Annotated[
    Mapping[Id, Number],
    AfterValidator(read_only),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, int]),  # noqa: PLW0108 - likewise
]
Digests = Annotated[
    Mapping[NodeKey, Sha256],
    AfterValidator(read_only),
    PlainSerializer(lambda mapping: dict(mapping), return_type=dict[str, str]),  # noqa: PLW0108 - likewise
]


Made = TypeVar("Made", bound=BaseModel)


def _made(cls: type[Made], fields: dict[str, Any], given: set[str]) -> Made:
    made = object.__new__(cls)
    put = object.__setattr__
    put(made, "__dict__", fields)
    put(made, "__pydantic_fields_set__", given)
    put(made, "__pydantic_extra__", None)
    put(made, "__pydantic_private__", None)
    return made


class Contract(BaseModel):
    """Base of everything stored: frozen, strict, no unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def but(self, changes: dict[str, Any]) -> Self:
        """Return a copy with *changes*, which are not validated: `model_copy` without what no stored model has."""
        given = self.__pydantic_fields_set__
        if not changes.keys() <= given:
            given = given | changes.keys()
        return _made(type(self), self.__dict__ | changes, given)

    def amend(self, changes: dict[str, Any]) -> None:
        """Make those changes in this copy itself: for who has made it by `but`, and has shown it to nobody yet."""
        given = self.__pydantic_fields_set__
        if not changes.keys() <= given:
            object.__setattr__(self, "__pydantic_fields_set__", given | changes.keys())
        self.__dict__.update(changes)

    @classmethod
    def of_known(cls, **fields: Any) -> Self:
        """Return one of values that need no check, one for each field: `model_construct` without defaults."""
        return _made(cls, fields, set(fields))
