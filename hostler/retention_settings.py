"""What the configuration says of how long runs are kept."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
GIGABYTE: Final = 1_000_000_000
LONGEST_S: Final = 100 * 365 * 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """The section `[retention]`.

    Attributes:
        older_than_s: Runs that ended so long ago go, seconds.
        keep: But never so many of the newest of them.
        most_gigabytes: What workspaces and logs may take together; above that the oldest go sooner. None sets no limit.

    """

    older_than_s: int = 30 * UNITS["d"]
    keep: int = 0
    most_gigabytes: float | None = None


def age_seconds(text: str) -> int | None:
    """Return an age as people write it, `90s`, `5m`, `12h`, `30d` or `8w`, in seconds; None if it is none."""
    match = re.fullmatch(r"([0-9]{1,9})([smhdw])", text)
    if match is None or int(match[1]) * UNITS[match[2]] > LONGEST_S:
        return None
    return int(match[1]) * UNITS[match[2]]


def retention_settings(section: Mapping[str, Any]) -> RetentionSettings:
    """Return what stands in the section `[retention]`, whose keys and values are right."""
    given = dict(section)
    age = age_seconds(given.pop("older_than", ""))
    return RetentionSettings(**given) if age is None else RetentionSettings(older_than_s=age, **given)
