"""Inputs of a graph file: checked by their JSON Schema, which reads nothing else and makes no reference."""

from pathlib import Path
from typing import Any

import pytest

from hostres.errors import HostlerError
from tests.hostler.graph_support import GRAPH, changed, compiled, node, refusal, write


def test_an_input_that_is_not_given_takes_its_default(tmp_path: Path) -> None:
    assert compiled(write(tmp_path, GRAPH), text="a").plan.inputs == {"text": "a", "times": 3}


@pytest.mark.parametrize(
    ("schema", "good", "bad", "says"),
    [
        ({"type": "string"}, "a", 1, "1 is not of type 'string'"),
        ({"type": ["string", "null"]}, None, 1, "1 is not of type"),
        ({"enum": ["a", 2]}, 2, 3, "3 is not one of"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, 5, 6, "6 is greater than the maximum of 5"),
        ({"type": "string", "pattern": "^a+$"}, "aa", "b", "'b' does not match"),
        ({"type": "array", "items": {"type": "integer"}}, [1, 2], [1, "x"], "[1]: 'x' is not of type 'integer'"),
        (
            {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
            {"x": 1},
            {},
            "'x' is a required property",
        ),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, 1, "a", "'a' is not of type 'integer'"),
        ({"description": "anything"}, {"a": [1]}, None, None),
    ],
)
def test_inputs_are_checked_by_their_json_schema(
    tmp_path: Path, schema: dict[str, Any], good: Any, bad: Any, says: str | None
) -> None:
    path = write(tmp_path, changed(inputs={"x": schema}, nodes=node()["nodes"], outputs=None))
    assert compiled(path, x=good).plan.inputs == {"x": good}
    if says is not None:
        with pytest.raises(HostlerError) as caught:
            compiled(path, x=bad)
        assert "input x of workflow demo: " in caught.value.what
        assert says in caught.value.what


@pytest.mark.filterwarnings("ignore:Automatically retrieving remote references:DeprecationWarning")
def test_a_schema_never_makes_the_program_read_anything_else(tmp_path: Path) -> None:
    elsewhere = write(tmp_path, {"type": "string"}, "schema.json").as_uri()
    graph = changed(inputs={"text": {"$ref": elsewhere}}, nodes=node()["nodes"], outputs=None)
    assert f"its schema refers to {elsewhere}, which is not in the file" in refusal(write(tmp_path, graph))


def test_an_input_can_never_act_as_a_reference(tmp_path: Path) -> None:
    graph = changed(
        inputs={"x": {}},
        nodes=[*node()["nodes"], {**node(input={"$input": "x"})["nodes"][0], "key": "b"}],
        outputs=None,
    )
    with pytest.raises(HostlerError, match=r"input x of workflow demo: it holds an object with the key \$ref"):
        compiled(write(tmp_path, graph), x={"deep": [{"$ref": {"node": "a", "path": []}}]})
