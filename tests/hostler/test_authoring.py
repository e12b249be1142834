"""Decorators and the Build: what they take, what they refuse and how they say so."""

from __future__ import annotations

import enum
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from actors.operations import Compute, Operation
from hostler.authoring import COMPUTE_POLICY, Build, NodeHandle, compute, operation, workflow
from hostler.compiler import Compiled, compile_workflow
from hostres.errors import Code, HostlerError
from store.plans import CommandExecutor, GateExecutor, OperationExecutor
from store.policy import Effect, Policy, PreparationKind, Resume

if TYPE_CHECKING:
    from actors.context import Context


class Source(BaseModel):
    path: str
    width: int = 640


class Part(BaseModel):
    name: str
    at: float = 0.0


class Audio(BaseModel):
    path: str
    seconds: float
    parts: list[Part] = []
    note: str | None = None


@operation("demo.extract", version=2, policy=Policy(effect="local-read", claims={"ffmpeg": 1}))
def extract(ctx: Context, input: Source) -> Audio:
    return Audio(path=input.path + ".wav", seconds=2.0)


@operation("demo.use")
def use(ctx: Any, input: Audio) -> Source:
    return Source(path=input.path)


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")


@operation("demo.free")
def free(ctx: Any, input: Free) -> Free:
    return input


@compute()
def double(input: Any) -> Any:
    return input * 2


def build_of(author: Callable[..., Any], **inputs: Any) -> Compiled:
    return compile_workflow(workflow("demo")(author), inputs, folder=Path("/somewhere"))


def refusal(author: Callable[..., Any], *, code: Code = Code.INVALID_DATA, **inputs: Any) -> str:
    with pytest.raises(HostlerError) as caught:
        build_of(author, **inputs)
    assert caught.value.code is code
    line = str(caught.value)
    assert "\n" not in line
    assert not line.endswith(".")
    return line


def decorating(decorate: Callable[..., Any], function: Callable[..., Any]) -> str:
    with pytest.raises(HostlerError) as caught:
        decorate(function)
    assert caught.value.code is Code.INVALID_DATA
    return str(caught.value)


# --- decorators ---------------------------------------------------------------------------------------------------


def test_an_operation_reads_its_types_from_postponed_annotations_and_stays_callable() -> None:
    """`ctx` is annotated with a name that exists for type checkers alone, and nothing minds."""
    assert isinstance(extract, Operation)
    assert (extract.kind, extract.version) == ("demo.extract", 2)
    assert (extract.input_type, extract.output_type) == (Source, Audio)
    assert extract(None, Source(path="a")) == Audio(path="a.wav", seconds=2.0)  # type: ignore[arg-type]


def test_an_operation_may_use_models_of_the_function_it_is_defined_in() -> None:
    class Local(BaseModel):
        x: int

    @operation("demo.local")
    def local(ctx: Any, input: Local) -> Local:
        return input

    assert local.input_type is Local


def test_an_operation_without_the_right_annotations_is_refused_by_name() -> None:
    def nothing(ctx, input):
        return input

    def half(ctx: Any, input: Source):
        return input

    def plain(ctx: Any, input: dict[str, int]) -> Audio:
        raise AssertionError

    def unknown(ctx: Any, input: Missing) -> Audio:  # type: ignore[name-defined]  # noqa: F821
        raise AssertionError

    def single(input: Source) -> Audio:
        raise AssertionError

    async def later(ctx: Any, input: Source) -> Audio:
        raise AssertionError

    make = operation("demo.bad")
    assert "operation demo.bad (nothing): parameter input has no annotation" in decorating(make, nothing)
    assert "(half): the return value has no annotation" in decorating(make, half)
    assert "(plain): the annotation of parameter input is dict[str, int], not a pydantic model" in decorating(
        make, plain
    )
    assert "(unknown): the annotation of parameter input cannot be read: NameError" in decorating(make, unknown)
    assert "(single): it takes 1 parameters instead of two" in decorating(make, single)
    assert "(later): async functions" in decorating(make, later)


@pytest.mark.parametrize("kind", ["", "Media.probe", "media..probe", "media probe", "media.probe\n", 3])
def test_a_kind_that_no_plan_could_name_is_refused(kind: Any) -> None:
    with pytest.raises(HostlerError, match="kind must be lower-case words"):
        operation(kind)


@pytest.mark.parametrize("version", [0, -1, True, "1", 2**53])
def test_a_version_is_a_whole_number_from_one(version: Any) -> None:
    with pytest.raises(HostlerError, match="is not a whole number from 1"):
        operation("demo.x", version=version)
    with pytest.raises(HostlerError, match="is not a whole number from 1"):
        workflow("demo", version=version)


