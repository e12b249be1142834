"""Where a host keeps things and what its machine has, from the environment and the configuration file.

A missing file is an empty one. A key that nobody knows is refused, since it was meant to change something; which there
are and what is right for each says `hostler.configuration_keys`.
"""

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler.limits import MAX_NODES
from hostler.retention_settings import RetentionSettings, retention_settings
from hostler.service_settings import ServiceSettings
from hostler.state_folder import state_folder
from hostres.configuration import configuration_path, read_configuration
from hostres.folders import machine_folder
from hostres.settings import MachineSettings, machine_of
from store.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from store.rules import Rule


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
        retention: What it says of how long runs are kept.
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
    retention: RetentionSettings = field(default_factory=RetentionSettings)
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
        configuration = read_configuration(path)
        settings = configuration.settings
        if settings:
            from hostler.configuration_keys import check_configuration  # noqa: PLC0415 - most have no such file

            check_configuration(path, settings)
        own_rules, on_terminal = _authority(settings)
        return cls(
            home=state_folder(environ),
            machine_folder=machine_folder(environ),
            machine=machine_of(configuration),
            config_path=path,
            exists=path.exists(),
            max_nodes=settings.get("limits", {}).get("nodes", MAX_NODES),
            retention=retention_settings(settings.get("retention", {})),
            service=ServiceSettings(**settings.get("service", {})),
            own_rules=own_rules,
            on_terminal=on_terminal,
        )


def _authority(settings: Mapping[str, Any]) -> "tuple[tuple[Rule, ...], bool]":
    if "authority" not in settings:
        return (), False
    from hostler.authority import read_authority  # noqa: PLC0415 - most files have no such section

    read = read_authority(settings)
    return read.rules, read.on_terminal
