"""The descriptor on which a process shows that it lives, by the name that tells the process of it."""

from collections.abc import Mapping, Sequence
from typing import Final

HEARTBEAT_FD: Final = "HOSTLER_HEARTBEAT_FD"


def only_if_inherited(environ: Mapping[str, str], fds: Sequence[int]) -> Mapping[str, str]:
    """Return *environ* without the heartbeat of a parent, whose number means nothing, or something else, further down.

    Args:
        environ: Of a process to be started.
        fds: The descriptors that it inherits.

    """
    number = environ.get(HEARTBEAT_FD)
    if number is None or number in {str(fd) for fd in fds}:
        return environ
    return {name: value for name, value in environ.items() if name != HEARTBEAT_FD}
