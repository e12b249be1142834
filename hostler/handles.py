"""What a workflow function holds of a node that has not run: a handle of its output.

Python has an answer to nearly all that is done with an object, and of a handle each would be wrong: a plan that is
built by it does something else than its author wrote. So a handle refuses all that Python lets it refuse. Nothing of
Hostler compares handles or looks one up; it goes by `key`, `path` and identity.
"""

from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pydantic import JsonValue

from hostler.refusals import invalid
from hostres.errors import HostlerError
from store.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from hostler.building import Build

_DECIDE: Final = "decide it in a node, as by a compute function that is given it, or by an input of the workflow"


class MisusedHandleError(HostlerError):
    """A handle was taken for the value that its node has not given yet; whoever calls the author adds the line."""


@dataclass(frozen=True, slots=True)
class NodeHandle:
    """A node's output, or a part of it: `audio["path"]`, `parts["files"][0]`. Using it makes the dependency.

    Attributes:
        key: The node.
        path: Fields and indexes that lead to the part; empty is the whole output.

    """

    key: str
    path: tuple[str | int, ...] = ()
    build: "Build | None" = field(default=None, repr=False, compare=False)

    def __getitem__(self, step: str | int) -> "NodeHandle":
        """Return the handle of a field or an element."""
        given: Any = step
        if isinstance(given, bool) or not isinstance(given, str | int) or (isinstance(given, int) and given < 0):
            raise self._misused(f"{step!r} is no field name and no index from 0", "use output['name'] or output[0]")
        return NodeHandle(self.key, (*self.path, step), self.build)

    def __iter__(self) -> NoReturn:
        """Refuse: how many elements there are is known only when the node has run."""
        raise self._misused("its output is not there yet to be looped over", "refer to elements by [0]")

    def __bool__(self) -> NoReturn:
        """Refuse: `if`, `and`, `or` and `not` would find any handle true."""
        raise self._misused(
            "its output is not there yet to be true or false, as `if` wants it",
            f"{_DECIDE}; whether there is a handle says `is not None`",
        )

    def __eq__(self, other: object) -> NoReturn:
        """Refuse: `==`, `!=`, `in` and `case` would find it different from any value."""
        raise self._misused("its output is not there yet to be compared, as by `==` or `in`", _DECIDE)

    def __lt__(self, other: object) -> NoReturn:
        """Refuse likewise, as `sorted` and `max` would do."""
        raise self._misused("its output is not there yet to be compared, as by `<` or `max`", _DECIDE)

    __le__ = __gt__ = __ge__ = __lt__

    def __hash__(self) -> NoReturn:
        """Refuse: a dictionary would not find its value among its keys."""
        raise self._misused(
            "its output is not there yet to be looked up in a dictionary or a set",
            f"{_DECIDE}; to keep handles apart use a list, or handle.key",
        )

    def __str__(self) -> str:
        """Refuse: text around it would hold the handle's name, not the value."""
        raise self._misused(
            "a reference to its output was put into a text",
            "pass the reference as a whole value and join the text in the operation",
        )

    def __format__(self, _: str) -> str:
        """Refuse likewise."""
        return str(self)

    def as_reference(self) -> JsonValue:
        """Return the reference as it stands in a template."""
        return {"$ref": {"node": self.key, "path": list(self.path)}}

    def _misused(self, what: str, todo: str) -> MisusedHandleError:
        refusal = invalid(f"node {self.key}: {what}", todo)
        return MisusedHandleError(refusal.code, refusal.what, refusal.todo)
