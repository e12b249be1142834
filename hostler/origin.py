"""In which process a host was opened: one that is forked off that can do nothing with it, nor open another.

SQLite keeps in memory what locks a process has on a file, and a fork copies that: whatever the other process was
writing would be locked here for ever, and what is opened here would not be locked at all. Locks between threads are
copied too, with nobody who would ever give them back.
"""

import os
import weakref
from typing import Final

from hostres.errors import Code, HostlerError

SPAWN: Final = 'start it anew, as by multiprocessing.get_context("spawn"), and open a Host there'


class Origin:
    """The process in which a host is opened."""

    def __init__(self) -> None:
        """Take note of this process.

        Raises:
            HostlerError: conflict: it was forked off one that had a host open.

        """
        if _Here.forked_amid:
            what = "this process was forked off one that has a host open, with whose store it can do nothing"
            raise HostlerError(Code.CONFLICT, what, SPAWN)
        self._pid = os.getpid()

    @property
    def is_elsewhere(self) -> bool:
        """Whether this process was forked off it."""
        return os.getpid() != self._pid

    def refuse_elsewhere(self) -> None:
        """Refuse what only the process can do that opened the host.

        Raises:
            HostlerError: conflict.

        """
        if self.is_elsewhere:
            what = "this host belongs to the process that this one was forked from"
            raise HostlerError(Code.CONFLICT, what, SPAWN)

    def opens(self) -> None:
        """Take note that its store is about to be opened: another thread may fork at any time."""
        _open.add(self)

    def has_closed(self) -> None:
        """Take note that it is closed again."""
        _open.discard(self)


_open: Final[weakref.WeakSet[Origin]] = weakref.WeakSet()
"""Of the hosts of this process whose store may be open."""


class _Here:
    """Whether this process was forked off one that had a host open."""

    forked_amid = False

    @classmethod
    def forked(cls) -> None:
        cls.forked_amid = cls.forked_amid or len(_open) > 0


os.register_at_fork(after_in_child=_Here.forked)
