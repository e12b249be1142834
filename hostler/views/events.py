"""The event log of a run: JSON as promised, and one line an event for people."""

from typing import Any

import orjson

from hostler.views.terminal import cut, harmless
from store.contracts import Event

DATA_WIDTH = 160


def event_json(event: Event) -> dict[str, Any]:
    """Return an event in the shape that `events --json` promises; what does not apply is left out."""
    shape = event.model_dump(mode="json")
    return {
        name: value
        for name, value in shape.items()
        if value is not None or name not in {"node", "attempt", "principal"}
    }


def event_line(event: Event) -> str:
    """Return an event in one line for people."""
    where = event.node or ""
    if event.attempt is not None:
        where += f" #{event.attempt}"
    parts = [f"{event.seq:>5}", event.at, event.kind.value.ljust(17), where, event.principal or ""]
    if event.data:
        parts.append(cut(orjson.dumps(event.data).decode(), DATA_WIDTH))
    return harmless("  ".join(part for part in parts if part))
