"""Envelopes of a plan: subsets of the parent's in every respect, owned by one sibling alone, and never exceeded."""

from typing import Any

import pytest

from hostres.errors import Code, HostlerError
from store.envelopes import beyond_keys, envelope_of, may_run, owns, problems
from store.plans import AgentExecutor, CommandExecutor, GateExecutor, GraphPlan, OperationExecutor, PlannedNode
from store.policy import Effect, Policy
from store.records import graph_plan_sha256
from store.terms import Envelope, Provider, Terms
from tests.store.support import Setting, record_of

WEB = {"web": Provider(mode="read", capabilities=("search", "fetch"))}
WIDE = Envelope(
    actions=("project-mutation", "local-derived-write", "command"),
    paths=("src", "/data/out"),
    commands=("make", "lint"),
    providers=WEB,
)


def node(
    key: str, envelope: Envelope | None = None, *, parent: str | None = None, effect: Effect = Effect.PURE, **more: Any
) -> PlannedNode:
    terms = Terms(parent=parent, authority=envelope) if envelope is not None or parent is not None else None
    executor = more.pop("executor", OperationExecutor(operation="test.work", version=1))
    return PlannedNode(
        key=key, executor=executor, input=more.pop("input", {}), policy=Policy(effect=effect), terms=terms
    )


def found(*nodes: PlannedNode) -> list[str]:
    return list(problems(nodes, "/run"))


def test_a_node_without_an_envelope_has_that_of_its_nearest_ancestor() -> None:
    nodes = {
        each.key: each
        for each in (
            node("free"),
            node("top", WIDE),
            node("mid", parent="top"),
            node("low", parent="mid"),
            node("round", parent="trip"),
            node("trip", parent="round"),
            node("lost", parent="nobody"),
        )
    }
    has = {key: envelope_of(key, nodes) for key in nodes}
    assert has == {
        "free": None, "top": WIDE, "mid": WIDE, "low": WIDE, "round": None, "trip": None, "lost": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("child", "says"),
    [
        (Envelope(), None),
        (WIDE, None),
        (Envelope(paths=("src/deep", "/data/out/x")), None),
        (Envelope(paths=("/run/src/deep",)), None),
        (Envelope(actions=("paid-cloud",)), "the action paid-cloud is not in its parent's authority"),
        (Envelope(commands=("rm",)), "the command rm is not in its parent's authority"),
        (Envelope(paths=("src2",)), "the path src2 is not in its parent's authority"),
        (Envelope(paths=("src/../other",)), "the path src/../other is not in its parent's authority"),
        (Envelope(paths=("SRC",)), "the path SRC is not in its parent's authority"),
        (Envelope(paths=("/",)), "the path / is not in its parent's authority"),
        (Envelope(providers={"web": Provider(mode="read", capabilities=("search",))}), None),
        (Envelope(providers={"web": Provider(mode="write")}), "the provider web in mode write is not in its parent's"),
        (Envelope(providers={"mail": Provider(mode="read")}), "the provider mail in mode read is not in its parent's"),
        (
            Envelope(providers={"web": Provider(mode="read", capabilities=("post", "search"))}),
            "post of provider web is not in its parent's authority",
        ),
    ],
)
def test_a_child_is_within_its_parent_in_every_respect(child: Envelope, says: str | None) -> None:
    for between in ([], [node("mid", parent="top")]):
        wrong = found(node("top", WIDE), *between, node("child", child, parent="mid" if between else "top"))
        assert len(wrong) == (says is not None)
        assert says is None or wrong[0].startswith(f"node child: {says}")


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("out", "out", True),
        ("out", "out/deep", True),
        ("out/deep", "out", True),
        ("out", "OUT/deep", True),
        ("straße", "STRASSE", True),
        ("out/", "/run/out", True),
        ("a/../out", "out", True),
        ("out", "out2", False),
        ("out", "out-2/out", False),
        ("a/out", "b/out", False),
    ],
)
def test_siblings_never_own_the_same_also_not_in_another_case(one: str, other: str, overlap: bool) -> None:
    pair = (Envelope(paths=(one,)), Envelope(paths=(other,)))
    assert bool(found(node("a", pair[0]), node("b", pair[1]))) is overlap
    assert found(node("a", Envelope(paths=(one, f"{one}/x")))) == [], "what one node owns twice is its own"
    above = node("top", Envelope(paths=("/",)))
    wrong = found(above, node("a", pair[0], parent="top"), node("b", pair[1], parent="top"))
    assert bool(wrong) is overlap
    assert not overlap or " overlaps what its sibling " in wrong[0]