def test_the_derived_words_of_the_policy_cannot_be_authored() -> None:
    for policy in (Policy(effect="trusted-code"), Policy(resume="explicit-code-replay")):
        with pytest.raises(HostlerError, match="derived, for compute functions only"):
            operation("demo.x", policy=policy)
    assert "derived" in refusal(lambda build: build.command(["true"], key="a", effect="trusted-code"))


def test_what_an_operation_publishes_is_a_field_of_its_input() -> None:
    def fits(ctx: Any, input: Source) -> Source:
        return input

    assert operation("demo.x", policy=Policy(publishes=("path",)))(fits).policy.publishes == ("path",)
    assert "it publishes target, but in its input it has no field target, only path, width" in decorating(
        operation("demo.x", policy=Policy(publishes=("target",))), fits
    )


def test_compute_takes_its_name_from_the_function_and_its_policy_from_nobody() -> None:
    @compute
    def add_one(input: int) -> int:
        return input + 1

    @compute("sum.up")
    def total(input: Source) -> Audio:
        return Audio(path=input.path, seconds=0)

    assert isinstance(add_one, Compute)
    assert (add_one.name, add_one.input_type, add_one(2)) == ("add_one", None, 3)
    assert (total.name, total.input_type, total.output_type) == ("sum.up", Source, Audio)
    assert total.policy is COMPUTE_POLICY
    assert (COMPUTE_POLICY.effect, COMPUTE_POLICY.resume) == (Effect.TRUSTED_CODE, Resume.EXPLICIT_CODE_REPLAY)
    assert (dict(COMPUTE_POLICY.claims), COMPUTE_POLICY.max_seconds) == ({"cpu": 1}, 300)
    assert COMPUTE_POLICY.max_input_bytes == COMPUTE_POLICY.max_output_bytes == 2 * 1024 * 1024


def test_a_compute_function_that_cannot_be_called_with_one_value_is_refused() -> None:
    assert "takes 2 parameters instead of one" in decorating(compute("two"), lambda ctx, value: value)

    def Shout(input: Any) -> Any:  # noqa: N802
        return input

    assert "compute Shout: its name must be lower-case" in decorating(compute(), Shout)


# --- inputs of workflows ------------------------------------------------------------------------------------------


class Order(enum.StrEnum):
    UP = "up"
    DOWN = "down"


def test_workflow_inputs_come_from_the_signature_with_types_and_defaults() -> None:
    seen: dict[str, Any] = {}

    def author(
        build: Build, source: str, target: Path, times: int = 2, *, order: Order = Order.UP, tags: tuple[str, ...] = ()
    ) -> Any:
        seen.update(source=source, target=target, times=times, order=order, tags=tags)
        return build.call(extract, key="a", input={"path": source})

    plan = build_of(author, source=Path("talk.mp4"), target="out", tags=["x"]).plan
    assert seen == {
        "source": "talk.mp4",
        "target": Path("out"),
        "times": 2,
        "order": Order.UP,
        "tags": ("x",),
    }
    assert plan.inputs == {"source": "talk.mp4", "target": "out", "times": 2, "order": "up", "tags": ["x"]}
    found = workflow("demo")(author)
    assert {name: each.text for name, each in found.inputs.items()} == {
        "source": True, "target": True, "times": False, "order": True, "tags": False,
    }  # fmt: skip


def test_inputs_of_the_wrong_kind_or_name_are_refused() -> None:
    def author(build: Build, source: str, times: int = 2) -> Any:
        return build.call(extract, key="a", input={"path": source})

    assert "input times of workflow demo: it is not a whole number" in refusal(author, source="a", times="x")
    assert "has no input sauce; it takes: source, times" in refusal(author, sauce="a", source="b")
    assert "needs the input source" in refusal(author)
    assert "is a object, which JSON cannot hold" in refusal(author, source=object())
    assert "holds an object with the key $ref" in refusal(
        lambda build, x=None: None, x={"a": [{"$ref": {"node": "a", "path": []}}]}
    )


def test_a_workflow_function_that_cannot_be_called_by_name_is_refused() -> None:
    make = workflow("demo")
    assert "parameter *rest cannot be an input" in decorating(make, lambda build, *rest: None)
    assert "parameter **rest cannot be an input" in decorating(make, lambda build, **rest: None)
    assert "it has no parameter for the build" in decorating(make, lambda: None)

    def odd(build: Build, call: Callable[[int], int]) -> None: ...

    assert "parameter call is of a type that cannot be an input" in decorating(make, odd)


