"""What the configuration says of how claims are admitted and their programs run, as lines for people."""

from hostres.settings import MachineSettings


def rules_text(settings: MachineSettings, available_mb: int | None) -> list[str]:
    """Return a line for each rule that is not the default.

    Args:
        settings: What the configuration says.
        available_mb: Memory that is really available, None if that is not what memory-mb is admitted by.

    """
    lines = [f"a claim of {line}" for line in settings.claims.lines()] if settings.claims is not None else []
    if available_mb is not None:
        lines.append(f"memory-mb is admitted as far as it is really available, now {available_mb}")
    if settings.niceness is not None:
        lines.append(f"programs run with {settings.niceness}")
    return lines
