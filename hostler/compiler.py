"""From a workflow and its inputs to a hashed plan: the same source and the same inputs give the same hash.

Nothing runs and nothing is written. The work is linear in nodes and references.
"""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from actors.operations import Compute, Operation
from hostler.building import Build
from hostler.checks import check_evidence, check_input, check_reference, check_workspace
from hostler.drafts import Draft
from hostler.faults import naming_line
from hostler.limits import MAX_NODES
from hostler.ordering import in_order
from hostler.places import code_of
from hostler.refusals import OTHER_FOLDER, about, invalid, listed, require_utf8
from hostler.registry import Registry, default_registry
from hostler.schemas import ANYTHING
from hostler.templates import located_references
from hostler.worker_code import check_found, check_trusted
from hostler.workflows import Workflow
from hostler.written_values import Written
from hostres.errors import HostlerError
from hostres.masking import own_mask
from hostres.suggestions import did_you_mean
from store.activation import held_back
from store.delegation import delegation_fault
from store.envelopes import problems
from store.lazy_dataclass import dataclass
from store.plans import GateExecutor, GraphPlan, PlannedNode
from store.publication import SHORTER, impossible_name
from store.records import document, encode
from store.references import Reference
from store.values import Domain, canonical, check, digest_bytes

Found = list[tuple[tuple[str | int, ...], Reference]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A plan, and what is needed to run it.

    Attributes:
        plan: The plan.
        plan_sha256: Its digest.
        bundle: The code of a Python workflow, as a deterministic archive.
        bundle_sha256: Its digest.
        source: Where the workflow came from: `path`, `path:name` or `module:name`, None for one built in a program.
        folder: Absolute; relative paths in inputs resolve against it.
        operations: The operations of its nodes, by kind and version.
        computes: The compute functions of its nodes, by name.

    """

    plan: GraphPlan
    plan_sha256: str
    bundle: bytes | None = field(default=None, repr=False)
    bundle_sha256: str | None = None
    source: str | None = None
    folder: str
    operations: Mapping[tuple[str, int], Operation] = field(default_factory=dict)
    computes: Mapping[str, Compute] = field(default_factory=dict)


ACTIVATION: Final = GateExecutor(gate="activation")


def compile_workflow(
    workflow: Workflow,
    inputs: Mapping[str, Any],
    *,
    folder: Path,
    source: str | None = None,
    registry: Registry | None = None,
    max_nodes: int = MAX_NODES,
) -> Compiled:
    """Compile a workflow.

    Args:
        workflow: From `@workflow`, or from `load`.
        inputs: Its inputs by name.
        folder: Where the run is created; relative paths in inputs resolve against it.
        source: Where the workflow came from, if that is not known from its loading.
        registry: Where operations named by text are found.
        max_nodes: How many nodes it may have.

    Returns:
        The plan with its digest, and the code it needs.

    Raises:
        HostlerError: The workflow or its inputs are wrong (invalid-data or invalid-claims, naming the node).

    """
    if not isinstance(workflow, Workflow):
        raise invalid(f"{workflow!r} is not a workflow", "decorate its function with @workflow")
    received, recorded = workflow.concrete(inputs)
    build = Build(registry=registry or default_registry(), max_nodes=max_nodes)
    with naming_line(workflow):
        authored = workflow.author(build, received)
    outputs = Written(build, f"workflow {workflow.id}").template(authored, "outputs")
    if not build.drafts:
        raise invalid(f"workflow {workflow.id} has no nodes", "add one with build.call, build.command or build.gate")
    for operation in {id(each.code): each.code for each in build.drafts.values()}.values():
        if isinstance(operation, Operation):
            check_found(operation)
    nodes = _nodes(build.drafts)
    fault = delegation_fault(nodes)
    if fault is not None:
        raise invalid(f"node {fault[0]}: {fault[1]}", "name a parent that leads to a node without one")
    _check_outputs(outputs, build.drafts, workflow)
    computes = {each.code.name: each.code for each in build.drafts.values() if isinstance(each.code, Compute)}
    located = code_of(workflow)
    bundle = located.bundle
    if computes and bundle is None:
        first = next(each.key for each in build.drafts.values() if isinstance(each.code, Compute))
        raise invalid(
            f"node {first}: compute code needs a workflow that stands at the top level of a file",
            "move the workflow and its compute functions into a file",
        )
    for compute in computes.values():
        check_trusted(compute)
    plan = GraphPlan(
        workflow=workflow.id,
        version=workflow.version,
        inputs=recorded,
        nodes=nodes,
        outputs=outputs,
        limits=workflow.limits,
        bundle_sha256=bundle.sha256 if bundle and computes else None,
    )
    where = require_utf8(str(folder.absolute()), "the folder of the run", OTHER_FOLDER)
    beyond = next(problems(plan.nodes, where), None)
    if beyond is not None:
        raise invalid(beyond, "keep what a node may do within what its parent may")
    for node in plan.nodes:
        impossible = impossible_name(where, node.policy.publishes, node.input)
        if impossible is not None:
            raise invalid(f"node {node.key}: {impossible}", SHORTER)
    data = encode(plan)
    _refuse_secrets(plan, data)
    return Compiled(
        plan=plan,
        plan_sha256=digest_bytes(Domain.GRAPH_PLAN, data),
        bundle=bundle.data if bundle else None,
        bundle_sha256=bundle.sha256 if bundle else None,
        source=source or located.source,
        folder=where,
        operations={
            (each.code.kind, each.code.version): each.code
            for each in build.drafts.values()
            if isinstance(each.code, Operation)
        },
        computes=computes,
    )


def _nodes(drafts: Mapping[str, Draft]) -> tuple[PlannedNode, ...]:
    dependencies = {key: _checked(draft, drafts) for key, draft in drafts.items()}
    gates = [key for key, draft in drafts.items() if draft.executor == ACTIVATION]
    for key in gates:
        if dependencies[key]:
            waits = f"node {key}: an activation gate comes before everything, and it waits for {dependencies[key][0]}"
            raise invalid(waits, "take that away, or use another kind of gate")
    dependencies = held_back(dependencies, gates)
    return tuple(_planned(drafts[key], dependencies[key]) for key in in_order(dependencies))


def _refuse_secrets(plan: GraphPlan, data: bytes) -> None:
    """Refuse a plan with a secret in it: it is stored and shown."""
    mask = own_mask()
    if not mask.finds(data):
        return
    where = next((f"node {node.key}" for node in plan.nodes if mask.finds(canonical(document(node)))), "an input")
    raise invalid(
        f"{where} of workflow {plan.workflow} holds a secret, which would be stored and shown",
        'give a command the name of a variable instead, as {"$secret": NAME} in its env, or let the code read it',
    )


def _checked(draft: Draft, drafts: Mapping[str, Draft]) -> tuple[str, ...]:
    """Check a node's input and return the nodes it waits for."""
    subject = f"node {draft.key}"
    try:
        check(draft.input)
        found: Found = list(located_references(draft.input))
    except HostlerError as error:
        raise about(subject, error) from error
    if draft.workspace is not None:
        check_workspace(draft.executor, draft.policy, draft.workspace, subject)
    if draft.terms is not None:
        check_evidence(draft.executor, draft.terms.evidence, subject)
    if draft.input_type is not None:
        check_input(draft.input_type, draft.input, found, subject)
    for at, reference in found:
        if reference.node not in drafts:
            raise _missing(f"{subject}: it refers to", reference.node, drafts)
        check_reference(draft.accepts, at, reference, drafts[reference.node].output, subject)
    for key in draft.after:
        if key not in drafts:
            raise _missing(f"{subject}: it comes after", key, drafts)
    return tuple(sorted({*(reference.node for _, reference in found), *draft.after}))


def _missing(subject: str, key: str, drafts: Mapping[str, Draft]) -> HostlerError:
    todo = did_you_mean(key, drafts, f"name one of its nodes: {listed(list(drafts))}")
    return invalid(f"{subject} node {key}, which does not exist", todo)


def _planned(draft: Draft, dependencies: tuple[str, ...]) -> PlannedNode:
    return PlannedNode(
        key=draft.key,
        label=draft.label,
        executor=draft.executor,
        input=draft.input,
        dependencies=dependencies,
        policy=draft.policy,
        priority=draft.priority,
        terms=draft.terms,
        workspace=draft.workspace,
        input_schema_sha256=draft.input_sha256,
        output_schema_sha256=draft.output_sha256,
    )


def _check_outputs(outputs: JsonValue, drafts: Mapping[str, Draft], workflow: Workflow) -> None:
    subject = f"outputs of workflow {workflow.id}"
    try:
        check(outputs)
        found = list(located_references(outputs))
    except HostlerError as error:
        raise about(subject, error) from error
    for at, reference in found:
        if reference.node not in drafts:
            raise _missing(f"{subject}: they refer to", reference.node, drafts)
        check_reference(ANYTHING, at, reference, drafts[reference.node].output, subject)
