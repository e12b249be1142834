"""A plan that has not run."""

from hostler.views.plan import plan_json, plan_mermaid, plan_text, summed_claims, will_ask
from store.contracts import Effect, GraphPlan
from tests.hostler.views.support import PLAN, PLAN_SHA, planned


def test_claims_are_summed_over_all_nodes() -> None:
    assert summed_claims(PLAN) == {"cpu": 2, "ffmpeg": 1, "whisper": 1}


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
    text = plan_text(PLAN, PLAN_SHA)
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
