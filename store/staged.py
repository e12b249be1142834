"""A transaction before the write lock is taken: digests and sizes checked, what is large already on the disk."""

from hostres.errors import Code, HostlerError
from store.content import Content
from store.contracts import Summary
from store.lazy_dataclass import dataclass
from store.limits import Limits
from store.records import encode
from store.transactions import FrozenPlan, Output, Transaction
from store.values import Domain, digest_bytes


@dataclass(frozen=True, slots=True)
class Staged:
    """A transaction whose bytes are checked and, where large, on the disk.

    Attributes:
        plans: What the row of each plan holds.
        outputs: What the row of each output holds.
        summary: Canonical bytes, digest and row content of the summary.

    """

    transaction: Transaction
    plans: tuple[bytes | None, ...]
    outputs: tuple[bytes | None, ...]
    summary: tuple[int, str, bytes | None] | None


def stage(transaction: Transaction, content: Content, limits: Limits) -> Staged:
    """Check digests and sizes and make what is large durable, before the write lock is taken.

    Raises:
        HostlerError: invalid-data; unavailable, if a file cannot be written.

    """
    if not (transaction.plans or transaction.outputs or transaction.summary):
        return Staged(transaction, (), (), None)
    for frozen in transaction.plans:
        _check(Domain.NODE_PLAN, frozen, "plan", frozen.plan.node, limits)
    for output in transaction.outputs:
        _check(Domain.OUTPUT, output, "output", output.node, limits)
    return Staged(
        transaction,
        tuple([content.put(frozen.sha256, frozen.data) for frozen in transaction.plans]),
        tuple([content.put(output.sha256, output.data) for output in transaction.outputs]),
        None if transaction.summary is None else _stage_summary(transaction.summary, content, limits),
    )


def _check(domain: Domain, given: FrozenPlan | Output, what: str, node: str, limits: Limits) -> None:
    if len(given.data) > limits.value_bytes:
        raise HostlerError(
            Code.INVALID_DATA,
            f"the {what} of node {node} is too large: {len(given.data)} bytes, {limits.value_bytes} are allowed",
            "put what is large into a file and name that",
        )
    if digest_bytes(domain, given.data) != given.sha256:
        wrong = f"the {what} of node {node} does not have the digest {given.sha256}"
        raise HostlerError(Code.INVALID_DATA, wrong, "compute it anew")


def _stage_summary(summary: Summary, content: Content, limits: Limits) -> tuple[int, str, bytes | None]:
    data = encode(summary)
    if len(data) > limits.value_bytes:
        what = f"the outputs of the run are too large: {len(data)} bytes, {limits.value_bytes} are allowed"
        raise HostlerError(Code.INVALID_DATA, what, "put what is large into a file and name that")
    sha256 = digest_bytes(Domain.RECORD, data)
    return len(data), sha256, content.put(sha256, data)
