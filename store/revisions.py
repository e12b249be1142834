"""A node with another input: what a person may put in the place of the input that its plan gave it. Pure.

The plan of a run stays frozen. A revision is kept with the grant that made it; the last one of a node counts.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.contracts import Grant, GrantAction, Revision
from store.envelopes import beyond_commands
from store.limits import MIB
from store.plans import AgentExecutor, CommandExecutor, PlannedNode
from store.program_words import check_program
from store.publication import SHORTER, impossible_name
from store.references import references, resolve
from store.terms import Envelope
from store.values import Domain, canonical, digest_bytes
from store.words import words_of

LARGEST_BYTES: Final = MIB
"""Of the canonical form of a corrected input; what is larger belongs into a file that it names."""


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


def completed(planned: PlannedNode, given: JsonValue) -> JsonValue:
    """Return the whole new input of a node: of a program, what *given* leaves out stays as it is.

    Args:
        planned: The node as it is now.
        given: What a person gave.

    """
    if not isinstance(planned.executor, CommandExecutor | AgentExecutor) or not isinstance(given, dict):
        return given
    return {**(planned.input if isinstance(planned.input, dict) else {}), **given}


def input_sha256(value: JsonValue) -> str:
    """Return the digest of a corrected input, references and all, by which the log names it."""
    return digest_bytes(Domain.INPUT, canonical(value))


def check_revision(
    planned: PlannedNode,
    value: JsonValue,
    *,
    folder: str,
    envelope: Envelope | None = None,
    outputs: Mapping[str, JsonValue],
) -> None:
    """Refuse what cannot be the input of *planned*, as a plan with it would be refused.

    What it depends on stays as it is: a revision waits for the same nodes, and the same nodes wait for it.

    Args:
        planned: The node as it is now.
        value: Its whole new input, with references.
        folder: Of the run; relative paths belong there.
        envelope: What the node may do at most.
        outputs: Of the nodes it depends on, as far as they have one: what is referred to can be looked at then.

    Raises:
        HostlerError: invalid-data.

    """
    size = len(canonical(value))
    used = {reference.node for reference in references(value)}
    limit = min(LARGEST_BYTES, planned.policy.max_input_bytes)
    if size > limit:
        raise _refusal(f"it has {size} bytes, {limit} are allowed", "put what is large into a file and name that")
    other = sorted(used - {*planned.dependencies})
    if other:
        what = f"it refers to node {other[0]}, which {planned.key} does not depend on"
        raise _refusal(what, f"refer to {', '.join(planned.dependencies) or 'no node'}")
    executor = planned.executor
    given = resolve(value, outputs) if used <= outputs.keys() else None
    if isinstance(executor, CommandExecutor | AgentExecutor):
        check_program(executor, value)
        if given is not None:
            words_of(executor, value, given)
    beyond = None if envelope is None else beyond_commands(envelope, executor, value)
    if beyond is not None:
        raise _refusal(f"its authority does not name the command {beyond}", "use one of its commands")
    impossible = impossible_name(folder, planned.policy.publishes, value)
    if impossible is not None:
        raise _refusal(impossible, SHORTER)


def _refusal(what: str, todo: str) -> HostlerError:
    return HostlerError(Code.INVALID_DATA, what, todo)
