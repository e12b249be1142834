"""Descriptors that a forked child must not keep.

A copy of a ticket's descriptor holds capacity. A program started through exec gets one only when it is
passed on purpose; a process that forks without exec would get all of them by accident, so they are closed
there at once.

Fork waits for `guard`, which is held from opening a descriptor until it is known here: no copy slips through.

A copy of our end of a pipe or a socket keeps the program at the other end from seeing that we have closed it, or have
died; what is hidden here leads nowhere in a forked child. A copy of the program's own end would keep us from seeing
that it has ended: so fork waits for `starting`, too, which is held for as long as such an end is open here.
"""

import contextlib
import os
import threading
import weakref
from typing import Final, Protocol

guard: Final = threading.RLock()
"""Hold it while opening or closing a descriptor that is `keep`t here; never across anything slow."""

starting: Final = threading.RLock()
"""Hold it while a process is started, from opening its ends of pipes until they are closed here; before `guard`."""


class End(Protocol):
    """A file or socket."""

    def fileno(self) -> int:
        """Return its descriptor; less than 0, or ValueError, once it is closed."""

    def close(self) -> None:
        """Close it."""


class Forgetful(Protocol):
    """Holds something that is not for a forked child."""

    def forget(self) -> None:
        """Drop it; called in the child, where the descriptors are closed already."""


_kept: dict[int, "weakref.ref[Forgetful] | None"] = {}
_forgetful: weakref.WeakSet[Forgetful] = weakref.WeakSet()
_hidden: weakref.WeakSet[End] = weakref.WeakSet()


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


def hide(end: End) -> None:
    """Have forked children find nothing behind *end* from now on; open it with `guard` or `starting` held."""
    _hidden.add(end)  # not with `guard` held: a signal handler that forks may hold that and wait for `starting`


def hide_all(*ends: End | None) -> None:
    """Hide what there is of the ends to a program; see `hide`."""
    for end in ends:
        if end is not None:
            hide(end)


def forget_after_fork(holder: Forgetful) -> None:
    """Call `holder.forget()` in forked children, for as long as *holder* lives."""
    with guard:
        _forgetful.add(holder)


def _before() -> None:
    starting.acquire()
    guard.acquire()


def _in_parent() -> None:
    guard.release()
    starting.release()


def _in_child() -> None:
    _in_parent()
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
    _cut_off([*_hidden])  # last, as it takes a descriptor of its own


def _cut_off(ends: list[End]) -> None:
    """Put nothing behind descriptors whose numbers are still their owners' to close."""
    if not ends:
        return
    try:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    except OSError:  # no descriptor is left, or there is no such file: whoever uses one of them here is told that
        for end in ends:
            with contextlib.suppress(OSError, ValueError):
                end.close()
        return
    for end in ends:
        with contextlib.suppress(OSError, ValueError):  # ValueError: it is closed
            fd = end.fileno()
            if fd >= 0:
                os.dup2(nothing, fd, inheritable=False)
    os.close(nothing)


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
