"""Exact plans frozen: their canonical bytes are put together from what many plans of a run share."""

from typing import Final

import orjson

from store.plans import Executor, NodePlan
from store.policy import Policy
from store.records import document, encode
from store.transactions import FrozenPlan
from store.values import MAX_DEPTH, Domain, canonical, digest_bytes

_KEYS_AND_BOUNDS: Final = b'","keys":[],"max_input_bytes":null,"max_seconds":null,"node":"'


class Shared:
    """What all plans of a run have in common whose nodes have the same executor and policy.

    Args:
        run_id: The run.
        executor: Of its nodes.
        policy: Likewise.

    """

    def __init__(self, run_id: str, executor: Executor, policy: Policy) -> None:
        self._run_id = run_id
        self._executor = executor
        self._policy = policy
        self._parts: tuple[bytes, bytes, bytes] | None = None

    def frozen(self, plan: NodePlan, data: bytes) -> FrozenPlan:
        """Freeze a plan of that run, with that executor and policy.

        Args:
            plan: The plan; its texts but those of its input and its keys are validated, so they need no escapes.
            data: Canonical bytes of its input.

        Raises:
            HostlerError: invalid-data, for an input that is nested too deeply to stand in a plan.

        """
        whole = self._joined(plan, data) if _is_bare(plan, data) else encode(plan)
        return FrozenPlan(plan=plan, sha256=digest_bytes(Domain.NODE_PLAN, whole), data=whole)

    def _joined(self, plan: NodePlan, data: bytes) -> bytes:
        if self._parts is None:
            executor, policy = canonical(document(self._executor)), canonical(document(self._policy))
            self._parts = (
                b',"descriptors":null,"executor":' + executor + b',"input":',
                b'","policy":' + policy + b',"preparation_sha256":null,"revision":',
                b',"run_id":"' + self._run_id.encode() + b'","workspace":null}',
            )
        before_input, before_revision, after_revision = self._parts
        return b"".join((
            b'{"dependencies":',
            orjson.dumps(plan.dependencies, option=orjson.OPT_SORT_KEYS),
            before_input,
            data,
            b',"input_sha256":"',
            plan.input_sha256.encode(),
            _KEYS_AND_BOUNDS,
            plan.node.encode(),
            b'","phase":"',
            plan.phase._value_.encode(),
            before_revision,
            b"%d" % plan.revision,
            after_revision,
        ))  # fmt: skip


def _is_bare(plan: NodePlan, data: bytes) -> bool:
    """Say whether a plan has nothing but what every plan has, and no input that could be nested too deeply."""
    return (
        type(plan.dependencies) is dict
        and not plan.keys
        and plan.descriptors is None
        and plan.max_input_bytes is None
        and plan.max_seconds is None
        and plan.preparation_sha256 is None
        and plan.workspace is None
        and data.count(b"[") + data.count(b"{") <= MAX_DEPTH
    )
