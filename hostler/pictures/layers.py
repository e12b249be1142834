"""Where the nodes of a graph stand: in layers from left to right, by Sugiyama's method as fast-sugiyama does it."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from hostler.pictures.paper import missing

TALLEST: Final = 24
"""So many nodes without any edge stand in one column."""

KEPT: Final = 8
"""So many graphs stay laid out."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """A graph laid out, in units of one node: layer 0 is the leftmost, row 0 the topmost.

    Attributes:
        places: Layer and row of each node, by its index; no two alike.
        paths: For each edge, by the indexes of its ends, the places that it goes through between them.
        columns: Number of layers.
        rows: Number of rows.

    """

    places: Mapping[int, Point]
    paths: Mapping[tuple[int, int], tuple[Point, ...]]
    columns: float
    rows: float


@functools.lru_cache(maxsize=KEPT)
def layers(count: int, edges: tuple[tuple[int, int], ...]) -> Layers:
    """Lay out a graph; each part that hangs together by itself, one below the other.

    A page that shows a run again and again has the same graph each time, and the largest take seconds.

    Args:
        count: Number of nodes; they are called 0 to count - 1.
        edges: From, to; without cycles.

    Raises:
        HostlerError: The library is not installed (unavailable).

    """
    places: dict[int, Point] = {}
    paths: dict[tuple[int, int], tuple[Point, ...]] = {}
    top = 0.0
    for found, ways in sorted(_parts(count, edges), key=lambda part: min(part[0])):
        turn = -1.0 if _upside_down({number: found[number] for number in found if number < count}) else 1.0
        left, up = min(x for x, _ in found.values()), min(turn * y for _, y in found.values())
        moved = {number: (x - left, turn * y - up + top) for number, (x, y) in found.items()}
        places |= {number: place for number, place in moved.items() if number < count}
        paths |= {edge: tuple(moved[number] for number in way) for edge, way in ways.items()}
        top = max(y for _, y in moved.values()) + 1
    alone = [number for number in range(count) if number not in places]
    for number, node in enumerate(alone):
        places[node] = float(number // TALLEST), top + number % TALLEST
    return Layers(
        places=places,
        paths=paths,
        columns=max((x for x, _ in places.values()), default=0.0) + 1,
        rows=max((y for _, y in [*places.values(), *(place for way in paths.values() for place in way)]), default=0.0)
        + 1,
    )


def _upside_down(places: Mapping[int, Point]) -> bool:
    """Say whether more neighbours in a layer stand in the other order than in that of their numbers."""
    standing = sorted(places, key=places.__getitem__)
    down = [after > before for before, after in pairwise(standing) if places[before][0] == places[after][0]]
    return sum(down) * 2 < len(down)


_Part = tuple[dict[int, Point], dict[tuple[int, int], tuple[int, ...]]]
"""Places by number, and the numbers of the places that each edge goes through; those have numbers from `count` on."""


def _parts(count: int, edges: Sequence[tuple[int, int]]) -> Iterator[_Part]:
    """Yield each part that hangs together.

    The library is given one part at a time: of several, 0.5.3 gives some nodes of the ways between layers the number of
    a node of another part.
    """
    if not edges:
        return
    try:
        from fast_sugiyama import from_edges  # noqa: PLC0415 (an extra)
    except ImportError:
        raise missing("fast-sugiyama") from None
    for part in _joined(edges):
        linked = sorted({end for edge in part for end in edge})
        dense = {node: number for number, node in enumerate(linked)}  # what the library adds comes after all of them
        ((positions, _, _, drawn),) = from_edges(
            [(dense[start], dense[end]) for start, end in part], vertex_spacing=1, dummy_vertices=True, dummy_size=0.5
        )
        names = dict(enumerate(linked))
        last = max(float(y) for _, (_, y) in positions)  # it draws from the top down, the first layer highest
        places = {_name(names, count, number): (last - float(y), float(x)) for number, (x, y) in positions}
        ways = [(_name(names, count, start), _name(names, count, end)) for start, end in drawn or []]
        yield places, _ways(ways, count)


def _joined(edges: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return the edges of each part that hangs together, sorted."""
    leads = {end: end for edge in edges for end in edge}

    def first(node: int) -> int:
        while leads[node] != node:
            leads[node] = node = leads[leads[node]]
        return node

    for start, end in edges:
        leads[first(start)] = first(end)
    parts: dict[int, list[tuple[int, int]]] = {}
    for edge in sorted(edges):
        parts.setdefault(first(edge[0]), []).append(edge)
    return list(parts.values())


def _name(names: Mapping[int, int], count: int, number: int | str) -> int:
    return names.get(int(number), count + int(number))


def _ways(drawn: Sequence[tuple[int, int]], count: int) -> dict[tuple[int, int], tuple[int, ...]]:
    after = {start: end for start, end in drawn if start >= count}
    ways = {}
    for start, end in drawn:
        if start < count:
            way, to = [], end
            while to >= count:
                way.append(to)
                to = after[to]
            ways[start, to] = tuple(way)
    return ways
