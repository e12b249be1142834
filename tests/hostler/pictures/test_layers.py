"""Where the nodes of a graph stand."""

import sys
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hostler.pictures.layers import TALLEST, layers
from hostres.errors import Code, HostlerError

Edges = tuple[tuple[int, int], ...]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Edges]:
    count = draw(st.integers(0, 14))
    every = list(combinations(range(count), 2))
    edges = draw(st.sets(st.sampled_from(every), max_size=24)) if every else set()
    named = draw(st.permutations(range(count)))  # so that an edge may lead to a lower number
    return count, tuple(sorted((named[start], named[end]) for start, end in edges))


# Two parts, one with edges over several layers: their places were once taken for nodes of the other part.
TWO_PARTS = (
    12,
    ((3, 5), (3, 10), (5, 11), (6, 5), (6, 11), (7, 6), (8, 7), (8, 10), (9, 1), (10, 2), (11, 2)),
)


@settings(max_examples=80, deadline=None)
@given(graphs())
@example(TWO_PARTS)
def test_every_node_has_a_place_of_its_own_and_every_edge_leads_to_the_right(graph: tuple[int, Edges]) -> None:
    count, edges = graph
    laid = layers(count, edges)
    assert {*laid.places} == {*range(count)}
    for one, other in combinations(range(count), 2):
        (x, y), (other_x, other_y) = laid.places[one], laid.places[other]
        assert x != other_x or abs(y - other_y) >= 1 - 1e-6
    for start, end in edges:
        assert laid.places[start][0] < laid.places[end][0]
    for x, y in laid.places.values():
        assert x == int(x)
        assert 0 <= x <= laid.columns - 1
        assert 0 <= y <= laid.rows - 1


@settings(max_examples=80, deadline=None)
@given(graphs())
@example(TWO_PARTS)
def test_an_edge_goes_through_every_layer_on_its_way_and_past_the_nodes_there(graph: tuple[int, Edges]) -> None:
    count, edges = graph
    laid = layers(count, edges)
    assert {*laid.paths} == {*edges}
    for (start, end), way in laid.paths.items():
        assert [x for x, _ in way] == list(range(int(laid.places[start][0]) + 1, int(laid.places[end][0])))
        for x, y in way:
            assert 0 <= y <= laid.rows - 1
            beside = [abs(y - other) for at, other in laid.places.values() if at == x]
            assert all(distance > 0.5 + 0.1 for distance in beside)  # a node reaches half a row up and down


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_the_same_graph_is_laid_out_the_same_way(graph: tuple[int, Edges]) -> None:
    assert layers.__wrapped__(*graph) == layers.__wrapped__(*graph)


def test_what_runs_side_by_side_stands_in_the_order_of_the_plan() -> None:
    between = range(1, 7)
    laid = layers(8, (*((0, number) for number in between), *((number, 7) for number in between)))
    assert sorted(range(1, 7), key=lambda number: laid.places[number][1]) == list(range(1, 7))


def test_nodes_without_edges_stand_in_columns_that_are_not_too_tall() -> None:
    laid = layers(TALLEST * 2 + 1, ())
    assert (laid.columns, laid.rows) == (3, TALLEST)


def test_a_large_graph_is_laid_out_too() -> None:
    """As many nodes as a workflow may have: a thousand rows of four."""
    edges = tuple((row * 4 + step, row * 4 + step + 1) for row in range(1024) for step in range(3))
    laid = layers(4096, edges)
    assert (laid.columns, laid.rows) == (4, 1024)


def test_without_the_library_the_refusal_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fast_sugiyama", None)
    layers.cache_clear()
    assert layers(2, ()).rows == 2
    with pytest.raises(HostlerError) as caught:
        layers(2, ((0, 1),))
    assert (caught.value.code, caught.value.todo) == (Code.UNAVAILABLE, "pip install 'hostler[pictures]'")
