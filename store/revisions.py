"""A node with another input: what a person may put in the place of the input that its plan gave it. Pure.

The plan of a run stays frozen. A revision is kept with the grant that made it; the last one of a node counts.
"""

from collections.abc import Iterable
from typing import Final

from pydantic import JsonValue

from hostres.errors import HostlerError
from store.contracts import Grant, GrantAction, Revision
from store.limits import MIB
from store.plans import CommandExecutor, PlannedNode
from store.references import references
from store.values import Domain, canonical, digest_bytes

LARGEST_BYTES: Final = MIB
"""Of the canonical form of a corrected input; what is larger belongs into a file that it names."""
COMMAND_WORDS: Final = frozenset({"argv", "env", "stdin", "value"})
"""What the input of a command is made of."""


def revisions(grants: Iterable[Grant]) -> dict[str, Revision]:
    """Return the last revision of each node that was corrected.

    Args:
        grants: Of a run, oldest first.

    """
    return {
        grant.node: grant.revision
        for grant in grants
        if grant.allowed and grant.action is GrantAction.CORRECT and grant.revision is not None
    }


def revised(planned: PlannedNode, revision: Revision) -> PlannedNode:
    """Return *planned* as it is after *revision*."""
    return planned.model_copy(update={"input": revision.input})


def input_sha256(value: JsonValue) -> str:
    """Return the digest of a corrected input, references and all, by which the log names it."""
    return digest_bytes(Domain.INPUT, canonical(value))


def misfit(planned: PlannedNode, value: JsonValue) -> str | None:
    """Say why *value* cannot be the input of *planned*, None if it can.

    What it depends on stays as it is: a revision waits for the same nodes, and the same nodes wait for it.
    """
    try:
        size = len(canonical(value))
        used = {reference.node for reference in references(value)}
    except HostlerError as error:
        return error.what
    limit = min(LARGEST_BYTES, planned.policy.max_input_bytes)
    if size > limit:
        return f"it has {size} bytes, {limit} are allowed"
    other = sorted(used - {*planned.dependencies})
    if other:
        return f"it refers to node {other[0]}, which {planned.key} does not depend on"
    if isinstance(planned.executor, CommandExecutor):
        if not isinstance(value, dict) or not value.keys() <= COMMAND_WORDS:
            return f"the input of a command is an object of {', '.join(sorted(COMMAND_WORDS))}"
        argv = value.get("argv")
        if not isinstance(argv, list) or not argv:
            return "its argv is no list of words"
    return None
