"""What a workflow function holds of a node that has not run: a handle of its output."""

from dataclasses import field
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import JsonValue

from hostler.refusals import invalid
from store.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from hostler.building import Build


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
            raise invalid(
                f"node {self.key}: {step!r} is no field name and no index from 0", "use output['name'] or output[0]"
            )
        return NodeHandle(self.key, (*self.path, step), self.build)

    def __iter__(self) -> NoReturn:
        """Refuse: how many elements there are is known only when the node has run."""
        raise invalid(f"node {self.key}: its output is not there yet to be looped over", "refer to elements by [0]")

    def __str__(self) -> str:
        """Refuse: text around it would hold the handle's name, not the value."""
        raise invalid(
            f"node {self.key}: a reference to its output was put into a text",
            "pass the reference as a whole value and join the text in the operation",
        )

    def __format__(self, _: str) -> str:
        """Refuse likewise."""
        return str(self)

    def as_reference(self) -> JsonValue:
        """Return the reference as it stands in a template."""
        return {"$ref": {"node": self.key, "path": list(self.path)}}
