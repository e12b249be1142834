"""Plans: their order, their hashes, and that compiling stays linear."""

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from hostler.authoring import Build, operation, workflow
from hostler.compiler import Compiled, compile_workflow
from hostler.schemas import input_sha256, output_sha256
from hostres.errors import Code, HostlerError
from store.plans import GraphPlan
from store.policy import Effect, Policy
from store.references import references
from store.values import Domain, digest


class Numbers(BaseModel):
    values: list[Any] = []


@operation("demo.sum", policy=Policy(max_seconds=10))
def total(ctx: Any, input: Numbers) -> Numbers:
    return input


Edges = dict[str, list[str]]


def graph(edges: Edges, *, by_after: bool = False) -> Compiled:
    """Compile a graph in which each key waits for the keys of its list."""

    def author(build: Build) -> Any:
        for key, waits in edges.items():
            values = [] if by_after else [{"$ref": {"node": each, "path": ["values"]}} for each in waits]
            build.call(total, key=key, input={"values": values}, after=waits if by_after else [])

    return compile_workflow(workflow("demo")(author), {}, folder=Path("/x"))


def refusal(edges: Edges) -> str:
    with pytest.raises(HostlerError) as caught:
        graph(edges)
    assert caught.value.code is Code.INVALID_DATA
    return caught.value.what


@st.composite
def acyclic(draw: st.DrawFn) -> Edges:
    size = draw(st.integers(1, 25))
    edges: Edges = {f"n{index}": [] for index in range(size)}
    for index in range(1, size):
        edges[f"n{index}"] = [f"n{each}" for each in draw(st.lists(st.integers(0, index - 1), max_size=4, unique=True))]
    keys = draw(st.permutations(list(edges)))
    return {key: edges[key] for key in keys}


@given(edges=acyclic(), by_after=st.booleans())
def test_every_node_comes_after_its_dependencies_however_it_was_authored(edges: Edges, *, by_after: bool) -> None:
    plan = graph(edges, by_after=by_after).plan
    place = {node.key: index for index, node in enumerate(plan.nodes)}
    assert set(place) == set(edges)
    for node in plan.nodes:
        assert node.dependencies == tuple(sorted(edges[node.key]))
        assert all(place[each] < place[node.key] for each in node.dependencies)
        refers = {each.node for each in references(node.input)}
        assert refers == (set() if by_after else set(node.dependencies))


@given(acyclic())
def test_an_order_that_already_holds_is_kept(edges: Edges) -> None:
    kept = [node.key for node in graph(edges).plan.nodes]
    again = [node.key for node in graph({key: edges[key] for key in kept}).plan.nodes]
    assert again == kept


def test_nodes_that_wait_for_each_other_are_refused_by_name() -> None:
    """V2."""
    assert refusal({"a": ["a"]}) == "node a: it waits for itself"
    assert refusal({"z": [], "a": ["c"], "b": ["a"], "c": ["b", "z"]}) == (
        "node a: nodes wait for each other: a → c → b → a"
    )


def test_a_long_chain_of_nodes_is_no_deep_recursion() -> None:
    backwards = {f"n{index}": [f"n{index + 1}"] for index in range(3000)} | {"n3000": []}
    assert [node.key for node in graph(backwards).plan.nodes][:2] == ["n3000", "n2999"]


# --- hashes -------------------------------------------------------------------------------------------------------

SOURCE = """
from pydantic import BaseModel
from hostler.authoring import Build, compute, operation, workflow
from helper import FACTOR
class In(BaseModel):
    x: int
@operation("demo.inc")
def inc(ctx, input: In) -> In:
    return In(x=input.x + FACTOR)
@compute()
def double(input):
    return input * 2
@workflow("demo", version=3)
def plain(build: Build, x: int = 1):
    return build.call(inc, key="a", input={"x": x})
@workflow("demo", version=3)
def trusting(build: Build, x: int = 1):
    return build.call(double, key="b", input=build.call(inc, key="a", input={"x": x})["x"])
"""


