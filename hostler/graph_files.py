"""Workflows without Python: graph files in JSON, TOML or YAML, one model for all three."""

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from hostler.agent_nodes import AGENT_OUTPUT_BYTES, AGENT_SECONDS
from hostler.building import Build
from hostler.command_nodes import COMMAND_SECONDS
from hostler.documents import read_document
from hostler.refusals import about, first_problem, invalid, place
from hostler.schemas import takes_text
from hostler.workflows import Input, Workflow
from hostres.errors import HostlerError
from store.amounts import Demand
from store.fields import MAX_SAFE_INTEGER, Name
from store.plans import MAX_PRIORITY, RunLimits
from store.policy import Effect, Heartbeat, Resume, Retry
from store.references import substitute_inputs
from store.terms import Terms

INPUT_NAME: Final = re.compile(r"[A-Za-z_][\w-]*")
TERMS: Final = set(Terms.model_fields)
EXECUTORS: Final = ("operation", "command", "agent", "compute", "gate")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Heading(_Part):
    """Which workflow it is."""

    id: Name
    version: int = Field(default=1, ge=1, le=MAX_SAFE_INTEGER)


class Command(_Part):
    """A program, as `Build.command` takes it."""

    argv: list[JsonValue] = Field(min_length=1)
    env: dict[str, JsonValue] = Field(default_factory=dict)
    cwd: JsonValue = None
    stdin: JsonValue = None
    outputs: dict[str, JsonValue] = Field(default_factory=dict)
    claims: dict[str, JsonValue] = Field(default_factory=dict)
    effect: Effect = Field(default=Effect.LOCAL_DERIVED_WRITE, strict=False)
    resume: Resume | None = Field(default=None, strict=False)
    max_seconds: float = COMMAND_SECONDS
    retry: Retry = Retry()
    heartbeat: Heartbeat | None = None
    budget: Demand | None = None


class Agent(_Part):
    """An agent, as `Build.agent` takes it."""

    objective: JsonValue
    argv: list[JsonValue] | None = Field(default=None, min_length=1)
    env: dict[str, JsonValue] = Field(default_factory=dict)
    cwd: JsonValue = None
    claims: dict[str, JsonValue] = Field(default_factory=dict)
    effect: Effect = Field(default=Effect.LOCAL_DERIVED_WRITE, strict=False)
    resume: Resume | None = Field(default=None, strict=False)
    max_seconds: float = AGENT_SECONDS
    max_output_bytes: int = AGENT_OUTPUT_BYTES
    retry: Retry = Retry()
    budget: Demand | None = None


class Executor(_Part):
    """What a node runs: exactly one of these."""

    operation: str | None = None
    command: Command | None = None
    agent: Agent | None = None
    compute: str | None = None
    gate: str | None = None


class Node(_Part):
    """One node."""

    key: str
    label: str | None = None
    after: list[str] = Field(default_factory=list)
    input: JsonValue = None
    priority: int = Field(default=0, ge=-MAX_PRIORITY, le=MAX_PRIORITY)
    executor: Executor
    parent: str | None = None
    owner: dict[str, JsonValue] | None = None
    budget: dict[str, JsonValue] | None = None
    authority: dict[str, JsonValue] | None = None
    evidence: list[dict[str, JsonValue]] | None = None
    workspace: dict[str, JsonValue] | None = None

    @property
    def terms(self) -> dict[str, JsonValue] | None:
        """On what terms it works."""
        return self.model_dump(include=TERMS, exclude_none=True) or None


class Graph(_Part):
    """A whole graph file."""

    workflow: Heading
    inputs: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)
    nodes: list[Node]
    limits: RunLimits = RunLimits()
    outputs: JsonValue = None


def load_graph(path: Path) -> Workflow:
    """Load a graph file.

    Args:
        path: Absolute.

    Returns:
        The workflow; its source is the path.

    Raises:
        HostlerError: The file is wrong (invalid-data, one line with the place in the file).

    """
    document = read_document(path)
    graph = _parsed(path, document)
    _refuse_misspelt_references(path, document, graph)
    inputs = {}
    for name, schema in graph.inputs.items():
        try:
            inputs[name] = _input(name, schema)
        except HostlerError as error:
            raise about(f"{_where(path, 'inputs', name)}: {place(('inputs', name))}", error) from error

    def author(build: Build, values: Mapping[str, Any]) -> JsonValue:
        for index, node in enumerate(graph.nodes):
            try:
                _add(build, node, values)
            except HostlerError as error:
                _refuse_unknown(path, document, error)
                raise about(f"{_where(path, 'nodes', index)}: nodes[{index}]", error) from error
        try:
            return substitute_inputs(graph.outputs, values)
        except HostlerError as error:
            raise about(f"{_where(path, 'outputs')}: outputs", error) from error

    return Workflow(
        id=graph.workflow.id,
        version=graph.workflow.version,
        inputs=inputs,
        author=author,
        limits=graph.limits,
        source=str(path),
    )


