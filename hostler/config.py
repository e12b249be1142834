"""Where a host keeps things and what its machine has, from the environment and the configuration file.

A missing file is an empty one. A key that nobody knows is refused, since it was meant to change something.
"""

import os
from collections.abc import Mapping
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import platformdirs

from hostler.limits import MAX_NODES
from hostler.refusals import invalid, require_utf8
from hostler.service_settings import SERVICE_KEYS, ServiceSettings, service_settings
from hostres.configuration import configuration_path, read_configuration
from hostres.errors import HostlerError
from hostres.folders import machine_folder
from hostres.settings import MACHINE_KEYS, MachineSettings, machine_settings
from store.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from store.rules import Rule

HOME: Final = "HOSTLER_HOME"
KNOWN: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"authority": ("confirm", "rule"), "limits": ("nodes",), "machine": MACHINE_KEYS, "service": SERVICE_KEYS}
)
"""Section → its keys."""
MOST_NODES: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Places and settings.

    Attributes:
        home: The durable state; absolute.
        machine_folder: Machine-wide admission.
        config_path: The configuration file.
        exists: Whether there is one.
        machine: What it says of the machine.
        max_nodes: How many nodes an authored workflow may have.
        service: What it says of the background service.
        own_rules: The user's own authority rules, which come before the default ones.
        on_terminal: Whether every approval is confirmed on the terminal.

    """

    home: Path
    machine_folder: Path
    config_path: Path
    exists: bool
    machine: MachineSettings = field(default_factory=MachineSettings)
    max_nodes: int = MAX_NODES
    service: ServiceSettings = field(default_factory=ServiceSettings)
    own_rules: "tuple[Rule, ...]" = ()
    on_terminal: bool = False

    @property
    def rules(self) -> "tuple[Rule, ...]":
        """All authority rules, in order."""
        from store.rules import DEFAULT_RULES  # noqa: PLC0415 - most commands ask no rule

        return (*self.own_rules, *DEFAULT_RULES)

    @property
    def capacity(self) -> Mapping[str, int]:
        """Units by resource, only those that the file names."""
        return self.machine.capacity

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None) -> "Config":
        """Read the configuration.

        Args:
            environ: The environment; this process's by default.

        Raises:
            HostlerError: The file is broken or has an unknown key (invalid-data, invalid-profile), or others can
                write it (unsafe-state).

        """
        environ = os.environ if environ is None else environ
        path = configuration_path(environ)
        settings = read_configuration(path)
        _check_keys(settings, path)
        home = environ.get(HOME)
        own_rules, on_terminal = _authority(settings, path)
        place = _named(home) if home else platformdirs.user_state_path("hostler").absolute()
        return cls(
            home=require_utf8(place, "the state folder"),
            machine_folder=machine_folder(environ),
            machine=machine_settings(environ),
            config_path=path,
            exists=path.exists(),
            max_nodes=_nodes(settings, path),
            service=service_settings(settings, path),
            own_rules=own_rules,
            on_terminal=on_terminal,
        )


def _named(home: str) -> Path:
    try:
        return Path(home).expanduser().absolute()
    except RuntimeError:
        raise invalid(f"{HOME} is {home!r}: there is no such user", "give the folder as an absolute path") from None


def _check_keys(settings: Mapping[str, Any], path: Path) -> None:
    for section, content in settings.items():
        if section not in KNOWN:
            raise _unknown(section, list(KNOWN), path)
        if not isinstance(content, dict):
            raise invalid(f"configuration {path}: {section} is not a section", f"write [{section}]")
        for key in content:
            if key not in KNOWN[section]:
                raise _unknown(f"{section}.{key}", [f"{section}.{each}" for each in KNOWN[section]], path)


def _unknown(key: str, known: list[str], path: Path) -> HostlerError:
    nearest = get_close_matches(key, known, n=1, cutoff=0)[0]
    return invalid(f"configuration {path}: there is no key {key}", f"take it out; the nearest known one is {nearest}")


def _authority(settings: Mapping[str, Any], path: Path) -> "tuple[tuple[Rule, ...], bool]":
    if "authority" not in settings:
        return (), False
    from hostler.authority import read_authority  # noqa: PLC0415 - most files have no such section

    read = read_authority(settings, path)
    return read.rules, read.on_terminal


def _nodes(settings: Mapping[str, Any], path: Path) -> int:
    nodes = settings.get("limits", {}).get("nodes", MAX_NODES)
    if isinstance(nodes, bool) or not isinstance(nodes, int) or not 1 <= nodes <= MOST_NODES:
        raise invalid(
            f"configuration {path}: limits.nodes = {nodes!r} is no number of nodes",
            f"give a number from 1 to {MOST_NODES:,}",
        )
    return nodes
