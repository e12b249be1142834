"""Who lives: each host holds the kernel lock on its own FIFO, and one byte into it wakes the host."""

import contextlib
import os
import re
import secrets
import time
from typing import Final

from hostres.errors import Code, HostlerError
from hostres.locks import NEW, FifoLock, is_held, poke
from store.home import Home
from store.ids import RANDOM_BYTES, new_host_id

_HOST_ID: Final = re.compile(r"host_[0-9a-hjkmnp-tv-z]{26}")


class HostIdentity:
    """This host's proof of life; the kernel ends it with the process, however that dies.

    Attributes:
        host_id: Never used by another host.

    """

    def __init__(self, host_id: str, lock: FifoLock) -> None:
        self.host_id = host_id
        self._lock = lock

    @classmethod
    def register(cls, home: Home) -> "HostIdentity":
        """Begin to live.

        Raises:
            HostlerError: unavailable, if its file cannot be made; unsafe-state, if its lock does not exclude others.

        """
        host_id = new_host_id(time.time_ns() // 1_000_000, secrets.token_bytes(RANDOM_BYTES))
        try:
            identity = cls(host_id, FifoLock.born(home.hosts, host_id))
        except OSError as error:
            raise HostlerError(
                Code.UNAVAILABLE,
                f"{home.hosts} cannot be written: {error.strerror}",
                "check the disk and its permissions",
            ) from error
        if not host_alive(home, host_id):  # what is asked of others must be true of oneself
            identity.close()
            what = f"{home.hosts} lies on a file system whose locks keep nobody out"
            raise HostlerError(Code.UNSAFE_STATE, what, "use a folder on a local disk as HOSTLER_HOME")
        return identity

    @property
    def fd(self) -> int:
        """The FIFO's descriptor: readable when somebody woke this host; -1 once closed, and in a forked child."""
        return self._lock.fd

    def drain(self) -> None:
        """Take the bytes of those who woke this host."""
        self._lock.drain()

    def still_there(self) -> bool:
        """Say whether others still see this host live; if not, it must not start anything."""
        return self._lock.still_there()

    def close(self) -> None:
        """End this host's life; idempotent."""
        if self._lock.still_there():
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._lock.place)  # noqa: PTH108 - a string already
        self._lock.close()


def host_alive(home: Home, host_id: str) -> bool:
    """Say whether that host lives; a stopped one does."""
    return bool(_HOST_ID.fullmatch(host_id)) and is_held(home.hosts / host_id)


def wake(home: Home, host_id: str) -> bool:
    """Wake that host.

    Returns:
        Whether it lives.

    """
    return bool(_HOST_ID.fullmatch(host_id)) and poke(home.hosts / host_id)


def bury(home: Home, host_id: str) -> None:
    """Remove the file of a host that is dead; what it claims is anybody's without it as well."""
    with contextlib.suppress(OSError):
        (home.hosts / host_id).unlink(missing_ok=True)


def bury_dead(home: Home) -> None:
    """Remove what hosts left that ended without a word."""
    for host_id in known_hosts(home):
        if not host_alive(home, host_id):
            bury(home, host_id)


def known_hosts(home: Home) -> list[str]:
    """Return the ids of all hosts that have a file, dead or alive."""
    try:
        names = os.listdir(home.hosts)  # noqa: PTH208 - names are what is wanted
    except FileNotFoundError:
        return []
    return sorted(name for name in names if not name.startswith(NEW) and _HOST_ID.fullmatch(name))
