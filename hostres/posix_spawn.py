"""Starting a program through the C library's `posix_spawn`, all of it.

Python's own covers neither a working folder nor descriptors that must be closed. What this adds over `subprocess` is
that blocked and ignored signals are reset in the child, which takes no code of ours between fork and exec.
"""

import ctypes
import fcntl
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_SETSIGDEF: Final = 0x04
_SETSIGMASK: Final = 0x08
_SETSID: Final = 0x80
_WORDS: Final = 128
"""Room for the C library's structures, in 64-bit words: twice to three times what any has."""


@functools.cache
def library() -> Any | None:
    """Return the C library, None if it lacks one of the functions."""
    try:
        found = ctypes.CDLL(None)
        for name in ("posix_spawn", "posix_spawn_file_actions_addchdir_np", "posix_spawnattr_setsigmask"):
            getattr(found, name)
    except (OSError, AttributeError):
        return None
    return found


def posix_spawn(
    program: str,
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    cwd: Path | None,
    streams: tuple[int, int, int],
    keep: Sequence[int],
) -> int:
    """Start a program in a session of its own, with no signal blocked or ignored.

    Args:
        program: Its path; a relative one starts at *cwd*.
        words: Its arguments, its own name first.
        environment: Its whole environment.
        cwd: Its working folder; this process's by default.
        streams: Descriptors of ours that become its 0, 1 and 2; each at least 3.
        keep: Descriptors of ours, each at least 3, that it inherits under their numbers; no others.

    Returns:
        Its number.

    Raises:
        OSError: It cannot be started.

    """
    libc = library()
    assert libc is not None
    actions, attributes = _Room(), _Room()
    _check(libc.posix_spawn_file_actions_init(actions))
    try:
        _check(libc.posix_spawnattr_init(attributes))
        try:
            _add_actions(libc, actions, cwd, streams, frozenset(keep))
            _set_attributes(libc, attributes)
            pid = ctypes.c_int()
            status = libc.posix_spawn(
                ctypes.byref(pid),
                os.fsencode(program),
                actions,
                attributes,
                _strings([os.fsencode(word) for word in words]),
                _strings([os.fsencode(f"{name}={value}") for name, value in environment.items()]),
            )
            _check(status, program)
            return pid.value
        finally:
            libc.posix_spawnattr_destroy(attributes)
    finally:
        libc.posix_spawn_file_actions_destroy(actions)


_Room: Final = ctypes.c_uint64 * _WORDS


def _add_actions(
    libc: Any, actions: Any, cwd: Path | None, streams: tuple[int, int, int], keep: frozenset[int]
) -> None:
    for number, fd in enumerate(streams):
        _check(libc.posix_spawn_file_actions_adddup2(actions, fd, number))
    for fd in keep:  # onto itself: it stays open, in the child alone
        _check(libc.posix_spawn_file_actions_adddup2(actions, fd, fd))
    for fd in _inheritable() - keep:
        _check(libc.posix_spawn_file_actions_addclose(actions, fd))
    if cwd is not None:
        _check(libc.posix_spawn_file_actions_addchdir_np(actions, os.fsencode(cwd)))


def _set_attributes(libc: Any, attributes: Any) -> None:
    none, every = _Room(), _Room()
    every[0] = (1 << 64) - 1  # a bit for each, also for the C library's own two, which it would else leave ignored
    _check(libc.posix_spawnattr_setsigmask(attributes, none))
    _check(libc.posix_spawnattr_setsigdefault(attributes, every))
    _check(libc.posix_spawnattr_setflags(attributes, ctypes.c_short(_SETSIGDEF | _SETSIGMASK | _SETSID)))


def _inheritable() -> set[int]:
    """Return the descriptors above 2 that a child would get by accident."""
    found = set()
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        fd = int(name)
        try:
            if fd > 2 and not fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
                found.add(fd)
        except OSError:
            continue  # the one that listed them
    return found


def _strings(values: Sequence[bytes]) -> Any:
    return (ctypes.c_char_p * (len(values) + 1))(*values, None)


def _check(status: int, path: str | None = None) -> None:
    if status:
        raise OSError(status, os.strerror(status), path)