def test_a_workflow_stays_callable_inside_another() -> None:
    @workflow("inner")
    def inner(build: Build, key: str) -> NodeHandle:
        return build.call(extract, key=key, input={"path": "a"})["path"]

    def outer(build: Build) -> Any:
        return {"one": inner(build, "one"), "two": inner(build, key="two")}

    assert [node.key for node in build_of(outer).plan.nodes] == ["one", "two"]


def test_an_exception_in_a_workflow_function_is_one_line_with_its_place() -> None:
    def author(build: Build) -> Any:
        return dict[str, int]()["missing"]  # the line that is named

    line = refusal(author)
    number = Path(__file__).read_text(encoding="utf-8").split("# the line that is named\n")[0].count("\n") + 1
    assert f"{__file__} line {number}: KeyError: 'missing'" in line


# --- nodes --------------------------------------------------------------------------------------------------------


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


# --- what can be known before anything runs -----------------------------------------------------------------------


def call_use(input: Any) -> Callable[..., Any]:
    def author(build: Build) -> Any:
        audio = build.call(extract, key="audio", input={"path": "a"})
        build.command(["true"], key="cmd", outputs={"log": "log.txt"})
        build.call(free, key="free")
        return build.call(use, key="use", input=input(audio) if callable(input) else input)

    return author


@pytest.mark.parametrize(
    ("input", "says"),
    [
        ({"path": "a"}, "input.seconds is missing"),
        ({"path": "a", "seconds": 1, "sound": 2}, "input.sound is no field of it"),
        (
            {"path": "a", "secnds": 1},
            "input.secnds is no field of it; did you mean input.seconds? the input is a Audio",
        ),
        ({"path": "a", "seconds": "long"}, "input.seconds is not a number"),
        ({"path": "a", "seconds": 1, "parts": [{"name": "x", "when": 1}]}, "input.parts[0].when is no field of it"),
        (None, "input.path is missing"),
        ([1], "input is not an object"),
        (lambda audio: {"path": audio["path"]}, "input.seconds is missing"),
        (lambda audio: {"path": audio["path"], "seconds": 1, "sound": 2}, "input.sound is no field of it"),
        (lambda audio: {"path": audio["path"], "seconds": "long"}, "input.seconds is not a number"),
        (
            lambda audio: {"path": audio["file"], "seconds": 1},
            "audio.file leads nowhere in the output of node audio: it has no field file, only path, seconds, parts, note",
        ),
        (
            lambda audio: {"path": audio["parts"]["name"], "seconds": 1},
            "audio.parts.name leads nowhere in the output of node audio: it is array and has no field name",
        ),
        (
            lambda audio: {"path": audio["path"][0], "seconds": 1},
            "it is string and has no element 0",
        ),
        (
            lambda audio: {"path": audio, "seconds": 1},
            "input.path takes a text, number or truth value, but audio is an object",
        ),
        (
            lambda audio: {"path": "a", "seconds": 1, "parts": audio["path"]},
            "input.parts takes a list, but audio.path is a text, number or truth value",
        ),
        (
            {"path": {"$ref": {"node": "cmd", "path": ["outputs", "lag", "path"]}}, "seconds": 1},
            "cmd.outputs.lag.path leads nowhere in the output of node cmd: it has no field lag, only log",
        ),
        (
            {"path": {"$ref": {"node": "nope", "path": []}}, "seconds": 1},
            "it refers to node nope, which does not exist",
        ),
        ({"path": {"$ref": {"node": "audio", "path": []}, "x": 1}, "seconds": 1}, "not a reference"),
        ({"path": {"$ref": "audio"}, "seconds": 1}, "not a reference"),
    ],
)
def test_an_input_that_cannot_fit_is_refused_before_anything_runs(input: Any, says: str) -> None:
    """V2: also a reference that leads nowhere."""
    line = refusal(call_use(input))
    assert "node use: " in line
    assert says in line


@pytest.mark.parametrize(
    "input",
    [
        lambda audio: audio,
        lambda audio: {"path": audio["path"], "seconds": audio["parts"][3]["at"], "parts": audio["parts"]},
        lambda audio: {"path": "a", "seconds": {"$ref": {"node": "cmd", "path": ["exit_code"]}}},
        lambda audio: {"path": {"$ref": {"node": "cmd", "path": ["outputs", "log", "path"]}}, "seconds": 1},
        lambda audio: {"path": "a", "seconds": {"$ref": {"node": "free", "path": ["any", 3, "thing"]}}},
        lambda audio: {"path": "a", "seconds": 1, "note": audio["note"]},
    ],
)
def test_an_input_that_may_fit_is_let_through(input: Any) -> None:
    assert build_of(call_use(input)).plan.nodes[-1].key == "use"


