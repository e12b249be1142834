"""Descriptors that a forked child must not keep.

A copy of a ticket's descriptor holds capacity. A program started through exec gets one only when it is
passed on purpose; a process that forks without exec would get all of them by accident, so they are closed
there at once.

Fork waits for `guard`, which is held from opening a descriptor until it is known here: no copy slips through.
"""

import contextlib
import os
import threading
import weakref
from typing import Final, Protocol

guard: Final = threading.RLock()
"""Hold it while opening or closing a descriptor that is `keep`t here; never across anything slow."""


class Forgetful(Protocol):
    """Holds something that is not for a forked child."""

    def forget(self) -> None:
        """Drop it; called in the child, where the descriptors are closed already."""


_kept: dict[int, "weakref.ref[Forgetful] | None"] = {}
_forgetful: weakref.WeakSet[Forgetful] = weakref.WeakSet()


def keep(fd: int) -> int:
    """Close *fd* in forked children from now on; call it with `guard` held."""
    _kept[fd] = None
    return fd


def close(fd: int) -> None:
    """Close a kept descriptor."""
    with guard:
        _kept.pop(fd, None)
        os.close(fd)


def lost(fd: int) -> None:
    """Take note that somebody else has closed a kept descriptor; its number may be another's by now."""
    with guard:
        _kept.pop(fd, None)


def open_kept(path: str, flags: int, holder: Forgetful | None = None) -> int:
    """Open *path* (close-on-exec, links not followed) and keep the descriptor.

    Args:
        path: What to open.
        flags: As for `os.open`.
        holder: Whose the descriptor is, who is to forget it in a forked child.

    """
    with guard:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
        _kept[fd] = None if holder is None else weakref.ref(holder)
        return fd


def forget_after_fork(holder: Forgetful) -> None:
    """Call `holder.forget()` in forked children, for as long as *holder* lives."""
    with guard:
        _forgetful.add(holder)


def _in_child() -> None:
    guard.release()
    holders: list[Forgetful | None] = [*_forgetful]
    for fd, kept_for in _kept.items():
        with contextlib.suppress(OSError):
            os.close(fd)
        if kept_for is not None:
            holders.append(kept_for())
    _kept.clear()
    for holder in holders:
        if holder is not None:
            holder.forget()


os.register_at_fork(before=guard.acquire, after_in_parent=guard.release, after_in_child=_in_child)
