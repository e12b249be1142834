"""The graph as a tree: every node once, after what it hangs below."""

from hypothesis import given
from hypothesis import strategies as st

from hostler.views.tree import Tree, clipped
from store.plans import GraphPlan
from tests.hostler.views.support import planned


def tree(**after: str) -> Tree:
    nodes = tuple(planned(key, after=tuple(sorted(before.split()))) for key, before in after.items())
    return Tree.of(GraphPlan(workflow="tree", version=1, inputs={}, nodes=nodes))


def drawn(one: Tree, *shown: str) -> list[str]:
    return [f"{branch}{key}" for key, branch in one.branches(shown or list(one.above))]


def test_a_chain_is_a_column_and_what_goes_side_by_side_branches() -> None:
    podcast = tree(probe="", video="probe", audio="probe", text="audio", both="text video", srt="text", mp4="both")
    assert drawn(podcast) == ["probe", "├ video", "└ audio", "  text", "  ├ both", "  │ mp4", "  └ srt"]
    assert drawn(tree(a="", b="", c="b")) == ["├ a", "└ b", "  c"]


def test_a_node_hangs_below_the_one_it_waits_for_that_is_furthest_from_the_start() -> None:
    assert drawn(tree(a="", b="", c="b", d="a c")) == ["├ a", "└ b", "  c", "  d"]


def test_what_is_left_out_does_not_break_the_tree() -> None:
    podcast = tree(probe="", video="probe", audio="probe", text="audio", both="text video", srt="text")
    assert drawn(podcast, "probe", "video", "both", "srt") == ["probe", "├ video", "├ both", "└ srt"]
    assert drawn(podcast, "text", "srt") == ["text", "srt"]


def test_of_deep_branches_the_last_are_shown() -> None:
    assert clipped("│ │ └ ", 6) == "│ │ └ "
    assert clipped("│ │ └ ", 5) == "… └ "
    assert clipped("│ │ └ ", 3) == ""


@given(st.lists(st.sets(st.integers(0, 30), max_size=4), min_size=1, max_size=30), st.data())
def test_every_node_is_there_once_after_what_it_waits_for_and_is_shown(
    waits: list[set[int]], data: st.DataObject
) -> None:
    nodes = [
        planned(f"n{place}", after=tuple(f"n{one}" for one in sorted(before) if one < place))
        for place, before in enumerate(waits)
    ]
    one = Tree.of(GraphPlan(workflow="tree", version=1, inputs={}, nodes=tuple(nodes)))
    shown = data.draw(st.sets(st.sampled_from([node.key for node in nodes])))
    keys = [key for key, _ in one.branches(shown)]
    assert sorted(keys) == sorted(shown)
    for key in keys:
        above = one.above[key]
        assert above is None or above not in shown or keys.index(above) < keys.index(key)


def test_a_chain_of_thousands_is_no_recursion() -> None:
    keys = [f"n{place}" for place in range(4000)]
    nodes = tuple(planned(key, after=(keys[place - 1],) if place else ()) for place, key in enumerate(keys))
    one = Tree.of(GraphPlan(workflow="tree", version=1, inputs={}, nodes=nodes))
    assert one.branches(keys) == [(key, "") for key in keys]
    assert one.branches(keys[-1:]) == [(keys[-1], "")]
