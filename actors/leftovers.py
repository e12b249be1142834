"""What attempts of dead hosts, or of nodes that were given up on, have left running: found and ended."""

import os
from collections.abc import Mapping
from pathlib import Path

from actors.messages import LeftoversEnded
from actors.scheduling.stopping import GRACE_S
from hostres.errors import HostlerError
from hostres.leftovers import Leftover, end_leftovers, find_leftovers


def ended_leftovers(run_id: str, nodes: tuple[str, ...], machine: Path) -> LeftoversEnded:
    """Look for processes of attempts of *nodes* that are over, and end them.

    Args:
        run_id: The run.
        nodes: The nodes.
        machine: The machine folder, whose tickets name some of them.

    """
    try:
        found = [leftover for leftover in find_leftovers(run_id, machine) if leftover.node in nodes]
        remaining = end_leftovers(found, grace_s=GRACE_S, machine_folder=machine)
    except HostlerError as error:  # nothing is tried again that could not be looked for
        return LeftoversEnded(nodes=nodes, ended={}, remaining=dict.fromkeys(nodes, str(error)))
    return LeftoversEnded(nodes=nodes, ended=_by_node(found), remaining=_named(remaining))


def _by_node(leftovers: list[Leftover]) -> Mapping[str, tuple[str, ...]]:
    named: dict[str, tuple[str, ...]] = {}
    for each in leftovers:
        program = os.path.basename(each.command[0]) if each.command else "?"  # noqa: PTH119 - a word, not a path
        named[each.node] = (*named.get(each.node, ()), f"{program} (pid {each.pid})")
    return named


def _named(leftovers: list[Leftover]) -> Mapping[str, str]:
    return {node: ", ".join(names) for node, names in _by_node(leftovers).items()}