def compiled(
    folder: Path, name: str = "plain", *, source: str = SOURCE, helper: str = "FACTOR = 1\n", **inputs: Any
) -> Compiled:
    from hostler.loading import load  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "flow.py").write_text(source, encoding="utf-8")
    (folder / "helper.py").write_text(helper, encoding="utf-8")
    return compile_workflow(load(f"flow.py:{name}", folder=folder), inputs, folder=folder)


def test_the_same_source_gives_the_same_hash_wherever_it_lies(tmp_path: Path) -> None:
    one, two = (compiled(tmp_path / place, "trusting") for place in ("one", "deeper/two"))
    assert one.plan_sha256 == two.plan_sha256
    assert one.bundle == two.bundle
    assert one.source == f"{tmp_path}/one/flow.py:trusting"
    assert one.folder == f"{tmp_path}/one"
    assert one.plan_sha256 == digest(Domain.GRAPH_PLAN, one.plan.model_dump(mode="json"))


def test_the_bundle_belongs_to_the_plan_only_where_there_is_compute_code(tmp_path: Path) -> None:
    plain, edited = (compiled(tmp_path / each, helper=f"FACTOR = {each}\n") for each in "12")
    assert plain.plan.bundle_sha256 is None
    assert plain.plan_sha256 == edited.plan_sha256
    assert plain.bundle_sha256 != edited.bundle_sha256
    assert plain.bundle is not None
    assert plain.bundle_sha256 is not None

    trusting, changed = (compiled(tmp_path / each, "trusting", helper=f"FACTOR = {each}\n") for each in "34")
    assert trusting.plan.bundle_sha256 == trusting.bundle_sha256
    assert trusting.plan_sha256 != changed.plan_sha256
    assert set(trusting.computes) == {"double"}
    assert set(trusting.operations) == {("demo.inc", 1)}


INSIDE = """
    @compute
    def inside(input):
        return input
    return build.call(inside, key="b", input=1)
def made():
    @compute("factory")
    def inside(input):
        return input
    return inside
factory = made()
@workflow("made")
def by_a_factory(build):
    return build.call(factory, key="b", input=1)
"""


def test_trusted_code_that_a_process_of_its_own_would_not_find_is_refused(tmp_path: Path) -> None:
    """It was planned, and then never was where it was."""
    source = SOURCE.rpartition("    return build")[0] + INSIDE
    with pytest.raises(HostlerError, match="compute inside is not at the top level of a file; define it there"):
        compiled(tmp_path, "trusting", source=source)
    assert set(compiled(tmp_path, "by_a_factory", source=source).computes) == {"factory"}


def test_a_stored_plan_reads_back_to_the_same_hash(tmp_path: Path) -> None:
    made = compiled(tmp_path, "trusting", x=5)
    again = GraphPlan.model_validate_json(made.plan.model_dump_json())
    assert again == made.plan
    assert digest(Domain.GRAPH_PLAN, again.model_dump(mode="json")) == made.plan_sha256


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(codec="utf-8"), max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


def shuffled(value: Any, dice: random.Random) -> Any:
    if isinstance(value, dict):
        items = [(name, shuffled(each, dice)) for name, each in value.items()]
        dice.shuffle(items)
        return dict(items)
    return [shuffled(each, dice) for each in value] if isinstance(value, list) else value


def hash_of(value: Any, **changes: Any) -> str:
    words = {"argv": ["true"], "claims": {"cpu": 1, "ffmpeg": 2}, "env": {"A": "1", "B": "2"}} | changes

    def author(build: Build, value: Any) -> Any:
        return build.command(**words, key="a", input=value)

    return compile_workflow(workflow("demo")(author), {"value": value}, folder=Path("/x")).plan_sha256


