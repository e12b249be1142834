"""What the configuration says of the background service."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from hostler.refusals import invalid
from store.lazy_dataclass import dataclass

HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The section `[service]`.

    Attributes:
        grace_seconds: How long admitted work may go on after SIGTERM; its supervisor must wait longer than that.
        log_megabytes: At that size its log is begun anew.
        log_files: So many older ones are kept.

    """

    grace_seconds: float = 20.0
    log_megabytes: float = 10.0
    log_files: int = 3


SERVICE_KEYS: Final = tuple(field.name for field in fields(ServiceSettings))
_BOUNDS: Final[Mapping[str, tuple[float, float]]] = {
    "grace_seconds": (0.0, HOUR_S),
    "log_megabytes": (0.1, 10_000.0),
    "log_files": (0, 100),
}


def service_settings(settings: Mapping[str, Any], path: Path) -> ServiceSettings:
    """Read the section `[service]`.

    Args:
        settings: The whole configuration.
        path: Its file, for errors.

    Raises:
        HostlerError: invalid-data, naming the key.

    """
    given = settings.get("service", {})
    for name, value in given.items():
        least, most = _BOUNDS[name]
        kinds = (int,) if name == "log_files" else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            whole = "whole number" if kinds == (int,) else "number"
            raise invalid(
                f"configuration {path}: service.{name} = {value!r} is no {whole} from {least:g} to {most:g}",
                "give it one, or leave it out",
            )
    return ServiceSettings(**given)
