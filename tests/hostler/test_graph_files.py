"""Graph files: one model in three languages, and one line with the place for whatever is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hostler.compiler import compile_workflow
from hostler.graph_files import Agent, Command, Node
from hostler.loading import load
from hostres.errors import Code, HostlerError
from store.plans import AgentExecutor, CommandExecutor, GateExecutor
from store.policy import Policy
from tests.hostler.graph_support import GRAPH, changed, command, compiled, node, refusal, write

EXAMPLES = Path(__file__).parents[2] / "examples"


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
    for one in document["nodes"]:
        lines += ["[[nodes]]", *(f"{each}" for name, value in one.items() for each in toml_lines(name, value))]
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


WORDS: dict[str, dict[str, Any]] = {
    "command": {
        "argv": ["false"],
        "env": {"A": "b"},
        "cwd": "work",
        "stdin": "text",
        "outputs": {"out": "out.txt"},
        "claims": {"cpu": 1},
        "effect": "project-mutation",
        "resume": "verified-receipt",
        "max_seconds": 7,
        "retry": {"attempts": 2},
        "heartbeat": {"seconds": 5},
        "budget": {"ask": {"tokens": 5}},
    },
    "agent": {
        "objective": "something else",
        "argv": ["false"],
        "env": {"A": "b"},
        "cwd": "work",
        "claims": {"cpu": 1},
        "effect": "project-mutation",
        "resume": "verified-receipt",
        "max_seconds": 7,
        "max_output_bytes": 7,
        "retry": {"attempts": 2},
        "budget": {"ask": {"tokens": 5}},
    },
}
OF_A_NODE: dict[str, Any] = {
    "label": "Do it",
    "after": ["before"],
    "input": {"n": 1},
    "priority": 3,
    "parent": "before",
    "owner": {"role": "coder", "id": "ada"},
    "budget": {"tokens": 5},
    "authority": {"actions": ["local-derived-write"], "commands": ["true"]},
    "evidence": [{"id": "work", "type": "commit"}],
    "workspace": {"repository": "code", "base": "main"},
}


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        *((kind, word) for kind, model in (("command", Command), ("agent", Agent)) for word in model.model_fields),
        *(
            (kind, word)
            for kind in ("command", "agent")
            for word in Node.model_fields
            if word not in {"key", "executor"}
        ),
    ],
)
def test_each_word_of_a_program_makes_another_plan(tmp_path: Path, kind: str, word: str) -> None:
    """No word is taken that does nothing."""
    program = {"argv": ["true"], **({"objective": "do it"} if kind == "agent" else {})}

    def planned(words: dict[str, Any], **more: Any) -> Any:
        nodes = [{"key": "before", "executor": {"gate": "merge"}}, {"key": "a", "executor": {kind: words}, **more}]
        return compiled(write(tmp_path, {"workflow": {"id": "demo"}, "nodes": nodes})).plan.nodes[-1]

    changed_plans = [planned(program | {word: WORDS[kind][word]})] if word in WORDS[kind] else []
    changed_plans += [planned(program, **{word: OF_A_NODE[word]})] if word in OF_A_NODE else []
    assert changed_plans
    assert planned(program) not in changed_plans


@pytest.mark.parametrize("word", [word for word in Node.model_fields if word not in {"key", "executor"}])
@pytest.mark.parametrize("executor", [{"operation": "files.publish@1"}, {"gate": "merge"}])
def test_each_word_of_another_node_makes_another_plan_or_is_refused(
    tmp_path: Path, executor: dict[str, str], word: str
) -> None:
    """Of a gate nothing runs: it has no priority and no workspace, and brings nothing but an approval."""
    never = {"priority": "and has no priority", "workspace": "and has no workspace", "evidence": "can never be brought"}
    given = {"source": "a", "target": "b"}
    wide = {"actions": ["files.publish"]}
    changes = {**OF_A_NODE, "input": {**given, "target": "c"}, "authority": wide}

    def planned(**more: Any) -> Any:
        last = {"key": "a", "executor": executor, "input": given, **more}
        nodes = [{"key": "before", "executor": {"gate": "merge"}}, last]
        return compiled(write(tmp_path, {"workflow": {"id": "demo"}, "nodes": nodes})).plan.nodes[-1]

    if "gate" in executor and word in never:
        with pytest.raises(HostlerError, match=never[word]):
            planned(**{word: changes[word]})
    else:
        assert planned() != planned(**{word: changes[word]})


def test_work_that_others_take_has_no_worktree(tmp_path: Path) -> None:
    """Its worker is given a private folder; an agent with a program works in a worktree as a command does."""
    workspace = {"repository": "code", "base": "main"}
    graph = node(executor={"agent": {"objective": "do it"}}, workspace=workspace)
    assert "node a: an agent without argv has no worktree" in refusal(write(tmp_path, graph))
