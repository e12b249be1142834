"""What may be claimed: names, units, and the capacities of a machine."""

import os
import re
from collections.abc import Mapping
from typing import Final

from hostres.errors import Code, HostlerError

MEMORY: Final = "memory-mb"
"""The resource whose units are mebibytes of memory."""

NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
MAX_NAME: Final = 255
MAX_RESOURCES: Final = 200
"""So many a configuration may set; what is agreed on must fit into one small file, whatever their names are."""
MAX_UNITS: Final = 2**53 - 1
MAX_DIGITS: Final = 255
"""A number with more of them is none that anybody has meant; who writes one with fewer is told how many there are."""
MAX_KEYS: Final = 64
MAX_KEY: Final = 512


def default_capacity() -> dict[str, int]:
    """Return the capacities of a machine for which nobody has set any."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": usable_cpus(len(os.sched_getaffinity(0))),
        "local-io": 2,
        "ffmpeg": 2,
        "video-encode": 1,
        "vision": 1,
        "whisper": 1,
        "network": 4,
        "paid-call": 1,
        "browser": 1,
        "capture-device": 1,
        MEMORY: max(1, pages * 8 // 10 // (1 << 20)),
    }


def usable_cpus(parallelism: int) -> int:
    """Return how many of *parallelism* CPUs are given away: two are kept back from 6, one from 3."""
    reserve = 2 if parallelism >= 6 else 1 if parallelism >= 3 else 0
    return max(1, parallelism - reserve)


def is_name(name: object) -> bool:
    """Return whether *name* can name a resource."""
    return isinstance(name, str) and len(name) <= MAX_NAME and NAME.fullmatch(name) is not None


def is_units(units: object, *, least: int) -> bool:
    """Return whether *units* is a whole number from *least* to 2^53 - 1."""
    return isinstance(units, int) and not isinstance(units, bool) and least <= units <= MAX_UNITS


def is_priority(priority: object) -> bool:
    """Return whether *priority* is a whole number from -10 to 10."""
    return isinstance(priority, int) and not isinstance(priority, bool) and -10 <= priority <= 10


def check_claims(claims: Mapping[str, int], capacity: Mapping[str, int]) -> None:
    """Refuse claims that can never be admitted.

    Args:
        claims: Resource → units.
        capacity: Resource → units, of the profile in force.

    Raises:
        HostlerError: `invalid-claims`.

    """
    for name, units in claims.items():
        if type(units) is int and 1 <= units <= capacity.get(name, 0):
            continue
        if not is_name(name):
            raise _invalid(f"{name!r} cannot name a resource", "use lower-case words, as in ffmpeg or video-encode")
        if not is_units(units, least=1) and not (type(units) is int and units > MAX_UNITS):
            raise _invalid(f"{name}={units!r} is not a number of units", "claim a whole number of at least 1")
        if name not in capacity:
            known = ", ".join(sorted(capacity))
            from hostres.suggestions import did_you_mean  # noqa: PLC0415  only to say so

            otherwise = f"claim one of {known}, or add {name} to [machine.capacity] in the configuration"
            raise _invalid(f"the machine has no resource {name}", did_you_mean(name, capacity, otherwise))
        if units > capacity[name]:
            raise _invalid(
                f"{name}={units} is more than the machine's {capacity[name]}",
                f"claim at most {capacity[name]}, or raise {name} in [machine.capacity] in the configuration",
            )


def check_keys(keys: tuple[str, ...]) -> None:
    """Refuse exclusive keys outside their bounds.

    Raises:
        HostlerError: `invalid-claims`.

    """
    if len(keys) > MAX_KEYS:
        raise _invalid(f"{len(keys)} exclusive keys are too many", f"use at most {MAX_KEYS}")
    for key in keys:
        if not 1 <= len(key) <= MAX_KEY:
            raise _invalid(f"an exclusive key has {len(key)} characters", f"use 1 to {MAX_KEY}")


def parse_claims(texts: list[str]) -> dict[str, int]:
    """Read claims as a person writes them, `ffmpeg=1`.

    Raises:
        HostlerError: `invalid-claims`: not of that form, or a resource named twice.

    """
    claims: dict[str, int] = {}
    for text in texts:
        name, equals, units = text.partition("=")
        if not (equals and re.fullmatch(rf"-?[0-9]{{1,{MAX_DIGITS}}}", units)):
            raise _invalid(f"{text!r} is not a claim", "write RESOURCE=UNITS, as in ffmpeg=1")
        if name in claims:
            raise _invalid(f"{name} is claimed twice", "claim each resource once")
        claims[name] = int(units)
    return claims


def describe(claims: Mapping[str, int]) -> str:
    """Return claims as a person writes them."""
    return " ".join(f"{name}={units}" for name, units in sorted(claims.items())) or "nothing"


def _invalid(what: str, todo: str) -> HostlerError:
    return HostlerError(Code.INVALID_CLAIMS, what, todo)
