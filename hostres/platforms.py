"""Where admission works: locks on FIFOs, `/proc` and boot-time clocks are Linux's."""

import sys

from hostres.errors import Code, HostlerError


def require_supported(platform: str = sys.platform) -> None:
    """Refuse a system where the promises cannot be kept, instead of running weaker.

    Args:
        platform: A value of `sys.platform`.

    Raises:
        HostlerError: `unsupported-platform`.

    """
    if not platform.startswith("linux"):
        raise HostlerError(
            Code.UNSUPPORTED_PLATFORM,
            f"machine-wide admission does not work on {platform} yet",
            "run Hostler on Linux, or in a Linux virtual machine or container",
        )