def test_aliases_extra_fields_and_validators_of_a_model_are_respected() -> None:
    class Named(BaseModel):
        model_config = ConfigDict(populate_by_name=True)
        file: str = Field(alias="file-name")

    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        x: int

    class Rewriting(BaseModel):
        x: int

        @model_validator(mode="before")
        @classmethod
        def unpack(cls, given: Any) -> Any:
            return {"x": given["inner"]["x"]}

    class Picky(BaseModel):
        x: int
        y: int = 0

        @field_validator("x")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("odd numbers are not for me")
            return value

        @model_validator(mode="after")
        def ordered(self) -> Picky:
            if self.y <= self.x:
                raise ValueError("y must be larger")
            return self

    @operation("demo.named")
    def named(ctx: Any, input: Named) -> Picky:
        raise AssertionError

    @operation("demo.open")
    def opened(ctx: Any, input: Open) -> Picky:
        raise AssertionError

    @operation("demo.rewriting")
    def rewriting(ctx: Any, input: Rewriting) -> Picky:
        raise AssertionError

    @operation("demo.picky")
    def picky(ctx: Any, input: Picky) -> Picky:
        raise AssertionError

    def fits(build: Build) -> Any:
        one = build.call(picky, key="one", input={"x": 2, "y": 3})
        build.call(named, key="two", input={"file-name": "a"})
        build.call(named, key="three", input={"file": "a"})
        build.call(opened, key="four", input={"x": one["x"], "z": 1})
        build.call(rewriting, key="five", input={"inner": {"x": 1}})
        build.call(rewriting, key="six", input={"inner": one})
        build.call(picky, key="seven", input={"x": 4, "y": one["y"]})

    assert len(build_of(fits).plan.nodes) == 7
    assert "input.x: odd numbers are not for me" in refusal(
        lambda build: build.call(picky, key="a", input={"x": 1, "y": 3})
    )
    assert "y must be larger" in refusal(lambda build: build.call(picky, key="a", input={"x": 4, "y": 3}))
    assert "node a: input: KeyError: 'inner'" in refusal(lambda build: build.call(rewriting, key="a", input={"x": 1}))


def test_outputs_may_refer_only_to_what_there_is() -> None:
    def dangling(build: Build) -> Any:
        build.call(extract, key="audio", input={"path": "a"})
        return {"x": {"$ref": {"node": "video", "path": []}}}

    def wrong(build: Build) -> Any:
        return {"x": build.call(extract, key="audio", input={"path": "a"})["wave"]}

    assert "outputs of workflow demo: they refer to node video, which does not exist" in refusal(dangling)
    assert "outputs of workflow demo: audio.wave leads nowhere" in refusal(wrong)


def test_compute_code_needs_a_file_to_be_stored_from() -> None:
    assert "node a: compute code needs a workflow that stands at the top level of a file" in refusal(
        lambda build: build.call(double, key="a", input=1)
    )


class TestPorts:
    """What an operation may bring besides its function."""

    def test_ports_with_the_wrong_parameters_are_refused_by_name(self) -> None:
        for port, wanted in (("prepare", 2), ("plan", 3), ("reconcile", 3), ("probe", 2)):
            ports: dict[str, Any] = {port: lambda ctx: None}
            with pytest.raises(HostlerError, match=f"{port} .* takes 1 parameters instead of {wanted}"):
                operation("a.b", policy=Policy(resume=Resume.VERIFIED_RECEIPT), **ports)

    def test_a_reconciler_that_would_never_run_is_refused(self) -> None:
        with pytest.raises(HostlerError, match="reconcile would never run"):
            operation("a.b", reconcile=lambda ctx, given, previous: None)

    def test_a_probe_that_would_never_be_asked_is_refused(self) -> None:
        with pytest.raises(HostlerError, match="its probe would never be asked"):
            operation("a.b", probe=lambda ctx, given: True)

    def test_preparation_without_a_planner_is_refused(self) -> None:
        with pytest.raises(HostlerError, match="but it has none"):
            operation("a.b", policy=Policy(preparation=(PreparationKind.CAMERA,)))

    def test_a_priority_out_of_range_is_refused_with_the_node(self) -> None:
        @workflow("w")
        def flow(build):
            build.command(["true"], key="a", priority=11)

        with pytest.raises(HostlerError, match="node a: priority 11"):
            compile_workflow(flow, {}, folder=Path("/films"))