def _parsed(path: Path, document: JsonValue) -> Graph:
    """Return the graph that a document describes.

    Raises:
        HostlerError: It has another shape (invalid-data with file, line and place).

    """
    try:
        graph = Graph.model_validate(document)
    except ValidationError as error:
        _refuse_unknown(path, document, error)
        where = _where(path, *error.errors(include_url=False)[0]["loc"])
        raise invalid(f"{where}: {first_problem(error)}", "compare it with docs/graph-files.md") from error
    for index, node in enumerate(graph.nodes):
        given = [name for name in EXECUTORS if getattr(node.executor, name) is not None]
        at = ("nodes", index, "executor")
        if len(given) != 1:
            has = " and ".join(given) or "nothing"
            what = f"{_where(path, *at)}: {place(at)}: node {node.key} has {has}"
            raise invalid(what, f"give exactly one of {', '.join(EXECUTORS)}")
        if given == ["compute"]:
            what = f"{place((*at, 'compute'))}: node {node.key} names compute code, but a graph file has no code"
            raise invalid(
                f"{_where(path, *at)}: {what}",
                "use an operation or a command, or write the workflow in Python",
            )
    return graph


def _refuse_unknown(path: Path, document: JsonValue, error: Exception) -> None:
    """Refuse a key that nobody knows, if there is one, in place of what follows from it."""
    from hostler.graph_keys import first_unknown, unknown_key  # noqa: PLC0415 - only where something is wrong

    unknown = first_unknown(document)
    if unknown is not None:
        raise unknown_key(path, unknown) from error


def _refuse_misspelt_references(path: Path, document: JsonValue, graph: Graph) -> None:
    from hostler.graph_keys import misspelt_references, unknown_key  # noqa: PLC0415 - it looks at the models of this module

    misspelt = next(misspelt_references(document, graph.inputs), None)
    if misspelt is not None:
        raise unknown_key(path, misspelt)


def _where(path: Path, *steps: str | int) -> str:
    """Return the file with the line of a place in it, or of what that place is in."""
    from hostler.graph_keys import where  # noqa: PLC0415 - only where something is wrong

    return where(path, steps)


def _add(build: Build, node: Node, values: Mapping[str, Any]) -> None:
    given: Any = substitute_inputs(node.input, values)
    workspace: Any = substitute_inputs(node.workspace, values)
    executor = node.executor
    if executor.operation is not None:
        build.call(
            executor.operation,
            key=node.key,
            input=given,
            after=node.after,
            label=node.label,
            priority=node.priority,
            terms=node.terms,
            workspace=workspace,
        )
    elif executor.gate is not None:
        for word, given_one in (("workspace", workspace is not None), ("priority", node.priority != 0)):
            if given_one:
                raise invalid(f"node {node.key}: a gate runs nothing and has no {word}", "leave it out")
        build.gate(executor.gate, key=node.key, input=given, after=node.after, label=node.label, terms=node.terms)
    elif executor.agent is not None:
        _add_agent(build, node, executor.agent, values, workspace)
    elif executor.command is not None:
        words = executor.command
        fill: Any = partial(substitute_inputs, inputs=values)
        build.command(
            fill(words.argv),
            key=node.key,
            outputs=fill(words.outputs),
            claims=fill(words.claims),
            effect=words.effect,
            resume=words.resume,
            max_seconds=words.max_seconds,
            cwd=fill(words.cwd),
            env=fill(words.env),
            stdin=fill(words.stdin),
            retry=words.retry,
            heartbeat=words.heartbeat,
            budget=words.budget,
            input=given,
            after=node.after,
            label=node.label,
            priority=node.priority,
            terms=node.terms,
            workspace=workspace,
        )


def _add_agent(build: Build, node: Node, agent: Agent, values: Mapping[str, Any], workspace: Any) -> None:
    fill: Any = partial(substitute_inputs, inputs=values)
    build.agent(
        fill(agent.objective),
        key=node.key,
        argv=fill(agent.argv),
        claims=fill(agent.claims),
        effect=agent.effect,
        resume=agent.resume,
        max_seconds=agent.max_seconds,
        max_output_bytes=agent.max_output_bytes,
        cwd=fill(agent.cwd),
        env=fill(agent.env),
        retry=agent.retry,
        budget=agent.budget,
        input=fill(node.input),
        after=node.after,
        label=node.label,
        priority=node.priority,
        terms=node.terms,
        workspace=workspace,
    )


def _input(name: str, schema: Mapping[str, JsonValue]) -> Input:
    if not INPUT_NAME.fullmatch(name):
        raise invalid("it is no name for an input", "use letters, digits, _ and -")
    from hostler.json_schemas import checker  # noqa: PLC0415 (slow, and many graphs take no input)

    check = checker(schema)
    default = schema.get("default")
    if "default" in schema:
        try:
            check(default)
        except HostlerError as error:
            raise about("its default", error) from error
    description = schema.get("description")
    return Input(
        schema=schema,
        required="default" not in schema,
        default=default,
        check=check,
        text=takes_text(schema),
        description=description if isinstance(description, str) else "",
    )
