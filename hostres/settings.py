"""What `[machine]` of the configuration says: capacities, and how claims are admitted and their processes run."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from hostres.claims import MAX_RESOURCES, is_name, is_units
from hostres.configuration import configuration_path, read_configuration
from hostres.errors import Code, HostlerError
from hostres.patience import Patience

if TYPE_CHECKING:
    from hostres.claim_policy import ClaimPolicy
    from hostres.niceness import Niceness

MACHINE_KEYS: Final = ("capacity", "claims", "group", "ionice", "memory", "nice", "patience")
"""What may stand under `[machine]`."""

MEMORY: Final = ("claimed", "available")
"""By what memory-mb is admitted."""


class MachineSettings(NamedTuple):
    """What one program goes by on this machine.

    Attributes:
        capacity: The capacities that it sets, resource → units.
        group: The group that shares the machine folder, None if nobody does.
        patience: How long the oldest waiter lets others pass; None adopts what is in force.
        claims: What claims take beside what they name, None if nothing.
        real_memory: Whether memory-mb must really be available, not only be left of the claims; None adopts what is in
            force.
        niceness: How its programs stand behind others, None if they do not.

    """

    capacity: Mapping[str, int] = MappingProxyType({})
    group: str | None = None
    patience: Patience | None = None
    claims: "ClaimPolicy | None" = None
    real_memory: bool | None = None
    niceness: "Niceness | None" = None


def machine_settings(environ: Mapping[str, str]) -> MachineSettings:
    """Return what stands under `[machine]`.

    Args:
        environ: The environment, which says where the configuration is.

    Raises:
        HostlerError: `invalid-profile`: a value that is none; `invalid-data`: a key that nobody knows, which was meant
            to change something; see also `read_configuration`.

    """
    path = configuration_path(environ)
    machine = read_configuration(path).get("machine", {})
    if not isinstance(machine, dict):
        raise HostlerError(Code.INVALID_PROFILE, f"machine in {path} is not a table", "write [machine]")
    for key in machine:
        if key not in MACHINE_KEYS:
            raise _unknown(key, path)
    group = machine.get("group")
    if not (group is None or (isinstance(group, str) and group)):
        raise _invalid("group", group, path, 'write group = "NAME"')
    if group is not None:
        group_number(group)
    memory = machine.get("memory")
    if not (memory is None or memory in MEMORY):
        raise _invalid("memory", memory, path, 'write memory = "available", or "claimed", which is the default')
    return MachineSettings(
        capacity=_capacity(machine.get("capacity", {}), path),
        group=group,
        patience=_patience(machine.get("patience"), path),
        claims=_claims(machine["claims"], path) if "claims" in machine else None,
        real_memory=None if memory is None else memory == "available",
        niceness=_niceness(machine, path) if machine.keys() & {"nice", "ionice"} else None,
    )


def machine_capacity(environ: Mapping[str, str]) -> Mapping[str, int]:
    """Return the capacities under `[machine.capacity]`, resource → units; see `machine_settings`."""
    return machine_settings(environ).capacity


def group_number(name: str) -> int:
    """Return the number of the group that shares the machine folder.

    Raises:
        HostlerError: `invalid-profile`: there is no such group.

    """
    import grp  # noqa: PLC0415  few share

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise HostlerError(
            Code.INVALID_PROFILE, f"there is no group {name}", "correct group in [machine] of the configuration"
        ) from None


def check_number(names: Collection[str], path: Path) -> None:
    """Refuse more resources than the processes of a machine can agree on.

    Args:
        names: What the configuration sets, or is going to set.
        path: Where it is.

    Raises:
        HostlerError: `invalid-profile`.

    """
    if len(names) > MAX_RESOURCES:
        raise HostlerError(
            Code.INVALID_PROFILE,
            f"{len(names)} resources in [machine.capacity] of {path}, more than {MAX_RESOURCES}",
            "set fewer; what takes turns together can be one resource of more units",
        )


def _capacity(value: Any, path: Path) -> Mapping[str, int]:
    if not isinstance(value, dict):
        raise HostlerError(Code.INVALID_PROFILE, f"[machine.capacity] in {path} is not a table", "write NAME = UNITS")
    check_number(value, path)
    for name, units in value.items():
        if not (is_name(name) and is_units(units, least=0)):
            raise HostlerError(
                Code.INVALID_PROFILE,
                f"{name} = {units!r} in [machine.capacity] of {path} is not a capacity",
                "write a lower-case name and a whole number of units",
            )
    return MappingProxyType(value)


def _patience(value: Any, path: Path) -> Patience | None:
    match value:
        case None:
            return None
        case int() | float():
            return Patience(factor=value)
        case dict() if value.keys() <= {"factor", "least_s", "most_s"}:
            return Patience(**value)
    raise HostlerError(
        Code.INVALID_PROFILE,
        f"patience in [machine] of {path} is neither a factor nor a table",
        "write patience = 6, or patience = { factor = 6, least_s = 2, most_s = 600 }",
    )


def _claims(value: Any, path: Path) -> "ClaimPolicy":
    from hostres.claim_policy import ClaimPolicy  # noqa: PLC0415  few have one

    return ClaimPolicy.of_configuration(value, path)


def _niceness(machine: Mapping[str, Any], path: Path) -> "Niceness":
    from hostres.niceness import IDLE, LEVELS, NICES, Niceness  # noqa: PLC0415  few set it

    nice, io = machine.get("nice", 0), machine.get("ionice")
    if not (is_units(nice, least=0) and nice in NICES):
        raise _invalid("nice", nice, path, "write a whole number from 0 to 19; 19 stands behind all others")
    if not (io is None or io == IDLE or (is_units(io, least=0) and io in LEVELS)):
        raise _invalid("ionice", io, path, 'write "idle", or a level from 0 to 7; 7 stands behind the others')
    return Niceness(nice=nice, io=io)


def _invalid(key: str, value: Any, path: Path, todo: str) -> HostlerError:
    from hostres.toml_text import where  # noqa: PLC0415  only to say so

    what = f"{key} = {value!r} in [machine] of {where(path, ('machine', key))} is not allowed"
    return HostlerError(Code.INVALID_PROFILE, what, todo)


def _unknown(key: str, path: Path) -> HostlerError:
    from difflib import get_close_matches  # noqa: PLC0415  seldom needed

    nearest = get_close_matches(key, MACHINE_KEYS, n=1, cutoff=0)[0]
    return HostlerError(
        Code.INVALID_DATA,
        f"configuration {path}: there is no key machine.{key}",
        f"take it out; the nearest known one is machine.{nearest}",
    )
