"""What the host can run in Python: operations and trusted compute, as values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from store.contracts import Policy

if TYPE_CHECKING:
    from actors.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A registered callable; kind and version name it in plans, the policy says what it may do.

    Attributes:
        kind: Dotted name, `media.probe`.
        version: Raised when its meaning changes.
        policy: Effect, resume class, claims and limits.
        function: Called with a `Context` and the validated input.
        input_type: Pydantic model of the input.
        output_type: Pydantic model of the output.

    """

    kind: str
    version: int
    policy: Policy
    function: Callable[..., Any]
    input_type: type[BaseModel]
    output_type: type[BaseModel]

    def __call__(self, ctx: "Context", input: BaseModel) -> Any:
        """Call it as the function it is, for tests and for reuse inside another operation."""
        return self.function(ctx, input)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """Trusted code of the workflow itself: a function from a value to a value.

    Attributes:
        name: Its name in the bundle.
        policy: Derived, never authored.
        function: Called with the input alone.
        input_type: Pydantic model of the input, None for any JSON value.
        output_type: Likewise of the output.

    """

    name: str
    policy: Policy
    function: Callable[[Any], Any]
    input_type: type[BaseModel] | None = None
    output_type: type[BaseModel] | None = None

    def __call__(self, input: Any) -> Any:
        """Call it as the function it is."""
        return self.function(input)
