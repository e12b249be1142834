"""Logs that lack some of what was written, because the disk did not take it: never a silent gap."""

from collections.abc import Iterable
from typing import Any

from hostler.views.terminal import harmless
from store.contracts import Event


def cuts_json(cuts: Iterable[Event], node: str) -> list[dict[str, Any]]:
    """Return the cut logs of a node, for `show --json`.

    Args:
        cuts: The events `log-cut` of the run.
        node: The node.

    """
    return [{"attempt": event.attempt, **event.data} for event in cuts if event.node == node]


def cut_lines(cuts: Iterable[Event]) -> list[str]:
    """Return a line for each cut log.

    Args:
        cuts: The events `log-cut` of the run.

    """
    return [
        harmless(
            f"log cut: {event.data['stream']} of {event.node}, attempt {event.attempt}, lacks up to"
            f" {event.data['bytes']} bytes: {event.data['message']}"
        )
        for event in cuts
    ]
