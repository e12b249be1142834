"""A graph as a picture."""

import re
from itertools import combinations
from xml.etree.ElementTree import Element

import pytest

from hostler.pictures.chart import plan_chart, run_chart
from hostler.pictures.chart_drawing import chart_svg
from store.lifecycle import Status
from store.plans import GraphPlan
from tests.hostler.pictures.support import SVG, parsed, words
from tests.hostler.views.support import PLAN, node, planned

EVIL = "</title><script>alert(1)</script> \u202e\x1b]&\"'\ufffe übér \U0001f3ac"


def drawn(plan: GraphPlan = PLAN, *, asks: tuple[str, ...] = (), denied: tuple[str, ...] = ()) -> Element:
    return parsed(chart_svg(plan_chart(plan, asks=asks, denied=denied)))


def boxes(root: Element) -> list[tuple[float, ...]]:
    """The boxes of nodes: each says in its title what it is."""
    return [
        tuple(float(each.attrib[name]) for name in ("x", "y", "width", "height"))
        for each in root.iter(SVG + "rect")
        if each.find(SVG + "title") is not None
    ]


def test_every_node_is_a_box_and_every_dependency_an_arrow() -> None:
    root = drawn()
    found = words(root)
    assert {"podcast@1", "4 nodes · 3 dependencies", "audio", "media.extract-audio@1", "text", "node"} <= {*found}
    assert {"audio → text", "text → upload", "upload → release"} <= {*found}
    assert "audio: node; runs media.extract-audio@1; effect pure; claims cpu=1 ffmpeg=1" in found
    assert len(boxes(root)) == 4
    assert len([path for path in root.iter(SVG + "path") if "marker-end" in path.attrib]) == 3


def test_what_asks_has_pointed_ends_and_what_is_denied_says_so() -> None:
    root = drawn(asks=("upload", "release"), denied=("release",))
    assert {"asks a person", "denied, and will fail", "node"} <= {*words(root)}
    assert len(boxes(root)) == 2


def test_a_run_shows_each_node_by_its_status() -> None:
    statuses = (Status.COMPLETED, Status.RUNNING, Status.PENDING, Status.PENDING)
    nodes = [node(each.key, status) for each, status in zip(PLAN.nodes, statuses, strict=True)]
    found = words(parsed(chart_svg(run_chart(PLAN, nodes, title="podcast@1 · run_x", status="running"))))
    assert {"completed", "running", "pending", "podcast@1 · run_x", "running · 4 nodes · 3 dependencies"} <= {*found}
    assert found.count("pending") == 2  # of a gate, and of another


@pytest.mark.parametrize("count", [1, 30, 500])
def test_boxes_lie_on_the_paper_and_none_over_another(count: int) -> None:
    nodes = [planned("start"), *(planned(f"clip/{number}", after=("start",)) for number in range(count))]
    nodes.append(planned("end", after=tuple(each.key for each in nodes[1:])))
    root = drawn(GraphPlan(workflow="w", version=1, inputs={}, nodes=tuple(nodes)))
    found = boxes(root)
    assert len(found) == count + 2
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for x, y, wide, high in found:
        assert x >= 0
        assert x + wide <= width
        assert y >= 0
        assert y + high <= height
    for (x, y, wide, high), (other_x, other_y, _, _) in combinations(found[:80], 2):
        assert abs(x - other_x) >= wide or abs(y - other_y) >= high
    for arrow in root.iter(SVG + "path"):
        numbers = [float(text) for text in re.findall(r"-?[\d.]+", arrow.attrib["d"])]
        assert all(0 <= number <= max(width, height) for number in numbers if "marker-end" in arrow.attrib)


def test_odd_names_are_text_and_nothing_else() -> None:
    odd = planned("a/" + "b" * 253).model_copy(update={"label": EVIL})
    long = planned("c/" + "d" * 253)
    root = drawn(GraphPlan(workflow="w", version=1, inputs={}, nodes=(odd, long)))
    assert any("<script>alert(1)</script> \\u202e\\x1b]&\"'\ufffd übér \U0001f3ac" in word for word in words(root))
    assert any(re.fullmatch("c/d+…d+", word) and len(word) < 40 for word in words(root))


def test_the_same_plan_gives_the_same_bytes() -> None:
    assert chart_svg(plan_chart(PLAN, asks=(), denied=())) == chart_svg(plan_chart(PLAN, asks=(), denied=()))


def test_a_plan_without_nodes_is_a_picture_too() -> None:
    assert "0 nodes · 0 dependencies" in words(drawn(PLAN.model_copy(update={"nodes": (), "outputs": None})))
