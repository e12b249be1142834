"""The keys of `[machine]`: capacities, and how claims are admitted and their processes run. Pure."""

from typing import Final

from hostres.claims import MAX_NAME, MAX_UNITS, NAME
from hostres.keys import Either, Key, Number, Table, Text, Whole, Words

MEMORY: Final = ("claimed", "available")
"""By what memory-mb is admitted, the default first."""
DAY_S: Final = 86_400

RESOURCES: Final = (
    "browser", "capture-device", "cpu", "ffmpeg", "local-io", "memory-mb", "network", "paid-call", "video-encode",
    "vision", "whisper",
)  # fmt: skip
"""What every machine has."""
_RESOURCE: Final = Text("a lower-case name, as in ffmpeg or video-encode", NAME.pattern, MAX_NAME)

MACHINE_KEYS: Final = (
    Key(
        "machine.capacity.*",
        Whole(0, MAX_UNITS),
        "how much the machine has of a resource; a new name is a new resource",
        default="see capacities",
        unit="units",
        names=RESOURCES,
        form=_RESOURCE,
        example="ffmpeg = 3",
    ),
    Key(
        "machine.claims.*.*",
        Either((Whole(1, MAX_UNITS), Words(("all",)))),
        "what a claim of one unit of the first takes of the second",
        unit="units",
        names=RESOURCES,
        form=_RESOURCE,
        example='ffmpeg = { cpu = "all" }',
    ),
    Key("machine.group", Text("the name of a group of users"), "the group that shares the machine folder"),
    Key(
        "machine.ionice",
        Either((Words(("idle",)), Whole(0, 7))),
        "how far programs stand behind others at the disk; 7 waits longest, idle reads only when nobody else does",
    ),
    Key(
        "machine.memory",
        Words(MEMORY),
        "whether memory-mb must only be left of the claims, or really be there",
        default='"claimed"',
    ),
    Key("machine.nice", Whole(0, 19), "niceness of programs; 19 stands behind all others", default="0"),
    Key(
        "machine.patience",
        Number(0),
        "for how many average turns the oldest waiter lets others pass",
        default="6",
        unit="turns",
    ),
    Key(
        "machine.patience.factor",
        Number(0),
        "the same, in a table with its bounds",
        default="6",
        unit="turns",
        example="patience = { factor = 6, least_s = 2, most_s = 600 }",
    ),
    Key("machine.patience.least_s", Number(0, DAY_S), "but at least so long", default="2", unit="seconds"),
    Key("machine.patience.most_s", Number(0, DAY_S), "and at most so long", default="600", unit="seconds"),
)
"""What may stand under `[machine]`."""

OTHER_SECTIONS: Final = tuple(
    Key(name, Table(), meaning)
    for name, meaning in (
        ("authority", "who may do what"),
        ("limits", "of a workflow"),
        ("retention", "how long runs are kept"),
        ("service", "the background service"),
    )
)
"""The other tables of the file, so that a misspelt one is told also by what needs only `[machine]`."""
