"""A node as it was authored, before the plan."""

from dataclasses import field

from pydantic import BaseModel, JsonValue

from actors.operations import Compute, Operation
from hostler.schemas import ANYTHING, Schema, input_sha256, output_sha256
from store.lazy_dataclass import dataclass
from store.plans import Executor
from store.policy import Policy
from store.terms import Terms
from store.workspace import GitWorkspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A node as it was authored.

    Attributes:
        code: The operation or compute function, None for other nodes.
        accepts: JSON schema of its input, as far as it is known.
        output: JSON schema of its output, as far as it is known.

    """

    key: str
    label: str | None
    executor: Executor
    input: JsonValue
    after: tuple[str, ...]
    policy: Policy
    priority: int = 0
    terms: Terms | None = None
    workspace: GitWorkspace | None = None
    code: Operation | Compute | None = None
    accepts: Schema = field(default_factory=lambda: ANYTHING)
    output: Schema = field(default_factory=lambda: ANYTHING)

    @property
    def input_type(self) -> type[BaseModel] | None:
        """The model its input must fit, if any."""
        return self.code.input_type if self.code else None

    @property
    def input_sha256(self) -> str | None:
        """Digest of its input schema."""
        return input_sha256(self.code.input_type) if self.code and self.code.input_type else None

    @property
    def output_sha256(self) -> str | None:
        """Digest of its output schema."""
        return output_sha256(self.code.output_type) if self.code and self.code.output_type else None