@given(JSON.filter(lambda value: "$" not in repr(value)), st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_the_order_of_names(value: Any, dice: random.Random) -> None:
    other = {"claims": {"ffmpeg": 2, "cpu": 1}, "env": {"B": "2", "A": "1"}}
    assert hash_of(value) == hash_of(shuffled(value, dice), **other)


@given(JSON.filter(lambda value: "$" not in repr(value)), JSON.filter(lambda value: "$" not in repr(value)))
def test_another_value_gives_another_hash(one: Any, two: Any) -> None:
    same = digest(Domain.INPUT, one) == digest(Domain.INPUT, two)
    assert (hash_of(one) == hash_of(two)) is same


@pytest.mark.parametrize(
    "change",
    [
        {"argv": ["false"]},
        {"claims": {"cpu": 2, "ffmpeg": 2}},
        {"claims": {}},
        {"env": {"A": "1"}},
        {"effect": "local-read"},
        {"resume": "verified-receipt"},
        {"max_seconds": 3599},
        {"outputs": {"o": "o"}},
        {"cwd": "somewhere"},
        {"stdin": ""},
    ],
)
def test_everything_that_decides_what_runs_is_in_the_hash(change: dict[str, Any]) -> None:
    assert hash_of(1) != hash_of(1, **change)


def test_a_better_docstring_is_no_new_schema_but_another_field_is() -> None:
    def model(doc: str, **fields: Any) -> type[BaseModel]:
        return type(
            "Thing", (BaseModel,), {"__doc__": doc, "__annotations__": {"title": str, **fields}, "__module__": __name__}
        )

    plain, explained, wider = model("Old."), model("New and better."), model("Old.", extra=int)
    assert input_sha256(plain) == input_sha256(explained)
    assert input_sha256(plain) != input_sha256(wider)
    assert output_sha256(plain) != output_sha256(wider)


def test_bounds_and_defaults_that_json_cannot_hold_do_not_stop_a_model() -> None:
    class Wide(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        size: int = Field(default=0, le=2**64)
        limit: float = float("inf")
        made: list[int] = Field(default_factory=list)

    assert len(input_sha256(Wide)) == len(output_sha256(Wide)) == 64


# --- work ---------------------------------------------------------------------------------------------------------


def calls_made(work: Callable[[], object]) -> int:
    """Count the calls of functions, Python's and C's, that some work makes."""
    count = 0

    def profile(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def chain(size: int) -> Edges:
    return {f"n{index}": [f"n{index - 1}"] if index else [] for index in range(size)}


def backwards(size: int) -> Edges:
    return dict(reversed(chain(size).items()))


def fan(size: int) -> Edges:
    middle = [f"n{index}" for index in range(size)]
    return {"root": [], **{each: ["root"] for each in middle}, "join": middle}


@pytest.mark.parametrize("shape", [chain, backwards, fan])
def test_the_work_of_compiling_grows_with_the_nodes_and_no_faster(shape: Callable[[int], Edges]) -> None:
    """Calls are counted, not seconds: ten times the nodes, ten times the work."""
    graph(shape(10))
    small, large = (calls_made(lambda size=size: graph(shape(size))) for size in (200, 2000))  # type: ignore[misc]
    assert large <= small * 10.5


def test_four_thousand_nodes_compile() -> None:
    sizes: Sequence[int] = [len(graph(shape(4000)).plan.nodes) for shape in (chain, fan)]
    assert sizes == [4000, 4002]


class Target(BaseModel):
    to: str


@operation("demo.publish", policy=Policy(effect=Effect.LOCAL_DERIVED_WRITE, publishes=("to",)))
def published(ctx: Any, input: Target) -> Target:
    return input


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("x" * 255, ""),
        ("日" * 80 + ".mp4", ""),
        ("x" * 256, "a file name of 256 bytes"),
        ("é" * 130 + ".mp4", "a file name of 264 bytes"),
        ("日" * 120, "a file name of 360 bytes"),
        ("a/" * 2100 + "x", "a path of 4204 bytes"),
        ("a\0b", "no file can be called"),
    ],
)
def test_a_name_that_no_file_can_have_is_refused_before_anything_runs(name: str, why: str) -> None:
    """Field case 32: bytes count, not letters."""

    def author(build: Build) -> Any:
        build.call(published, key="a", input={"to": name})

    refused = ""
    try:
        compile_workflow(workflow("demo")(author), {}, folder=Path("/x"))
    except HostlerError as error:
        refused = f"{error.code}: {error.what}"
    assert refused == "" if not why else refused.startswith(f"invalid-data: node a: {why}")
