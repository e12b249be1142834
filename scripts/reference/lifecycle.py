"""The life of a node as a mermaid diagram, drawn from the table that the program itself obeys."""

from store.lifecycle import FINAL, MOVES, RESTING, Status


def lifecycle_mermaid() -> str:
    """Return the moves of a node as a state diagram, without those that every unfinished node may make."""
    always = common_ends()
    drawn = [
        (before, after)
        for before in Status
        for after in Status
        if after in MOVES[before] and not (after in always and before not in FINAL) and before is not after
    ]
    return "\n".join(
        [
            "stateDiagram-v2",
            *(f'  state "{status}" as {_id(status)}' for status in Status),
            f"  [*] --> {_id(Status.PENDING)}",
            *(f"  {_id(before)} --> {_id(after)}" for before, after in drawn),
            "  classDef rests fill:#fff3bf,stroke:#f08c00",
            "  classDef final fill:#d3f9d8,stroke:#2f9e44",
            f"  class {','.join(_id(status) for status in Status if status in RESTING)} rests",
            f"  class {','.join(_id(status) for status in Status if status in FINAL)} final",
        ]
    )


def common_ends() -> frozenset[Status]:
    """Return the statuses that every unfinished node may take."""
    return frozenset.intersection(*(MOVES[status] for status in Status if status not in FINAL))


def lifecycle_part() -> str:
    """Return the diagram, with what it leaves out."""
    ends = " or ".join(f"*{status}*" for status in Status if status in common_ends())
    return "\n".join(
        [
            "```mermaid",
            lifecycle_mermaid(),
            "```",
            "",
            f"Not drawn: every unfinished node may also become {ends}.",
            "Yellow rests until a person acts; green is final.",
        ]
    )


def _id(status: Status) -> str:
    return status.value.replace("-", "_")
