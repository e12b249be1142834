"""Whether code is what a plan says it is."""

from actors.operations import Compute, Operation
from hostler.schemas import input_sha256, output_sha256
from store.policy import Policy


def difference(
    code: Operation | Compute, *, policy: Policy, input_schema_sha256: str | None, output_schema_sha256: str | None
) -> str | None:
    """Say in what code differs from its plan, None where it does not.

    Args:
        code: What was found under the planned name.
        policy: As planned.
        input_schema_sha256: Digest of the schema of its input, as planned.
        output_schema_sha256: Likewise of its output.

    """
    if code.policy != policy:
        return "its policy differs from the plan"
    if (input_sha256(code.input_type) if code.input_type else None) != input_schema_sha256:
        return "its input schema differs from the plan"
    if (output_sha256(code.output_type) if code.output_type else None) != output_schema_sha256:
        return "its output schema differs from the plan"
    return None
