"""A plan that has not run."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.views.asking import Rulings, asking, rulings
from hostler.views.plan import largest_claims, plan_json, plan_mermaid, plan_text, summed_claims
from store.plans import GateExecutor, GraphPlan, OperationExecutor, PlannedNode
from store.policy import Effect, Heartbeat, Policy
from store.rules import DEFAULT_RULES, Rule, Verdict
from store.terms import Envelope, Evidence, EvidenceType, Owner, Terms
from store.workspace import GitWorkspace
from tests.hostler.views.support import PLAN, PLAN_SHA, planned


def ruled(plan: GraphPlan, *own: Rule, principal: str = "human:ada") -> Rulings:
    return rulings(plan, rules=(*own, *DEFAULT_RULES), principal=principal, folder="/films")


def test_claims_are_summed_over_all_nodes() -> None:
    assert summed_claims(PLAN) == {"cpu": 2, "ffmpeg": 1, "whisper": 1}


def test_the_largest_claim_of_one_node_is_told_besides_the_sum() -> None:
    plan = GraphPlan(
        workflow="w",
        version=1,
        inputs={},
        nodes=(planned("a", claims={"cpu": 3, "ffmpeg": 1}), planned("b", claims={"cpu": 2, "whisper": 1})),
    )
    assert largest_claims(plan) == {"cpu": 3, "ffmpeg": 1, "whisper": 1}
    assert plan_json(plan, PLAN_SHA, ruled(plan))["largest_claims"] == largest_claims(plan)
    text = plan_text(plan, PLAN_SHA, ruled(plan), width=120)
    assert "claims in all: cpu=5 ffmpeg=1 whisper=1\nclaims of one node at most: cpu=3 ffmpeg=1 whisper=1\n" in text


def test_the_text_shows_what_each_node_is_given_cut_to_the_width() -> None:
    letter: Any = {"$ref": {"node": "write", "path": ["outputs", "letter", "path"]}}
    write = planned("write").model_copy(
        update={
            "input": {"argv": ["sh", "-c", "echo 'a b' > x", letter], "env": {"N": "1"}, "stdin": None, "value": None}
        }
    )
    look = planned("look", GateExecutor(gate="deploy")).model_copy(update={"input": {"letter": letter}})
    publish = PlannedNode(
        key="publish",
        executor=OperationExecutor(operation="files.publish", version=1),
        input={"source": letter, "target": "out/x\x1b[2J"},
        policy=Policy(publishes=("target",)),
    )
    idle = planned("idle", GateExecutor(gate="merge")).model_copy(update={"input": None})
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=(write, look, publish, idle))
    lines = plan_text(plan, PLAN_SHA, ruled(plan), width=70).splitlines()
    assert lines[lines.index("write") :] == [
        "write",
        """  argv   sh -c 'echo '"'"'a b'"'"' > x' <write.outputs.letter.path>""",
        '  env    {"N":"1"}',
        "look",
        '  input  {"letter":"<write.outputs.letter.path>"}',
        "  rule   gate gate:deploy: asks by rule gate",
        "publish",
        '  input  {"source":"<write.outputs.letter.path>","target":"out/x\\u001…',
        "  writes out/x\\x1b[2J",
        "idle",
        "  rule   gate gate:merge: asks by rule gate",
    ]


def test_the_text_says_how_often_a_node_shows_that_it_lives() -> None:
    """Who approves a plan sees when its nodes count as stalled."""
    plain, graced = Heartbeat(seconds=30), Heartbeat(seconds=1.5, grace_seconds=60)
    nodes = (planned("a", heartbeat=plain), planned("b", heartbeat=graced), planned("c"))
    plan = PLAN.model_copy(update={"nodes": nodes})
    lines = plan_text(plan, PLAN_SHA, ruled(plan), width=100).splitlines()
    assert [line.strip() for line in lines if "beats" in line] == [
        "beats  every 30 s",
        "beats  every 1.5 s, the first within 60 s",
    ]


def test_paid_and_live_effects_and_gates_ask_and_nothing_else_does() -> None:
    nodes = tuple(planned(effect.value, effect=effect) for effect in Effect)
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=nodes)
    assert asking(ruled(plan)) == [Effect.PAID_CLOUD, Effect.LIVE_CONTROL]
    assert asking(ruled(PLAN)) == ["upload", "release"]


FILMS = Rule(id="films", verdict=Verdict.ASK, action="effect", resource="file:/films/out/*")


@pytest.mark.parametrize(
    ("target", "asks", "may"), [("out/a", True, False), ("b", False, False), ({"$ref": {"node": "a"}}, False, True)]
)
def test_a_rule_about_published_files_is_told_as_far_as_the_plan_knows_them(target: Any, asks: bool, may: bool) -> None:
    executor = OperationExecutor(operation="files.publish", version=1)
    node = planned("n", executor, publishes=("target",)).model_copy(update={"input": {"target": target}})
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=(node,))
    text = plan_text(plan, PLAN_SHA, ruled(plan, FILMS), width=200)
    assert ("asks for approval: n\n" in text) is asks
    assert ("may ask for approval: n\n" in text) is may
    assert plan_json(plan, PLAN_SHA, ruled(plan, FILMS))["approvals"] == (["n"] if asks else [])


def test_what_a_rule_denies_is_told_beforehand_with_the_rule() -> None:
    no_paid = Rule(id="no-paid", verdict=Verdict.DENY, principal_kind="agent", effect=Effect.PAID_CLOUD)
    for_agent = ruled(PLAN, no_paid, principal="agent:x")
    assert plan_json(PLAN, PLAN_SHA, for_agent)["denied"] == ["upload"]
    assert plan_json(PLAN, PLAN_SHA, ruled(PLAN, no_paid))["denied"] == []
    text = plan_text(PLAN, PLAN_SHA, for_agent, width=120)
    assert "denied, and will fail: upload\n" in text
    assert "  rule   effect paid-cloud: denied by rule no-paid" in text


def test_the_json_tells_nodes_policies_claims_approvals_and_the_digest() -> None:
    shape = plan_json(PLAN, PLAN_SHA, ruled(PLAN))
    assert shape["plan_sha256"] == PLAN_SHA
    assert shape["claims"] == {"cpu": 2, "ffmpeg": 1, "whisper": 1}
    assert shape["approvals"] == ["upload", "release"]
    assert shape["nodes"][1]["dependencies"] == ["audio"]
    assert shape["nodes"][0]["policy"]["claims"] == {"cpu": 1, "ffmpeg": 1}


def test_the_text_says_the_same() -> None:
    text = plan_text(PLAN, PLAN_SHA, ruled(PLAN), width=120)
    assert f"plan {PLAN_SHA}" in text
    assert "claims in all: cpu=2 ffmpeg=1 whisper=1" in text
    assert "asks for approval: upload, release" in text
    assert "media.extract-audio@1" in text


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ('"]; <script>&#', "#34;#93;#59; #60;script#62;#38;#35;"),
        ("`x` %%{init: {}}%%", "#96;x#96; #37;#37;#123;init#58; #123;#125;#125;#37;#37;"),
        ("1. cut", "1#46; cut"),
        ("- cut-off_all", "#45; cut-off#95;all"),
        ("Übér, a/b@1 \U0001f3ac\n\u202e", "Übér, a/b@1 #127916;#92;x0a#92;u202e"),
    ],
)
def test_a_label_is_text_in_the_diagram_and_nothing_else(label: str, shown: str) -> None:
    """No quote, directive, comment or Markdown of a label is one to mermaid."""
    odd = planned("odd").model_copy(update={"label": label})
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=(odd,))
    assert plan_mermaid(plan, ruled(plan)) == f'flowchart TD\n  n0["{shown}<br/><small>command</small>"]'


@given(st.text(min_size=1, max_size=40), st.booleans())
def test_whatever_a_label_is_the_diagram_keeps_to_its_grammar(label: str, gate: bool) -> None:
    executor = GateExecutor(gate="deploy") if gate else None
    odd = planned("odd", executor).model_copy(update={"label": label})
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=(planned("a"), odd))
    text = r'"(?:[^\W_]|[ /@,-]|#\d+;)*<br/><small>(?:[^\W_]|[ /@,-]|#\d+;)+</small>"'
    node = re.compile(rf"  n\d+(?:\[{text}\]|\{{\{{{text}\}}\}})")
    head, *lines = plan_mermaid(plan, ruled(plan)).splitlines()
    assert head == "flowchart TD"
    assert len(lines) == 2
    assert all(node.fullmatch(line) for line in lines), lines


def test_the_diagram_has_every_node_and_arrow() -> None:
    diagram = plan_mermaid(PLAN, ruled(PLAN))
    assert diagram.count("-->") == 3
    assert "n0 --> n1" in diagram
    assert "n2{{" in diagram
    assert "n0[" in diagram


def test_the_text_says_on_what_terms_a_node_works() -> None:
    """Whoever approves the plan sees for whom, where, within what, and what it must bring."""
    terms = Terms(
        owner=Owner(role="lead", id="ada"),
        authority=Envelope(actions=("project-mutation",), paths=("src",)),
        evidence=(Evidence(id="suite", type=EvidenceType.TEST),),
    )
    workspace = GitWorkspace(repository="code", base="main")
    node = planned("a").model_copy(update={"terms": terms, "workspace": workspace})
    plan = PLAN.model_copy(update={"nodes": (node,)})
    lines = [line.strip() for line in plan_text(plan, PLAN_SHA, ruled(plan), width=100).splitlines()]
    for line in (
        "owner  lead ada",
        "within actions project-mutation; paths src",
        "brings suite (test)",
        "works  in a worktree of code, from main, which is moved forward to what it commits",
    ):
        assert line in lines
