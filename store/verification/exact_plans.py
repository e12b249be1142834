"""The exact plans of a run's nodes: each must be what the graph plan and the outputs before it make.

What a planner worked out cannot be worked out again without its code. Of that, all is checked that binds a planner:
what it runs, under which policy, within which bounds, which files it must name, and which preparation it followed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from hostres.errors import HostlerError
from store.contracts import NodeRecord
from store.lifecycle import Status
from store.plans import GraphPlan, NodePlan, PlannedNode, PlanPhase
from store.publication import publication_keys
from store.references import references, resolve
from store.row_ids import of_run, row_id
from store.values import Domain, canonical, digest_bytes
from store.verification.examination import Examination
from store.verification.findings import Fault
from store.verification.node_rows import Outputs


def examine_plans(
    examination: Examination,
    plan: GraphPlan,
    folder: str | None,
    records: Mapping[str, NodeRecord],
    outputs: Outputs,
    inputs: Mapping[tuple[str, int], JsonValue],
) -> None:
    """Examine the preparation and the effect of each node.

    Args:
        examination: Where to note what is wrong.
        plan: The graph plan.
        folder: The folder of the run; None if it cannot be read.
        records: Those that can be read, by key.
        outputs: What the nodes gave.
        inputs: Of the revisions of corrected nodes, by node and number.

    """
    planned = {node.key: node for node in plan.nodes}
    rules = Rules(folder, records, outputs, inputs)
    missing = {
        (key, sha256)
        for key, record in records.items()
        for sha256 in (record.preparation_sha256, record.plan_sha256)
        if sha256 is not None
    }
    query = of_run("id, node, sha256, size, content", "node_plans")
    last = row_id(examination.run, 0)
    for row, key, sha256, size, inline in examination.rows(query):
        if row != last + 1:
            examination.wrong(Fault.MISSING, "node_plans", f"a plan before {sha256} is missing", node=key)
        last = row
        missing.discard((key, sha256))
        rules.stored.add(sha256)
        exact = _read(examination, key, (sha256, size, inline))
        if exact is None:
            continue
        if (exact.run_id, exact.node) != (examination.run_id, key):
            what = f"plan {sha256} is of node {exact.node} of run {exact.run_id}"
            examination.wrong(Fault.COLUMN, "node_plans", what, node=key)
        elif key not in planned:
            examination.wrong(Fault.PLAN, "node_plans", "the graph plan has no such node", node=key)
        else:
            why = rules.difference(sha256, exact, planned[key])
            if why is not None:
                examination.wrong(Fault.PLAN, "node_plans", f"plan {sha256}: {why}", node=key)
    for key, sha256 in sorted(missing):
        examination.wrong(Fault.MISSING, "node_plans", f"its plan {sha256} is missing", node=key)


def _read(examination: Examination, key: str, row: tuple[str, int, bytes | None]) -> NodePlan | None:
    what = f"its plan {row[0]}"
    data = examination.content(Domain.NODE_PLAN, row, table="node_plans", what=what, node=key)
    return None if data is None else examination.model(NodePlan, data, table="node_plans", what=what, node=key)


@dataclass(slots=True)
class Rules:
    """What an exact plan is held against, one plan after the other in the order in which they were frozen.

    Attributes:
        stored: Digests of the plans that were there so far, also of damaged ones.
        preparations: Those of them that are sound preparations; each comes before the effects that follow from it.

    """

    folder: str | None
    records: Mapping[str, NodeRecord]
    outputs: Outputs
    inputs: Mapping[tuple[str, int], JsonValue] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    preparations: dict[str, NodePlan] = field(default_factory=dict)

    def difference(self, sha256: str, exact: NodePlan, planned: PlannedNode) -> str | None:
        """Say in what an exact plan differs from what it can be; None where it does not."""
        if exact.revision:
            if (planned.key, exact.revision) not in self.inputs:
                return f"there is no revision {exact.revision} of its node"
            planned = planned.model_copy(update={"input": self.inputs[planned.key, exact.revision]})
        record = self.records.get(planned.key)
        if record is not None and record.frozen_sha256 == sha256 and record.revision != exact.revision:
            return f"it is of revision {exact.revision}, its node has revision {record.revision}"
        why = self._as_planned(exact, planned) or self._bounds(exact, planned)
        if why is not None:
            return why
        if exact.phase is PlanPhase.PREPARATION:
            self.preparations[sha256] = exact.model_copy(update={"input": None, "descriptors": None})
            if exact.keys or exact.preparation_sha256 is not None:
                return "it is a preparation and has what only an effect has"
            return self._given(exact, planned)
        named = None if record is None or record.plan_sha256 != sha256 else record
        if named is not None and named.preparation_sha256 != exact.preparation_sha256:
            return f"its preparation is {exact.preparation_sha256}, its node has {named.preparation_sha256}"
        why = self._keys(exact)
        if why is not None:
            return why
        return self._given(exact, planned) if exact.preparation_sha256 is None else self._as_prepared(exact, planned)

    def _as_planned(self, exact: NodePlan, planned: PlannedNode) -> str | None:
        if exact.executor != planned.executor:
            return "it runs something else than the graph plan"
        if exact.policy != planned.policy:
            return "its policy is not that of the graph plan"
        if exact.workspace != planned.workspace:
            return "its workspace is not that of the graph plan"
        if {*exact.dependencies} != {*planned.dependencies}:
            return "its dependencies are not those of the graph plan"
        for key, output_sha256 in exact.dependencies.items():
            record = self.records.get(key)
            if record is not None and record.status is Status.COMPLETED and record.output_sha256 != output_sha256:
                return f"it was made for another output of node {key}"
        return None

    @staticmethod
    def _bounds(exact: NodePlan, planned: PlannedNode) -> str | None:
        data, policy = canonical(exact.input), planned.policy
        if exact.input_sha256 != digest_bytes(Domain.INPUT, data):
            return "the digest of its input does not match"
        if (exact.max_input_bytes or 0) > policy.max_input_bytes or (exact.max_seconds or 0) > policy.max_seconds:
            return "its bounds are beyond those of its policy"
        of_planner = exact.max_input_bytes if exact.phase is PlanPhase.EFFECT else None
        limit = of_planner or policy.max_input_bytes
        return f"its input has {len(data)} bytes, {limit} are allowed" if len(data) > limit else None

    def _keys(self, exact: NodePlan) -> str | None:
        """Compare what an effect publishes with what its input says; a planner may name more."""
        if self.folder is None:
            return None  # its record is damaged, and named
        due, named = {*publication_keys(self.folder, exact.policy.publishes, exact.input)}, {*exact.keys}
        wrong = not due <= named if exact.preparation_sha256 else due != named
        return "its publication keys are not those of what it publishes" if wrong else None

    def _as_prepared(self, exact: NodePlan, planned: PlannedNode) -> str | None:
        """Compare an effect with the preparation that it says it was worked out from."""
        prepared = self.preparations.get(exact.preparation_sha256 or "")
        if prepared is None:
            if exact.preparation_sha256 in self.stored:
                return None  # it is damaged itself, and named
            return f"its preparation {exact.preparation_sha256} is missing"
        if prepared.node != planned.key:
            return f"its preparation {exact.preparation_sha256} is of node {prepared.node}"
        for name in ("dependencies", "max_input_bytes", "max_seconds", "revision"):
            if getattr(exact, name) != getattr(prepared, name):
                return f"its {name} are not those of its preparation"
        return "it has what only a preparation has" if exact.descriptors is not None else None

    def _given(self, exact: NodePlan, planned: PlannedNode) -> str | None:
        """Compare a plan that no planner made with what the dependencies gave."""
        if exact.phase is PlanPhase.EFFECT:
            if planned.policy.preparation:
                return "it follows no preparation"
            if (exact.descriptors, exact.max_input_bytes, exact.max_seconds) != (None, None, None):
                return "it has what only a planner gives"
        used = {reference.node for reference in references(planned.input)}
        if not self.outputs.has(used):
            return None  # what it needs is damaged itself, and named
        try:
            given = resolve(planned.input, {key: self.outputs.of(key) for key in used})
        except HostlerError as error:
            return error.what
        return None if given == exact.input else "its input is not what its dependencies gave"
