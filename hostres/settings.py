"""What `[machine]` of the configuration says: capacities, and how claims are admitted and their processes run."""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from hostres.claims import MAX_RESOURCES
from hostres.configuration import Configuration, configuration_path, read_configuration, refuse_wrong, wrong_at
from hostres.errors import Code, HostlerError
from hostres.patience import Patience

if TYPE_CHECKING:
    from hostres.claim_policy import ClaimPolicy
    from hostres.niceness import Niceness
else:
    ClaimPolicy = Niceness = object  # few have one; as names in quotes typing would compile them, for a millisecond


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
        read_boot_ns: When the configuration was read that says so, on the boot-time clock; what a person has decided
            since goes before its capacities. None counts as just now.

    """

    capacity: Mapping[str, int] = MappingProxyType({})
    group: str | None = None
    patience: Patience | None = None
    claims: ClaimPolicy | None = None
    real_memory: bool | None = None
    niceness: Niceness | None = None
    read_boot_ns: int | None = None


def machine_settings(environ: Mapping[str, str]) -> MachineSettings:
    """Return what stands under `[machine]`.

    Args:
        environ: The environment, which says where the configuration is.

    Raises:
        HostlerError: `invalid-profile`: a value that is none; `invalid-data`: a key that nobody knows, which was meant
            to change something; see also `read_configuration`.

    """
    return checked_machine(read_configuration(configuration_path(environ)))


def checked_machine(configuration: Configuration) -> MachineSettings:
    """Return what stands under `[machine]` of a configuration, whose other sections are nobody's here.

    Args:
        configuration: The whole configuration.

    Raises:
        HostlerError: As `machine_settings`.

    """
    if not configuration.settings:
        return machine_of(configuration)
    from hostres.machine_keys import MACHINE_KEYS, OTHER_SECTIONS  # noqa: PLC0415  most have no such file

    refuse_wrong(configuration.path, configuration.settings, (*MACHINE_KEYS, *OTHER_SECTIONS))
    return machine_of(configuration)


def machine_of(configuration: Configuration) -> MachineSettings:
    """Return what stands under `[machine]` of a configuration whose keys and values are right, each by itself.

    Args:
        configuration: The whole configuration.

    Raises:
        HostlerError: `invalid-profile`: values that do not fit each other or this machine.

    """
    path, machine = configuration.path, configuration.settings.get("machine", {})
    if not machine:
        return MachineSettings(read_boot_ns=configuration.read_boot_ns)
    group, memory = machine.get("group"), machine.get("memory")
    if group is not None:
        group_number(group, path)
    capacity = machine.get("capacity", {})
    check_number(capacity, path)
    return MachineSettings(
        capacity=MappingProxyType(capacity),
        group=group,
        patience=_patience(machine.get("patience"), path),
        claims=_claims(machine["claims"], path) if "claims" in machine else None,
        real_memory=None if memory is None else memory == "available",
        niceness=_niceness(machine) if machine.keys() & {"nice", "ionice"} else None,
        read_boot_ns=configuration.read_boot_ns,
    )


def machine_capacity(environ: Mapping[str, str]) -> Mapping[str, int]:
    """Return the capacities under `[machine.capacity]`, resource → units; see `machine_settings`."""
    return machine_settings(environ).capacity


def group_number(name: str, path: Path | None = None) -> int:
    """Return the number of the group that shares the machine folder.

    Args:
        name: Of the group.
        path: The configuration that names it, if it is known.

    Raises:
        HostlerError: `invalid-profile`: there is no such group.

    """
    import grp  # noqa: PLC0415  few share

    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        what, todo = f"there is no group {name}", "correct group in [machine] of the configuration"
        if path is not None:
            raise wrong_at(path, ("machine", "group"), what, todo, code=Code.INVALID_PROFILE) from None
        raise HostlerError(Code.INVALID_PROFILE, what, todo) from None


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


def _patience(value: Any, path: Path) -> Patience | None:
    if value is None:
        return None
    try:
        return Patience(**value) if isinstance(value, dict) else Patience(factor=value)
    except HostlerError as error:
        what = f"machine.patience is {error.what}"
        raise wrong_at(path, ("machine", "patience"), what, error.todo, code=error.code) from None


def _claims(value: Any, path: Path) -> "ClaimPolicy":
    from hostres.claim_policy import ClaimPolicy  # noqa: PLC0415  few have one

    return ClaimPolicy.of_configuration(value, path)


def _niceness(machine: Mapping[str, Any]) -> "Niceness":
    from hostres.niceness import Niceness  # noqa: PLC0415  few set it

    return Niceness(nice=machine.get("nice", 0), io=machine.get("ionice"))
