"""Graph files: one model in three languages, and one line with the place for whatever is wrong."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostler.compiler import Compiled, compile_workflow
from hostler.loading import load
from hostres.errors import Code, HostlerError
from store.amounts import Ask, Budget, Demand
from store.plans import AgentExecutor, CommandExecutor, GateExecutor, RunLimits
from store.policy import Backoff, FailureCode, Policy, Retry
from store.terms import Owner, Terms
from store.workspace import GitWorkspace

EXAMPLES = Path(__file__).parents[2] / "examples"

GRAPH: dict[str, Any] = {
    "workflow": {"id": "demo", "version": 2},
    "inputs": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1, "default": 3}},
    "nodes": [
        {
            "key": "write",
            "label": "Write it",
            "input": {"times": {"$input": "times"}},
            "executor": {
                "command": {
                    "argv": ["sh", "-c", "cat > out.txt", {"$input": "times"}],
                    "stdin": {"$input": "text"},
                    "env": {"LANG": "C"},
                    "cwd": "work",
                    "outputs": {"out": "out.txt"},
                    "claims": {"cpu": 1},
                    "effect": "local-read",
                    "resume": "verified-receipt",
                    "max_seconds": 60,
                }
            },
        },
        {
            "key": "look",
            "input": {"letter": {"$ref": {"node": "write", "path": ["outputs", "out", "path"]}}},
            "executor": {"gate": "final-delivery"},
        },
        {
            "key": "read",
            "after": ["look"],
            "executor": {"command": {"argv": ["cat", {"$ref": {"node": "write", "path": ["outputs", "out", "path"]}}]}},
        },
    ],
    "outputs": {"code": {"$ref": {"node": "read", "path": ["exit_code"]}}, "said": {"$input": "text"}},
}


def write(folder: Path, document: Any, name: str = "graph.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def compiled(path: Path, **inputs: Any) -> Compiled:
    return compile_workflow(load(path.name, folder=path.parent), inputs, folder=path.parent)


def refusal(path: Path, code: Code = Code.INVALID_DATA, **inputs: Any) -> str:
    with pytest.raises(HostlerError) as caught:
        compiled(path, **({"text": "a"} | inputs))
    assert caught.value.code is code
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line or "workflow demo" in line or "node " in line
    return line


def changed(**changes: Any) -> dict[str, Any]:
    return {**GRAPH, **changes}


def node(**changes: Any) -> dict[str, Any]:
    return changed(nodes=[{"key": "a", "executor": {"command": {"argv": ["true"]}}, **changes}], outputs=None)


def command(**changes: Any) -> dict[str, Any]:
    return node(executor={"command": {"argv": ["true"], **changes}})


def test_a_graph_file_is_compiled_with_its_inputs_filled_in(tmp_path: Path) -> None:
    made = compiled(write(tmp_path, GRAPH), text="hello", times=2)
    written, look, read = made.plan.nodes
    assert (made.plan.workflow, made.plan.version) == ("demo", 2)
    assert made.plan.inputs == {"text": "hello", "times": 2}
    assert (made.source, made.bundle, made.bundle_sha256) == (str(tmp_path / "graph.json"), None, None)
    assert written.input == {
        "argv": ["sh", "-c", "cat > out.txt", 2],
        "stdin": "hello",
        "env": {"LANG": "C"},
        "value": {"times": 2},
    }
    assert written.executor == CommandExecutor(cwd="work", outputs={"out": "out.txt"})
    assert written.policy == Policy(effect="local-read", resume="verified-receipt", claims={"cpu": 1}, max_seconds=60)
    assert (written.label, look.executor) == ("Write it", GateExecutor(gate="final-delivery"))
    assert look.input == {"letter": {"$ref": {"node": "write", "path": ["outputs", "out", "path"]}}}
    assert look.dependencies == ("write",)
    assert read.dependencies == ("look", "write")
    assert read.policy == Policy(effect="local-derived-write", resume="deterministic")
    assert made.plan.outputs == {"code": {"$ref": {"node": "read", "path": ["exit_code"]}}, "said": "hello"}


def test_an_input_that_is_not_given_takes_its_default(tmp_path: Path) -> None:
    assert compiled(write(tmp_path, GRAPH), text="a").plan.inputs == {"text": "a", "times": 3}


def test_the_same_graph_in_three_languages_has_the_same_hash() -> None:
    hashes = {compiled(EXAMPLES / f"graph.{suffix}").plan_sha256 for suffix in ("json", "toml", "yaml")}
    assert len(hashes) == 1
    assert compiled(EXAMPLES / "graph.toml", order="down").plan_sha256 not in hashes


def test_a_registered_operation_can_be_named(tmp_path: Path) -> None:
    good = node(executor={"operation": "files.publish@1"}, input={"source": "a", "target": "b"})
    plan = compiled(write(tmp_path, good), text="a").plan
    assert plan.nodes[0].input_schema_sha256
    bad = node(executor={"operation": "files.publish@1"}, input={"source": "a"})
    assert "node a: input.target is missing" in refusal(write(tmp_path, bad))
    gone = node(executor={"operation": "files.publsh@1"})
    line = refusal(write(tmp_path, gone))
    assert "nodes[0]: node a: there is no operation files.publsh@1; did you mean files.publish@1?" in line


def test_a_node_says_which_evidence_it_must_bring(tmp_path: Path) -> None:
    due = [{"id": "suite", "type": "test"}, {"id": "look", "type": "human-approval"}]
    (planned,) = compiled(
        write(tmp_path, command() | {"nodes": [command()["nodes"][0] | {"evidence": due}]}), text="a"
    ).plan.nodes
    assert planned.terms is not None
    assert [(each.id, each.type.value) for each in planned.terms.evidence] == [
        ("suite", "test"),
        ("look", "human-approval"),
    ]


@pytest.mark.parametrize(
    ("due", "executor", "why"),
    [
        ([{"id": "a", "type": "test"}, {"id": "a", "type": "commit"}], None, "evidence a is due twice"),
        (
            [{"id": "a", "type": "test"}],
            {"gate": "merge"},
            "evidence a (test) can never be brought: a gate runs nothing",
        ),
        ([{"id": "a", "type": "vibes"}], None, "evidence"),
        ([{"id": "a"}], None, "evidence"),
    ],
)
def test_evidence_that_cannot_be_brought_is_refused(tmp_path: Path, due: Any, executor: Any, why: str) -> None:
    more = {} if executor is None else {"executor": executor}
    assert why in refusal(write(tmp_path, node(evidence=due, **more)))


def test_a_node_may_work_in_a_git_worktree(tmp_path: Path) -> None:
    document = command(effect="project-mutation")
    document["nodes"][0]["workspace"] = {"repository": {"$input": "text"}, "base": "main"}
    (planned,) = compiled(write(tmp_path, document), text="code").plan.nodes
    assert planned.workspace == GitWorkspace(repository="code", base="main", integrate=True)


@pytest.mark.parametrize(
    ("workspace", "executor", "why"),
    [
        ({"repository": "code"}, None, "base"),
        ({"repository": "code", "base": "main", "push": True}, None, "push"),
        ({"repository": "code", "base": "main"}, {"gate": "merge"}, "a gate runs nothing"),
        (
            {"repository": "code", "base": "main"},
            {"command": {"argv": ["true"], "effect": "local-read"}},
            "its effect is local-read",
        ),
    ],
)
def test_a_worktree_that_makes_no_sense_is_refused(tmp_path: Path, workspace: Any, executor: Any, why: str) -> None:
    more = {} if executor is None else {"executor": executor}
    assert why in refusal(write(tmp_path, node(workspace=workspace, **more)))


def test_a_run_may_be_limited_as_a_whole(tmp_path: Path) -> None:
    limited = write(tmp_path, changed(limits={"seconds": 60, "active": 2}))
    assert compiled(limited, text="a").plan.limits == RunLimits(seconds=60.0, active=2)
    assert "limits.active" in refusal(write(tmp_path, changed(limits={"active": 0})))


def test_a_command_may_be_retried_and_a_node_has_a_priority(tmp_path: Path) -> None:
    document = command(retry={"attempts": 3, "delays": [1, 2.5], "codes": ["timeout"], "exhausted": "block"})
    document["nodes"][0]["priority"] = 4
    (planned,) = compiled(write(tmp_path, document), text="a").plan.nodes
    assert planned.priority == 4
    assert planned.policy.retry == Retry(attempts=3, delays=(1.0, 2.5), codes=(FailureCode.TIMEOUT,), exhausted="block")
    growing = command(retry={"attempts": 2, "delays": {"first_s": 2}})
    assert compiled(write(tmp_path, growing), text="a").plan.nodes[0].policy.retry.delays == Backoff(first_s=2)


@pytest.mark.parametrize(
    "retry", [{"attempts": 17}, {"delays": [-1]}, {"delays": [3601]}, {"codes": ["oops"]}, {"x": 1}]
)
def test_a_retry_outside_its_bounds_is_refused_with_its_place(tmp_path: Path, retry: dict[str, Any]) -> None:
    assert "nodes.0.executor.command.retry" in refusal(write(tmp_path, command(retry=retry))).replace("[0]", ".0")


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "it is not an object"),
        ({"nodes": []}, "workflow is missing"),
        (changed(workflow={"id": "Bad Id"}), "line 1: workflow.id is not a name: lower-case words joined by"),
        (changed(workflow={"id": "x", "version": 0}), "line 1: workflow.version is less than 1"),
        (changed(wrokflow=1), "there is no key wrokflow; did you mean workflow?"),
        (changed(nodes={}), "nodes is not a list"),
        (changed(nodes=[], outputs=None), "workflow demo has no nodes"),
        (node(inptu=1), "there is no key nodes[0].inptu; did you mean nodes[0].input?"),
        (node(executor={}), "nodes[0].executor: node a has nothing; give exactly one of operation, command"),
        (
            node(executor={"gate": "deploy", "operation": "a@1"}),
            "nodes[0].executor: node a has operation and gate; give exactly one",
        ),
        (
            node(executor={"compute": "x"}),
            "nodes[0].executor.compute: node a names compute code, but a graph file has no code",
        ),
        (node(executor={"gate": "door"}), "nodes[0]: node a: there is no gate 'door'"),
        (node(executor={"gate": "publicaton"}), "did you mean publication? use one of: activation"),
        (node(executor={"operation": "files.publish"}), "'files.publish' does not name an operation"),
        (node(key="A"), "nodes[0]: node 'A': a key is"),
        (node(after=["b"]), "node a: it comes after node b, which does not exist; name one of its nodes: a"),
        (node(after=["a"]), "node a: it waits for itself"),
        (node(after="b"), "nodes[0].after is not a list"),
        (
            node(input={"a": [{"$reff": {"node": "b"}}]}),
            "key nodes[0].input.a[0].$reff; did you mean nodes[0].input.a[0].$ref?",
        ),
        (node(input={"$inputs": "times"}), "key nodes[0].input.$inputs; did you mean nodes[0].input.$input?"),
        (node(input={"$input": "none"}), "nodes[0]: $: there is no workflow input none"),
        (node(input={"x": {"$ref": {"node": "b"}}}), "node a: it refers to node b, which does not exist"),
        (command(argv=[]), "nodes[0].executor.command.argv is empty"),
        (command(argv=[True]), "node a: argv[0] is true or false"),
        (command(cwd={"$input": "times"}), "node a: cwd is 3, not a path"),
        (command(effect="some"), "nodes[0].executor.command.effect is not 'pure', "),
        (command(effect="trusted-code"), "node a: trusted-code and explicit-code-replay are derived"),
        (command(outputs={"o": "../x"}), "output o is '../x', which is no path inside the workspace"),
        (changed(outputs={"x": {"$input": "none"}}), "outputs: $.x: there is no workflow input none"),
        (changed(outputs={"x": {"$ref": {"node": "none"}}}), "outputs of workflow demo: they refer to node none"),
        (changed(inputs={"x": {"type": "strin"}}), "inputs.x: type: 'strin' is not valid under any of"),
        (changed(inputs={"x": {"type": "integer", "default": "a"}}), "inputs.x: its default: 'a' is not of type"),
        (changed(inputs={"9x": {}}), "it is no name for an input"),
        (changed(inputs={"x": True}), "inputs.x is not an object"),
        (changed(nodes=[GRAPH["nodes"][0]] * 2), "nodes[1]: node write: there are two nodes of that key"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(tmp_path: Path, document: Any, says: str) -> None:
    assert says in refusal(write(tmp_path, document))


@pytest.mark.parametrize(
    ("inside", "place", "meant"),
    [
        ({"owner": {"role": "r", "idd": "x"}}, "owner.idd", "owner.id"),
        ({"workspace": {"repositry": ".", "base": "main"}}, "workspace.repositry", "workspace.repository"),
        ({"budget": {"tokens": 3, "costs": 1}}, "budget.costs", "budget.cost"),
        ({"evidence": [{"id": "x", "typ": "test"}]}, "evidence[0].typ", "evidence[0].type"),
        ({"authority": {"path": ["a"]}}, "authority.path", "authority.paths"),
        (
            {"executor": {"command": {"argv": ["true"], "retry": {"attempt": 2}}}},
            "executor.command.retry.attempt",
            "executor.command.retry.attempts",
        ),
    ],
)
@pytest.mark.parametrize("suffix", ["json", "toml", "yaml"])
def test_a_key_that_nobody_knows_is_named_with_its_line_and_what_was_meant(
    tmp_path: Path, suffix: str, inside: dict[str, Any], place: str, meant: str
) -> None:
    """Also in the terms and the workspace of a node, in each language."""
    node = {"executor": {"gate": "publication"}, **inside}
    nodes = [{"key": "a", "executor": {"gate": "publication"}}, {"key": "b", **node}]
    document = {"workflow": {"id": "w"}, "nodes": nodes}
    path = tmp_path / f"g.{suffix}"
    key = place.rpartition(".")[2]
    match suffix:
        case "json":
            path.write_text(json.dumps(document, indent=1))
        case "yaml":
            path.write_text(yaml.safe_dump(document, sort_keys=False))
        case _:
            path.write_text(toml_of(document))
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if key in text)
    with pytest.raises(HostlerError) as caught:
        compiled(path)
    assert caught.value.code is Code.INVALID_DATA
    assert caught.value.what == f"{path} line {line}: node b: there is no key nodes[1].{place}"
    assert caught.value.todo == f"did you mean nodes[1].{meant}?"


def toml_of(document: dict[str, Any]) -> str:
    """Write a graph as people do, a line for each key of a node."""
    lines = [f'workflow = {{ id = "{document["workflow"]["id"]}" }}']
    for node in document["nodes"]:
        lines += ["[[nodes]]", *(f"{each}" for name, value in node.items() for each in toml_lines(name, value))]
    return "\n".join(lines)


def toml_lines(name: str, value: Any) -> list[str]:
    if isinstance(value, dict):
        return [line for inner, each in value.items() for line in toml_lines(f"{name}.{inner}", each)]
    return [f"{name} = {toml_value(value)}"]


def toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {toml_value(each)}" for name, each in value.items()) + "}"
    return "[" + ", ".join(map(toml_value, value)) + "]" if isinstance(value, list) else json.dumps(value)


def test_claims_that_nothing_could_admit_have_their_own_code(tmp_path: Path) -> None:
    assert "node a: claims.cpu" in refusal(write(tmp_path, command(claims={"cpu": 0})), Code.INVALID_CLAIMS)


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
    with pytest.raises(HostlerError, match=r"input x of workflow demo holds an object with the key \$ref"):
        compiled(write(tmp_path, graph), x={"deep": [{"$ref": {"node": "a", "path": []}}]})


# --- the three languages ------------------------------------------------------------------------------------------


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


def test_an_agent_is_authored_with_or_without_a_program(tmp_path: Path) -> None:
    """Without argv it is work for whoever takes it; every word of it may hold an input."""
    document = {
        "workflow": {"id": "demo"},
        "inputs": {"what": {"type": "string"}},
        "nodes": [
            {
                "key": "plan",
                "executor": {"agent": {"objective": {"$input": "what"}, "argv": ["agent", {"$input": "what"}]}},
            },
            {
                "key": "do",
                "input": {"$ref": {"node": "plan", "path": ["output", "steps"]}},
                "executor": {"agent": {"objective": "do it", "max_output_bytes": 5000, "retry": {"attempts": 2}}},
            },
        ],
    }
    plan = compile_workflow(
        load(str(write(tmp_path, document)), folder=tmp_path), {"what": "think"}, folder=tmp_path
    ).plan
    first, second = plan.nodes
    assert first.executor == AgentExecutor()
    assert first.input == {"objective": "think", "argv": ["agent", "think"], "env": {}, "value": None}
    assert second.executor == AgentExecutor(external=True)
    assert second.dependencies == ("plan",)
    assert (second.policy.max_output_bytes, second.policy.retry.attempts) == (5000, 2)
    wrong = {**document, "nodes": [{"key": "a", "executor": {"agent": {"argv": ["x"]}}}]}
    assert "nodes[0].executor.agent.objective is missing" in refusal(write(tmp_path, wrong))


def test_budgets_parents_owners_and_caps_are_part_of_the_plan(tmp_path: Path) -> None:
    document = changed(
        limits={"budget": {"cost": 0.3, "tokens": 1500, "retries": 2}, "per_owner": 2, "per_parent": 1},
        nodes=[
            {
                "key": "lead",
                "executor": {"gate": "merge"},
                "budget": {"tasks": 1},
                "owner": {"role": "lead", "id": "ada"},
            },
            {
                "key": "work",
                "parent": "lead",
                "executor": {"command": {"argv": ["true"], "budget": {"ask": {"cost": "0.10"}, "minimum": {}}}},
            },
        ],
        outputs=None,
    )
    plan = compiled(write(tmp_path, document), text="a").plan
    assert plan.limits.budget == Budget(cost=Decimal("0.3"), tokens=1500, retries=2)
    assert (plan.limits.per_owner, plan.limits.per_parent) == (2, 1)
    assert plan.nodes[0].terms == Terms(budget=Budget(tasks=1), owner=Owner(role="lead", id="ada"))
    assert plan.nodes[1].terms == Terms(parent="lead")
    assert plan.nodes[1].policy.budget == Demand(ask=Ask(cost=Decimal("0.1")), minimum=Ask())


@pytest.mark.parametrize(
    ("parents", "why"),
    [
        ({"n0": "gone"}, "node n0: its parent gone does not exist"),
        ({"n0": "n0"}, "node n0: it is delegated by itself: n0 from n0"),
        ({"n0": "n1", "n1": "n2", "n2": "n0"}, "it is delegated by itself: n0 from n1 from n2 from n0"),
        ({f"n{index}": f"n{index + 1}" for index in range(9)}, "node n0: more than 8 nodes stand above it"),
        ({f"n{index}": f"n{index + 1}" for index in range(8)}, None),
    ],
)
def test_a_parent_exists_and_leads_within_eight_to_a_node_without_one(
    tmp_path: Path, parents: dict[str, str], why: str | None
) -> None:
    nodes = [
        {"key": key, "executor": {"command": {"argv": ["true"]}}} | ({"parent": parents[key]} if key in parents else {})
        for key in (f"n{index}" for index in range(10))
    ]
    path = write(tmp_path, changed(nodes=nodes, outputs=None))
    if why is None:
        assert compiled(path, text="a").plan
    else:
        assert why in refusal(path)


@pytest.mark.parametrize(
    "budget", [{"cost": -1}, {"money": 1}, {"cost": "0.0000000001"}, {"tokens": 1.5}, {"cost": "1e3"}, {"tasks": "1"}]
)
def test_a_budget_that_is_none_is_refused(tmp_path: Path, budget: dict[str, Any]) -> None:
    refusal(write(tmp_path, changed(limits={"budget": budget})))
    assert "node a" in refusal(write(tmp_path, node(budget=budget)))


def test_a_minimum_is_not_more_than_what_is_asked(tmp_path: Path) -> None:
    line = refusal(write(tmp_path, command(budget={"ask": {"tokens": 1}, "minimum": {"tokens": 2}})))
    assert "its minimum of tokens is more than it asks" in line
