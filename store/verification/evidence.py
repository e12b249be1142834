"""What completed nodes have shown for their work, against what their terms ask for and what people approved."""

from collections.abc import Mapping

from store.contracts import GrantAction, NodeRecord
from store.evidence import shortfall
from store.lifecycle import Status
from store.plans import GraphPlan
from store.rules import principal_kind
from store.verification.examination import Examination
from store.verification.findings import Fault
from store.verification.retelling import Retelling, ToldGrant


def examine_evidence(
    examination: Examination, plan: GraphPlan, records: Mapping[str, NodeRecord], told: Retelling
) -> None:
    """Examine the evidence of completed nodes; who settles a node as completed answers for it himself.

    Args:
        examination: Where to note what is wrong.
        plan: The graph plan.
        records: The node records that can be read, by key.
        told: What the log says.

    """
    for planned in plan.nodes:
        record = records.get(planned.key)
        if record is None or record.status is not Status.COMPLETED:
            continue
        due = () if planned.terms is None else planned.terms.evidence
        if not due and not record.evidence:
            continue
        grants = [grant for grant in told.grants if grant.node == planned.key and grant.allowed]
        if any(_is_of(grant, GrantAction.SETTLE, record) for grant in grants):
            continue
        approved = any(
            _is_of(grant, action, record) and principal_kind(grant.principal or "") == "human"
            for grant in grants
            for action in (GrantAction.EVIDENCE, GrantAction.GATE)
        )
        found = shortfall(due, record.evidence, approved=approved)
        if found is not None:
            examination.wrong(Fault.EVIDENCE, "nodes", f"it is completed, evidence {found}", node=planned.key)


def _is_of(grant: ToldGrant, action: GrantAction, record: NodeRecord) -> bool:
    return grant.action == action and grant.node_attempt == record.attempt
