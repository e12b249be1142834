"""JSON, TOML and YAML: what a language would let through is refused, and all give the same values."""

from pathlib import Path

import pytest
import yaml

from tests.hostler.graph_support import compiled, refusal, write


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", '{"workflow": 1, "workflow": 2}', "$.workflow: a duplicate key"),
        ("a.json", '{"nodes": [{"key": NaN}]}', "$.nodes[0].key: NaN is not a finite number"),
        ("a.json", '{"nodes": 9007199254740992}', "$.nodes: an integer beyond"),
        ("a.json", '{"nodes": "\\ud800"}', "$.nodes: a string with a lone surrogate"),
        ("a.json", "{} x", "not JSON: Extra data at line 1 column 4"),
        ("a.toml", "[workflow]\nid = 1\nid = 2\n", "it is not TOML: Cannot overwrite a value (at line 3"),
        ("a.toml", "[workflow]\nid = 2020-01-01\n", "$.workflow.id: a date is not a JSON value"),
        ("a.toml", "[workflow]\nversion = nan\n", "$.workflow.version: nan is not a finite number"),
        ("a.yaml", "workflow: 1\nnodes: []\nworkflow: 2\n", "the key workflow stands twice, again at line 3"),
        ("a.yaml", "nodes:\n  - {a: 1, a: 2}\n", "the key a stands twice, again at line 2"),
        ("a.yaml", "on: 1\n", "the key 'on' at line 1 is no text; put it in quotes"),
        ("a.yaml", "1: 1\n", "the key '1' at line 1 is no text"),
        ("a.yaml", "x: 2020-01-01\n", "2020-01-01 at line 1 would be read as a date; put it in quotes"),
        ("a.yaml", "x: 1:30\n", "1:30 at line 1 would be read as a number to the base of 60"),
        ("a.yaml", "x: .nan\n", "$.x: nan is not a finite number"),
        ("a.yaml", "x: !!python/object/apply:os.system ['true']\n", "could not determine a constructor"),
        ("a.yaml", "x: [1\n", "it is not YAML: expected ',' or ']', but got"),
        ("a.yaml", "x: &a [*a]\n", "its aliases make it too large"),
        ("a.yaml", "x: 1\n---\ny: 2\n", "it is not YAML: but found another document"),
        ("a.yml", "", "a.yml is empty; write a workflow in it"),
        ("a.toml", " \n", "a.toml is empty"),
        ("a.json", "", "a.json is empty"),
        ("a.toml", "# nothing\n", "workflow is missing"),
        ("a.toml", "[workflow]\n\n[[nodes]]\nkey = 'a'\n", "line 1: workflow.id is missing"),
        ("a.toml", "[workflow]\nid = 'a'\n\n[[nodes]]\nkey = 3\n", "line 5: nodes[0].key is not text"),
        ("a.yaml", "workflow:\n  id: 3\nnodes: []\n", "line 2: workflow.id is not text"),
    ],
)
def test_what_a_language_would_let_through_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    line = refusal(write(tmp_path, text, name))
    assert says in line
    assert str(tmp_path / name) in line


def test_a_few_lines_of_aliases_do_not_fill_the_memory(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "its aliases make it too large" in refusal(write(tmp_path, "\n".join(lines), "bomb.yaml"))


def test_anchors_and_merges_of_yaml_work(tmp_path: Path) -> None:
    text = """
workflow: {id: demo}
nodes:
  - {key: a, executor: {command: &base {argv: ["true"], claims: {cpu: 1}}}}
  - {key: b, executor: {command: {<<: *base, argv: ["false"]}}}
"""
    one, two = compiled(write(tmp_path, text, "graph.yml")).plan.nodes
    assert one.policy == two.policy
    assert two.input == {"argv": ["false"], "env": {}, "stdin": None, "value": None}


def test_text_that_is_not_utf8_or_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b"x = '\xe9'")
    assert "is not UTF-8 at byte 5" in refusal(path)
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(16 * 1024 * 1024 + 1)
    assert "more than 16,777,216" in refusal(tmp_path / "large.json")


def test_yaml_gives_the_same_values_as_safe_load(tmp_path: Path) -> None:
    text = "workflow: {id: demo}\nnodes: [{key: a, input: {yes: [~, 1.5, 0x1f, 1e3, 'on', text, 1_000]}, executor: {command: {argv: ['true']}}}]\n"
    quoted = text.replace("{yes:", "{'yes':")
    made = compiled(write(tmp_path, quoted, "graph.yaml")).plan.nodes[0].input
    assert isinstance(made, dict)
    assert made["value"] == yaml.safe_load(quoted)["nodes"][0]["input"]
