"""What the configuration says of the background service."""

from store.lazy_dataclass import dataclass


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
