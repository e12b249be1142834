"""A warning about nodes that claim more than the machine has; looking at the machine makes nothing."""

import sys
from typing import Final

from hostler.config import Config
from hostler.views.terminal import harmless
from hostres.claims import check_claims
from hostres.errors import HostlerError
from hostres.top import snapshot
from store.plans import GraphPlan

MOST: Final = 5
"""So many nodes are named."""


def warn_of_excess(plan: GraphPlan, config: Config) -> None:
    """Say on standard error which nodes this machine can never admit; the run goes on without them.

    Args:
        plan: The graph plan.
        config: Says where the machine folder is, and which capacities are set.

    """
    try:
        capacity = {**snapshot(config.machine_folder).capacity, **config.capacity}
    except HostlerError:
        return  # whoever needs the machine says what is wrong with it
    lines = []
    for node in plan.nodes:
        try:
            claims = node.policy.claims
            check_claims(claims, capacity)
            if config.machine.claims is not None:
                config.machine.claims.physical(claims, capacity)
        except HostlerError as error:
            lines.append(f"node {node.key} can never run here: {error.what}; {error.todo}")
    if len(lines) > MOST:
        lines[MOST:] = [f"{len(lines) - MOST} more nodes can never run here"]
    for line in lines:
        sys.stderr.write(f"hostler: warning: {harmless(line)}\n")
