"""Putting nodes into an order in which each comes after all that it waits for."""

from collections.abc import Iterable, Mapping

from hostler.refusals import invalid, listed


def in_order(dependencies: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the keys so that each comes after its dependencies, otherwise in the order given.

    Looks at every node and every dependency once.

    Args:
        dependencies: Key → the keys it waits for, all of them known.

    Raises:
        HostlerError: Nodes wait for each other in a circle (invalid-data naming them).

    """
    done: dict[str, None] = {}
    for root in dependencies:
        if root in done:
            continue
        path = {root: iter(dependencies[root])}
        while path:
            key = next(reversed(path))
            waits = next((each for each in path[key] if each not in done), None)
            if waits is None:
                done[key] = None
                del path[key]
            elif waits in path:
                circle = list(path)[list(path).index(waits) :]
                raise _circle([*circle, waits])
            else:
                path[waits] = iter(dependencies[waits])
    return list(done)


def _circle(keys: list[str]) -> Exception:
    if len(keys) == 2:
        return invalid(f"node {keys[0]}: it waits for itself", "take that reference away")
    shown = " → ".join(keys) if len(keys) <= 9 else listed(keys, limit=8)
    return invalid(f"node {keys[0]}: nodes wait for each other: {shown}", "take one of these references away")
