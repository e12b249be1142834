"""All keys of the configuration: name, right values, default, meaning and unit of each.

This table checks the file, docs/configuration.md is compared with it, and `hostler doctor` goes through it. It loads
little, since `hostler exec` checks a file of several sections by it too.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from hostler.authority_keys import AUTHORITY_KEYS, check_rules
from hostler.limits import MAX_NODES
from hostler.retention_settings import age_seconds
from hostres.configuration import refuse_wrong
from hostres.keys import Key, Number, Whole
from hostres.machine_keys import MACHINE_KEYS

HOUR_S: Final = 3600
MOST_NODES: Final = 1_000_000


class Age(NamedTuple):
    """How long ago something was, with its unit."""

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        return isinstance(value, str) and age_seconds(value) is not None

    @property
    def right(self) -> str:
        """What is right, in words."""
        return "an age of at most a hundred years, as 90s, 5m, 12h, 30d or 8w"


LIMITS_KEYS: Final = (
    Key(
        "limits.nodes",
        Whole(1, MOST_NODES),
        "how many nodes an authored workflow may have",
        default=str(MAX_NODES),
        unit="nodes",
    ),
)
RETENTION_KEYS: Final = (
    Key(
        "retention.older_than",
        Age(),
        "which runs `hostler gc` takes away, by how long ago they ended",
        default='"30d"',
    ),
    Key(
        "retention.keep",
        Whole(0, 999_999_999),
        "how many of the newest of them it keeps all the same",
        default="0",
        unit="runs",
    ),
    Key(
        "retention.most_gigabytes",
        Number(0, 1_000_000),
        "what workspaces and logs may take together; above that `hostler gc` takes the oldest runs sooner",
        unit="gigabytes",
    ),
)
SERVICE_KEYS: Final = (
    Key(
        "service.grace_seconds",
        Number(0, HOUR_S),
        "how long admitted work may go on after SIGTERM",
        default="20",
        unit="seconds",
    ),
    Key(
        "service.log_megabytes",
        Number(0.1, 10_000),
        "at that size its log is begun anew",
        default="10",
        unit="megabytes",
    ),
    Key("service.log_files", Whole(0, 100), "so many older logs are kept", default="3", unit="files"),
)
KEYS: Final = (*MACHINE_KEYS, *LIMITS_KEYS, *RETENTION_KEYS, *SERVICE_KEYS, *AUTHORITY_KEYS)
"""Every key, section by section."""


def check_configuration(path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a file that holds what nobody knows, a value that is not right, or rules that do not go together.

    Args:
        path: Where it is.
        settings: Its content.

    Raises:
        HostlerError: invalid-data, or invalid-profile for a value of `[machine]`: with file, line and what is right.

    """
    refuse_wrong(path, settings, KEYS)
    check_rules(settings, path)


def key_row(key: Key) -> tuple[str, str, str, str]:
    """Return the row of a key in the documentation: its name, what is right, its default, its meaning."""
    default = f"`{key.default}`" if key.default and not key.default.startswith("see ") else key.default
    return f"`{key.path}`", key.right, default or "none", key.meaning
