"""References: found, followed, filled in."""

import pytest
from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.references import Reference, references, resolve, substitute_inputs

REF: JsonValue = {"$ref": {"node": "audio", "path": ["tracks", 1, "path"]}}
OUTPUT: JsonValue = {"tracks": [{"path": "0.wav"}, {"path": "1.wav", "$ref": "kept"}]}


def test_every_reference_of_a_template_is_found_in_order() -> None:
    template: JsonValue = {"a": [REF, {"b": {"$ref": {"node": "text"}}}], "c": "plain"}
    assert references(template) == (
        Reference(node="audio", path=("tracks", 1, "path")),
        Reference(node="text", path=()),
    )


def test_a_reference_becomes_the_part_it_refers_to_and_what_comes_in_is_not_followed_again() -> None:
    template: JsonValue = {"one": REF, "all": {"$ref": {"node": "audio", "path": ["tracks", 1]}}, "n": [1]}
    assert resolve(template, {"audio": OUTPUT}) == {
        "one": "1.wav",
        "all": {"path": "1.wav", "$ref": "kept"},
        "n": [1],
    }


@pytest.mark.parametrize(
    ("path", "where"),
    [
        (["nothing"], "$.nothing"),
        (["tracks", 2], "$.tracks[2]"),
        (["tracks", -1], "$.tracks[-1]"),
        (["tracks", "0"], '$.tracks["0"]'),
        (["tracks", 0, "path", 0], "$.tracks[0].path[0]"),
        ([0], "$[0]"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused_naming_it(path: list[JsonValue], where: str) -> None:
    with pytest.raises(HostlerError) as caught:
        resolve({"x": [{"$ref": {"node": "audio", "path": path}}]}, {"audio": OUTPUT})
    assert caught.value.code is Code.INVALID_DATA
    assert caught.value.what.startswith("$.x[0]: ")
    assert caught.value.what.endswith(where)


@pytest.mark.parametrize(
    "reference",
    [
        {"$ref": "#/definitions/x"},
        {"$ref": {"path": []}},
        {"$ref": {"node": "a", "path": ["x"], "more": 1}},
        {"$ref": {"node": "a", "path": [True]}},
        {"$ref": {"node": "a", "path": "x"}},
        {"$ref": {"node": "a", "path": []}, "beside": 1},
    ],
)
def test_what_has_ref_but_is_no_reference_is_refused_with_its_path(reference: JsonValue) -> None:
    for action in (references, lambda template: resolve(template, {"a": 1})):
        with pytest.raises(HostlerError) as caught:
            action({"x": reference})
        assert caught.value.code is Code.INVALID_DATA
        assert caught.value.what.startswith("$.x: ")


def test_a_node_without_output_is_named() -> None:
    with pytest.raises(HostlerError, match="node audio has no output"):
        resolve(REF, {})


def test_workflow_inputs_are_filled_in_where_they_are_named() -> None:
    template: JsonValue = {"path": {"$input": "source"}, "rest": [REF, {"$input": "n"}]}
    assert substitute_inputs(template, {"source": "a.mp4", "n": 3}) == {"path": "a.mp4", "rest": [REF, 3]}


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ({"$input": "other"}, "no workflow input other"),
        ({"$input": 1}, "not a workflow input"),
        ({"$input": "n", "x": 1}, "not a workflow input"),
        ({"$input": "trap"}, "holds $ref, which is for plans"),
    ],
)
def test_an_unknown_or_misleading_input_is_refused(template: JsonValue, why: str) -> None:
    with pytest.raises(HostlerError) as caught:
        substitute_inputs([template], {"n": 1, "trap": {"deep": [REF]}})
    assert caught.value.code is Code.INVALID_DATA
    assert caught.value.what.startswith("$[0]: ")
    assert why in caught.value.what