@pytest.mark.parametrize(
    ("doing", "says"),
    [
        ({"effect": Effect.LOCAL_READ}, None),
        ({"effect": Effect.PROJECT_MUTATION}, None),
        ({"executor": GateExecutor(gate="merge")}, None),
        ({"effect": Effect.PAID_CLOUD}, "names neither of the actions paid-cloud and test.work"),
        (
            {"executor": CommandExecutor(), "input": {"argv": ["rm", "-rf"]}, "effect": Effect.LOCAL_DERIVED_WRITE},
            "its authority does not name the command rm",
        ),
        (
            {"executor": CommandExecutor(), "input": {"argv": ["make"]}, "effect": Effect.LOCAL_DERIVED_WRITE},
            None,
        ),
        (
            {"executor": AgentExecutor(), "input": {"argv": ["sh", "-c"]}, "effect": Effect.LOCAL_DERIVED_WRITE},
            "its authority does not name the command sh",
        ),
        ({"executor": AgentExecutor(), "input": {"argv": ["make"]}, "effect": Effect.LOCAL_DERIVED_WRITE}, None),
        ({"executor": AgentExecutor(external=True), "input": {"argv": None}}, None),
        ({"executor": CommandExecutor(), "input": {"argv": [7]}}, "its authority does not name the command 7"),
        ({"executor": CommandExecutor(), "input": {"argv": [{"$ref": {"node": "b"}}]}}, None),
    ],
)
def test_what_a_node_does_is_named_in_its_envelope_or_its_ancestors(doing: dict[str, Any], says: str | None) -> None:
    for nodes in ([node("a", WIDE, **doing)], [node("top", WIDE), node("a", parent="top", **doing)]):
        wrong = found(*nodes)
        assert len(wrong) == (says is not None)
        assert says is None or says in wrong[0]


def test_programs_are_named_as_they_are_written_and_paths_are_whole_folders() -> None:
    assert [may_run(WIDE, each) for each in ("make", "/usr/bin/make", "make2")] == [True, False, False]
    assert may_run(Envelope(commands=("/usr/bin/make",)), "/usr/bin/make")
    own = [
        ("src", True),
        ("src/a", True),
        ("srca", False),
        ("src/../x", False),
        ("/data/out/b", True),
        ("/data", False),
    ]
    assert [(path, owns(WIDE, path, "/run")) for path, _ in own] == own
    assert beyond_keys(WIDE, ["file:/run/src/a", "project:x", "file:/etc/passwd"], "/run") == "/etc/passwd"
    assert beyond_keys(WIDE, ["file:/run/src/a"], "/run") is None


def test_a_plan_that_goes_beyond_is_not_stored(setting: Setting) -> None:
    nodes = (node("a", Envelope(paths=("out",))), node("b", Envelope(paths=("Out/x",))))
    plan = GraphPlan(workflow="test", version=1, inputs={}, nodes=nodes)
    with pytest.raises(HostlerError) as caught:
        setting.store.create(record_of(plan, plan_sha256=graph_plan_sha256(plan)), plan, bundle=None)
    assert caught.value.code is Code.INVALID_DATA
    assert "node b: /tmp/out/x overlaps what its sibling a owns" in caught.value.what
