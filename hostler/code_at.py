"""What a host tells a worker process of the code that it is to call."""

from pydantic import BaseModel, ConfigDict

from store.policy import Policy


class CodeAt(BaseModel):
    """What a worker process is told of the code that it is to call.

    Attributes:
        kind: Of the code, operation or compute.
        name: The kind of an operation, the name of a compute function.
        version: Of an operation; 0 for a compute function.
        module: Where an installed operation is found, None for code that comes as a bundle.
        bundle_sha256: Digest that the bundle must have.
        entry: The workflow's file in it.
        root: Where its code says that it lies.
        path: Where this host finds modules.
        policy: As planned.
        input_sha256: Digest of its input's schema, as planned.
        output_sha256: Likewise of its output.

    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    name: str
    version: int
    module: str | None = None
    bundle_sha256: str | None = None
    entry: str = ""
    root: str = ""
    path: tuple[str, ...]
    policy: Policy
    input_sha256: str | None
    output_sha256: str | None
