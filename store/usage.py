"""How much of the disk a state folder takes, by what lies there."""

from store.home import Home
from store.retention.waste import size_of


def usage(home: Home) -> dict[str, int]:
    """Return the bytes of the disk that each part of a state folder takes; looking makes nothing.

    Args:
        home: The state folder; one that is not there takes nothing.

    """
    parts = {
        "workspaces": (home.staging,),
        "logs": (home.logs,),
        "store": tuple(home.database.with_name(f"{home.database.name}{end}") for end in ("", "-wal", "-shm")),
        "large values": (home.content,),
        "code": (home.bundles,),
    }
    return {name: sum(size_of(path) for path in paths) for name, paths in parts.items()}
