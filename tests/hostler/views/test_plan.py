"""A plan that has not run."""

from typing import Any

from hostler.views.plan import largest_claims, plan_json, plan_mermaid, plan_text, summed_claims, will_ask
from store.plans import GateExecutor, GraphPlan, OperationExecutor, PlannedNode
from store.policy import Effect, Heartbeat, Policy
from tests.hostler.views.support import PLAN, PLAN_SHA, planned


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
    assert plan_json(plan, PLAN_SHA)["largest_claims"] == largest_claims(plan)
    text = plan_text(plan, PLAN_SHA, width=120)
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
    lines = plan_text(plan, PLAN_SHA, width=70).splitlines()
    assert lines[lines.index("write") :] == [
        "write",
        """  argv   sh -c 'echo '"'"'a b'"'"' > x' <write.outputs.letter.path>""",
        '  env    {"N":"1"}',
        "look",
        '  input  {"letter":"<write.outputs.letter.path>"}',
        "publish",
        '  input  {"source":"<write.outputs.letter.path>","target":"out/x\\u001…',
        "  writes out/x\\x1b[2J",
    ]


def test_the_text_says_how_often_a_node_shows_that_it_lives() -> None:
    """Who approves a plan sees when its nodes count as stalled."""
    plain, graced = Heartbeat(seconds=30), Heartbeat(seconds=1.5, grace_seconds=60)
    nodes = (planned("a", heartbeat=plain), planned("b", heartbeat=graced), planned("c"))
    lines = plan_text(PLAN.model_copy(update={"nodes": nodes}), PLAN_SHA, width=100).splitlines()
    assert [line.strip() for line in lines if "beats" in line] == [
        "beats  every 30 s",
        "beats  every 1.5 s, the first within 60 s",
    ]


def test_paid_and_live_effects_and_gates_ask_and_nothing_else_does() -> None:
    asked = {effect for effect in Effect if will_ask(planned("node", effect=effect))}
    assert asked == {Effect.PAID_CLOUD, Effect.LIVE_CONTROL}
    assert [node.key for node in PLAN.nodes if will_ask(node)] == ["upload", "release"]


def test_the_json_tells_nodes_policies_claims_approvals_and_the_digest() -> None:
    shape = plan_json(PLAN, PLAN_SHA)
    assert shape["plan_sha256"] == PLAN_SHA
    assert shape["claims"] == {"cpu": 2, "ffmpeg": 1, "whisper": 1}
    assert shape["approvals"] == ["upload", "release"]
    assert shape["nodes"][1]["dependencies"] == ["audio"]
    assert shape["nodes"][0]["policy"]["claims"] == {"cpu": 1, "ffmpeg": 1}


def test_the_text_says_the_same() -> None:
    text = plan_text(PLAN, PLAN_SHA, width=120)
    assert f"plan {PLAN_SHA}" in text
    assert "claims in all: cpu=2 ffmpeg=1 whisper=1" in text
    assert "asks for approval: upload, release" in text
    assert "media.extract-audio@1" in text


def test_a_label_cannot_break_out_of_the_diagram() -> None:
    evil = planned("evil").model_copy(update={"label": '"]; <script>&#'})
    plan = GraphPlan(workflow="w", version=1, inputs={}, nodes=(evil,))
    diagram = plan_mermaid(plan)
    assert '["#34;]; #60;script#62;#38;#35;<br/><small>command</small>"]' in diagram


def test_the_diagram_has_every_node_and_arrow() -> None:
    diagram = plan_mermaid(PLAN)
    assert diagram.count("-->") == 3
    assert "n0 --> n1" in diagram
    assert "n2{{" in diagram
    assert "n0[" in diagram
