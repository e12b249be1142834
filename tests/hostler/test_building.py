"""What a `Build` takes as a node, what it refuses and how it says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostler.authoring import Build, NodeHandle, compute, operation, workflow
from hostler.compiler import compile_workflow
from hostres.errors import Code, HostlerError
from store.plans import CommandExecutor, GateExecutor, OperationExecutor
from store.policy import Effect, Policy, Resume
from tests.hostler.authored import Order, Source, build_of, extract, refusal, use


@compute()
def double(input: Any) -> Any:
    return input * 2


def test_a_handle_is_a_reference_and_a_reference_makes_the_dependency() -> None:
    def author(build: Build) -> Any:
        audio = build.call(extract, key="audio", input={"path": "a"})
        used = build.call(
            use, key="use", input={"path": audio["path"], "seconds": 1, "parts": [{"name": audio["parts"][0]["name"]}]}
        )
        return {"all": [audio, used["path"]], "none": None}

    plan = build_of(author).plan
    audio, used = plan.nodes
    assert isinstance(audio.executor, OperationExecutor)
    assert (audio.executor.operation, audio.executor.version) == ("demo.extract", 2)
    assert audio.policy == extract.policy
    assert used.dependencies == ("audio",)
    assert used.input == {
        "path": {"$ref": {"node": "audio", "path": ["path"]}},
        "seconds": 1,
        "parts": [{"name": {"$ref": {"node": "audio", "path": ["parts", 0, "name"]}}}],
    }
    assert plan.outputs == {
        "all": [{"$ref": {"node": "audio", "path": []}}, {"$ref": {"node": "use", "path": ["path"]}}],
        "none": None,
    }


def test_after_makes_a_dependency_without_a_reference() -> None:
    def author(build: Build) -> Any:
        one = build.call(extract, key="one", input={"path": "a"})
        build.call(extract, key="two", input={"path": "a"})
        build.call(extract, key="three", input={"path": one["path"]}, after=["two", one], label="Third")

    third = build_of(author).plan.nodes[2]
    assert (third.dependencies, third.label) == (("one", "two"), "Third")


def test_models_paths_enums_and_tuples_are_written_as_json() -> None:
    def author(build: Build) -> Any:
        build.call(extract, key="model", input=Source(path="a"))
        build.call(extract, key="path", input={"path": Path("b")})
        build.command(["echo", Path("c"), 3, Order.UP], key="words", input=(1, Order.DOWN))

    model, path, words = build_of(author).plan.nodes
    assert model.input == {"path": "a", "width": 640}
    assert path.input == {"path": "b"}
    assert words.input == {"argv": ["echo", "c", 3, "up"], "env": {}, "stdin": None, "value": [1, "down"]}


def test_a_command_node_carries_what_was_authored_for_it() -> None:
    def author(build: Build) -> Any:
        made = build.command(
            ["sort", "-o", "out.txt"],
            key="sort",
            outputs={"sorted": "out.txt"},
            claims={"local-io": 2, "cpu": 1},
            effect="local-read",
            resume="verified-receipt",
            max_seconds=5,
            cwd="data",
            env={"LC_ALL": "C"},
            stdin="b\na\n",
            input={"why": "test"},
        )
        build.command(["cat", made["outputs"]["sorted"]["path"]], key="cat", env={"N": made["exit_code"]})

    sort, cat = build_of(author).plan.nodes
    assert sort.executor == CommandExecutor(cwd="data", outputs={"sorted": "out.txt"})
    assert sort.input == {
        "argv": ["sort", "-o", "out.txt"],
        "env": {"LC_ALL": "C"},
        "stdin": "b\na\n",
        "value": {"why": "test"},
    }
    assert sort.policy == Policy(
        effect="local-read", resume="verified-receipt", claims={"cpu": 1, "local-io": 2}, max_seconds=5
    )
    assert cat.dependencies == ("sort",)
    assert (cat.policy.effect, cat.policy.resume) == (Effect.LOCAL_DERIVED_WRITE, Resume.DETERMINISTIC)
    assert cat.policy.max_seconds == 3600


@pytest.mark.parametrize(
    ("effect", "resume"),
    [
        ("paid-cloud", Resume.AMBIGUOUS_AFTER_DISPATCH),
        ("live-control", Resume.NON_RESUMABLE_LIVE),
        ("project-mutation", Resume.DETERMINISTIC),
    ],
)
def test_what_costs_or_acts_outside_is_not_made_again_unless_its_author_says_so(effect: str, resume: Resume) -> None:
    """An approval lets it happen once; whoever leaves `resume` out has not said that a second time does no harm."""
    uploads = operation("demo.uploads", policy=Policy(effect=effect))(extract.function)
    again = operation("demo.again", policy=Policy(effect=effect, resume="deterministic"))(extract.function)

    def author(build: Build) -> Any:
        build.command(["true"], key="command", effect=effect)
        build.agent("upload it", key="agent", argv=["agent"], effect=effect)
        build.call(uploads, key="operation", input={"path": "x"})
        build.command(["true"], key="again/command", effect=effect, resume="deterministic")
        build.call(again, key="again/operation", input={"path": "x"})

    for node in build_of(author).plan.nodes:
        assert node.policy.resume is (Resume.DETERMINISTIC if node.key.startswith("again") else resume), node.key


def test_a_gate_waits_for_a_person_and_needs_a_known_name() -> None:
    def author(build: Build) -> Any:
        gate = build.gate("deploy", key="gate")
        build.call(extract, key="a", input={"path": "x"}, after=[gate])

    gate, after = build_of(author).plan.nodes
    assert gate.executor == GateExecutor(gate="deploy")
    assert gate.input is None
    assert after.dependencies == ("gate",)
    assert "node gate: there is no gate 'door'; use one of: activation" in refusal(
        lambda build: build.gate("door", key="gate")
    )


def test_a_gate_shows_the_person_outputs_of_other_nodes() -> None:
    def author(build: Build) -> Any:
        made = build.call(extract, key="a", input={"path": "x"})
        build.gate("deploy", key="gate", input={"audio": made["path"]})

    _, gate = build_of(author).plan.nodes
    assert gate.input == {"audio": {"$ref": {"node": "a", "path": ["path"]}}}
    assert gate.dependencies == ("a",)


@pytest.mark.parametrize("key", ["", "A", "a//b", "/a", "a b", "a\n", "ä", "a" * 256, None])
def test_a_bad_key_is_refused(key: Any) -> None:
    assert "a key is 1 to 255 characters" in refusal(lambda build: build.gate("deploy", key=key))


def test_a_key_that_is_taken_is_refused_by_name() -> None:
    def author(build: Build) -> Any:
        build.gate("deploy", key="a/b")
        build.gate("deploy", key="a/b")

    assert "node a/b: there are two nodes of that key" in refusal(author)


def test_more_nodes_than_allowed_are_refused() -> None:
    def author(build: Build) -> Any:
        for index in range(4):
            build.gate("deploy", key=f"n{index}")

    made = workflow("demo")(author)
    assert len(compile_workflow(made, {}, folder=Path(), max_nodes=4).plan.nodes) == 4
    with pytest.raises(HostlerError, match=r"node n3: the workflow has more than 3 nodes; .*\[limits\]"):
        compile_workflow(made, {}, folder=Path(), max_nodes=3)


def test_a_workflow_without_nodes_is_refused() -> None:
    assert "workflow demo has no nodes" in refusal(lambda build: {"x": 1})


def test_a_handle_cannot_be_put_into_a_text_looped_over_or_taken_elsewhere() -> None:
    def texted(build: Build) -> Any:
        audio = build.call(extract, key="audio", input={"path": "a"})
        build.call(extract, key="b", input={"path": f"{audio['path']}.bak"})

    def looped(build: Build) -> Any:
        audio = build.call(extract, key="audio", input={"path": "a"})
        return list(audio["parts"])

    def sliced(build: Build) -> Any:
        return build.call(extract, key="audio", input={"path": "a"})["parts"][-1]

    kept: list[NodeHandle] = []

    def keeping(build: Build) -> Any:
        kept.append(build.call(extract, key="audio", input={"path": "a"}))

    build_of(keeping)
    assert "node audio: a reference to its output was put into a text" in refusal(texted)
    assert "node audio: its output is not there yet to be looped over" in refusal(looped)
    assert "-1 is no field name and no index from 0" in refusal(sliced)
    assert "the handle of node audio belongs to another workflow" in refusal(
        lambda build: build.call(extract, key="x", input={"path": kept[0]})
    )


@pytest.mark.parametrize(
    ("used", "told"),
    [
        (lambda handle: 1 if handle else 2, "to be true or false, as `if` wants it"),
        (lambda handle: not handle["path"], "to be true or false"),
        (lambda handle: handle or "x", "to be true or false"),
        (lambda handle: handle == 5, "to be compared, as by `==`"),
        (lambda handle: 5 == handle, "to be compared, as by `==`"),  # noqa: SIM300 - the other way round
        (lambda handle: handle != 5, "to be compared, as by `==`"),
        (lambda handle: handle["a"] == handle["b"], "to be compared, as by `==`"),
        (lambda handle: handle in (5, 6), "to be compared, as by `==`"),
        (lambda handle: 5 in handle, "to be looped over"),
        (lambda handle: {5: "five"}.get(handle, "other"), "to be looked up in a dictionary"),
        (lambda handle: handle in {5, 6}, "to be looked up in a dictionary"),
        (lambda handle: handle < 5, "to be compared, as by `<`"),
        (lambda handle: max(5, handle), "to be compared, as by `<`"),
        (lambda handle: f"{handle}", "put into a text"),
        (lambda handle: [*handle], "to be looped over"),
        (lambda handle: handle[-1], "-1 is no field name"),
    ],
)
def test_what_would_take_a_handle_for_a_value_is_refused_with_its_line(
    used: Callable[[NodeHandle], Any], told: str
) -> None:
    """It would be true, and different from all else; the plan would be another one than the author wrote."""

    def author(build: Build) -> Any:
        used(build.call(extract, key="audio", input={"path": "a"}))

    line = refusal(author)
    assert f"{Path(__file__).name} line " in line
    assert ": node audio: " in line
    assert told in line


def test_a_match_of_a_handle_is_refused() -> None:
    def author(build: Build) -> Any:
        match build.call(extract, key="audio", input={"path": "a"}):
            case 5:
                pass

    assert "to be compared" in refusal(author)


def test_handles_may_be_kept_in_lists_and_named_by_their_keys() -> None:
    def author(build: Build) -> Any:
        made = [build.call(extract, key=key, input={"path": key}) for key in ("a", "b")]
        by_key = {each.key: each for each in made}
        build.call(use, key="use", input={"path": "x", "seconds": 1}, after=[*by_key.values()])
        return by_key

    assert build_of(author).plan.nodes[2].dependencies == ("a", "b")


def test_only_operations_and_compute_functions_can_be_called() -> None:
    assert "node a: len is neither an operation nor a compute function" in refusal(
        lambda build: build.call(len, key="a")
    )
    assert "node a: there is no operation demo.none@1" in refusal(lambda build: build.call("demo.none@1", key="a"))
    assert "does not name an operation; write it as kind@version" in refusal(lambda build: build.call("x", key="a"))


def test_two_definitions_of_one_operation_are_refused() -> None:
    @operation("demo.use")
    def other(ctx: Any, input: Source) -> Source:
        return input

    def author(build: Build) -> Any:
        build.call(use, key="a", input={"path": "x", "seconds": 1})
        build.call(other, key="b", input={"path": "x"})

    assert "node b: there are two different definitions of operation demo.use@1" in refusal(author)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"argv": []}, "argv must be a list of at least the program"),
        ({"argv": "echo hi"}, "argv must be a list of at least the program"),
        ({"argv": ["echo", None]}, "argv[1] is nothing, not a text, a number or a reference"),
        ({"argv": ["echo", True]}, "argv[1] is true or false, not a text"),
        ({"argv": ["echo", ["x"]]}, "argv[1] is a list, not a text"),
        ({"argv": ["echo", "a\0b"]}, "argv[1] holds a NUL character"),
        ({"env": {"A=B": "c"}}, "'A=B' cannot be set in its environment"),
        ({"env": {"HOSTLER_NODE": "x"}}, "'HOSTLER_NODE' cannot be set in its environment"),
        ({"env": {"A": {}}}, "env.A is an object, not a text"),
        ({"stdin": 3}, "stdin is 3, not a text or a reference"),
        ({"outputs": {"o": "/etc/passwd"}}, "output o is '/etc/passwd', which is no path inside the workspace"),
        ({"outputs": {"o": "a/../../b"}}, "output o is 'a/../../b', which is no path inside the workspace"),
        ({"outputs": {"o": ""}}, "output o is '', not a path"),
        ({"outputs": {"": "a"}}, "'' is no name of an output"),
        ({"cwd": 3}, "cwd is 3, not a path"),
        ({"effect": "none"}, "effect is not 'pure'"),
        ({"resume": "never"}, "resume is not 'deterministic'"),
        ({"max_seconds": 0}, "max_seconds is not more than 0"),
        ({"after": ["b"]}, "it comes after node b, which does not exist"),
        ({"input": {"a": object()}}, "input.a is a object, which JSON cannot hold"),
        ({"argv": ["cat", Path("b\udcff")]}, "argv[1] 'b?' is not UTF-8; rename the file, or"),
        ({"input": {"a": ["b\udcff"]}}, "input.a[0] 'b?' is not UTF-8"),
        ({"input": {"a": {"b\udcff": 1}}}, "input.a: the key 'b?' is not UTF-8"),
        ({"env": {"A": "b\udcff"}}, "env.A 'b?' is not UTF-8"),
        ({"env": {"b\udcff": "a"}}, "the variable 'b?' is not UTF-8"),
        ({"cwd": Path("b\udcff")}, "cwd 'b?' is not UTF-8"),
        ({"outputs": {"o": "b\udcff"}}, "output o 'b?' is not UTF-8"),
        ({"outputs": {"b\udcff": "a"}}, "the output 'b?' is not UTF-8"),
        ({"label": "b\udcff"}, "its label 'b?' is not UTF-8"),
        ({"input": {1: 2}}, "input has the key 1, which is no string"),
        ({"input": float("nan")}, "nan is not a finite number"),
        ({"input": 2**53}, "an integer beyond"),
        ({"label": "x" * 256}, "its label is no text of at most 255 characters"),
    ],
)
def test_a_command_node_that_cannot_run_is_refused_by_its_key(words: dict[str, Any], says: str) -> None:
    line = refusal(lambda build: build.command(**{"argv": ["true"], **words}, key="cmd"))
    assert "node cmd: " in line
    assert says in line


@pytest.mark.parametrize("claims", [{"cpu": 0}, {"cpu": -1}, {"cpu": 1.5}, {"CPU": 1}, {"cpu": "1"}])
def test_claims_that_nothing_could_admit_are_refused(claims: Any) -> None:
    line = refusal(lambda build: build.command(["true"], key="cmd", claims=claims), code=Code.INVALID_CLAIMS)
    assert "node cmd: claims" in line


def test_compute_code_needs_a_file_to_be_stored_from() -> None:
    assert "node a: compute code needs a workflow that stands at the top level of a file" in refusal(
        lambda build: build.call(double, key="a", input=1)
    )
