"""`$ref`, `$input` and `$secret` mean something where the author of a plan wrote them, and nowhere else."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import BaseModel, Json, JsonValue

from hostler.authoring import Build, compute, workflow
from hostler.compiler import compile_workflow
from hostler.graph_files import load_graph
from hostler.workflows import Workflow
from hostres.errors import HostlerError
from store.plans import GraphPlan
from store.references import MARKERS, marker_in
from store.words import secrets_of_plan
from tests.deceptive import DECEPTIVE


@compute
def twice(input):
    return input


class Wrapped(BaseModel):
    inner: Json[Any]


@workflow("wrapped")
def wrapped(build: Build, x: Wrapped):
    build.call(twice, key="use", input=x.inner)


@workflow("deceived")
def deceived(build: Build, x: Any):
    build.gate("merge", key="other")
    build.command(["echo", "a"], key="a", env={"A": x} if isinstance(x, dict) else {}, input=x)


def compiled(written: Workflow, value: JsonValue) -> GraphPlan | None:
    """Return the plan, None where the input is refused."""
    try:
        return compile_workflow(written, {"x": value}, folder=Path(__file__).parent).plan
    except HostlerError:
        return None


def is_word(value: JsonValue) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool) and "\0" not in str(value)


def fields(value: JsonValue) -> Iterator[str]:
    match value:
        case dict():
            for name, each in value.items():
                yield name
                yield from fields(each)
        case list():
            for each in value:
                yield from fields(each)


@given(DECEPTIVE)
@settings(deadline=None, max_examples=60)
def test_no_input_of_a_run_becomes_a_reference_or_a_secret(tmp_path_factory: Any, value: JsonValue) -> None:
    """Neither in Python, where it is an object like any other, nor in a graph file."""
    graph = {
        "workflow": {"id": "deceived"},
        "inputs": {"x": {}},
        "nodes": [
            {"key": "other", "executor": {"gate": "merge"}},
            {
                "key": "a",
                "input": {"$input": "x"},
                "executor": {"command": {"argv": ["echo", {"$input": "x"}], "env": {"A": {"$input": "x"}}}},
            },
        ],
    }
    path = tmp_path_factory.getbasetemp() / "deceived.json"
    path.write_text(json.dumps(graph), encoding="utf-8")
    for each in (deceived, load_graph(path)):
        plan = compiled(each, value)
        if plan is None:
            assert not set(fields(value)).isdisjoint(MARKERS) or not is_word(value)
        else:
            assert marker_in(value) is None
            assert all(not node.dependencies for node in plan.nodes)
            assert all(not secrets_of_plan(node.executor, node.input) for node in plan.nodes)


def test_a_text_that_a_type_reads_as_json_is_an_input_too() -> None:
    """What a workflow receives counts, not only what was given."""
    with pytest.raises(HostlerError, match="has a meaning in plans"):
        compile_workflow(wrapped, {"x": {"inner": '{"$ref": {"node": "use"}}'}}, folder=Path("/"))
