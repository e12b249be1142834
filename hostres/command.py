"""What is to be started: a program and all that it is given, checked before anything is spent on it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hostres import arguments
from hostres.errors import Code, HostlerError
from hostres.heartbeat import only_if_inherited
from hostres.holders import Identity
from hostres.programs import find_program
from hostres.trees import TOKEN

MAX_LEASES: Final = 16
"""Descriptors that a process may inherit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program as it is to be started, all of it checked.

    Attributes:
        words: The program as it was named, and its arguments.
        program: Its path.
        environment: All of it, with the token.
        cwd: Its working folder; None is this process's.
        leases: Descriptors that it inherits.
        files: What these are.
        token: By which its descendants are known.
        fed: What it reads, if that comes through a pipe.
        source: What it reads, if that is a file.

    """

    words: list[str]
    program: str
    environment: Mapping[str, str]
    cwd: Path | None
    leases: tuple[int, ...]
    files: frozenset[Identity]
    token: str
    fed: bytes | None
    source: Path | None


def checked_command(argv: Any, *, env: Any, cwd: Any, lease_fds: Sequence[int], stdin: Any) -> Command:
    """Return what is to be started; nothing is, so that nothing of it would be left.

    The arguments, and what may be wrong with them, are those of `Supervised.start`.
    """
    words, env, home, stdin = (
        arguments.words(argv),
        arguments.environment(env),
        arguments.folder(cwd),
        arguments.source(stdin),
    )
    leases = tuple(sorted(set(lease_fds)))
    if len(leases) > MAX_LEASES:
        raise HostlerError(
            Code.INVALID_DATA,
            f"{len(leases)} inherited descriptors for one process",
            f"start it under at most {MAX_LEASES} leases",
        )
    if not words or any("\0" in word for word in words):
        raise HostlerError(Code.INVALID_DATA, "a command is empty or holds a NUL", "name a program")
    for name, value in env.items():
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise HostlerError(
                Code.INVALID_DATA, f"{name!r} cannot be in an environment", "leave out =, and NUL in name and value"
            )
    if home is not None and not os.path.isdir(home):  # noqa: PTH112  no name is too long for it
        raise HostlerError(Code.NOT_FOUND, f"there is no folder {home}", "make it, or name another")
    token = os.urandom(8).hex()
    outer = env.get(TOKEN)
    return Command(
        words=words,
        program=find_program(words[0], environ=env, cwd=home),
        environment={**only_if_inherited(env, leases), TOKEN: f"{outer}:{token}" if outer else token},
        cwd=home,
        leases=leases,
        files=frozenset({_lease(fd) for fd in leases}),
        token=token,
        fed=stdin if isinstance(stdin, bytes) else None,
        source=stdin if isinstance(stdin, Path) else None,
    )


def _lease(fd: int) -> Identity:
    try:
        return identity_of(fd)
    except OSError:
        raise HostlerError(
            Code.OWNERSHIP_LOST, f"the descriptor {fd} of a lease is closed", "ask for a new lease, and keep it open"
        ) from None


def identity_of(fd: int) -> Identity:
    """Return what a descriptor has open.

    Raises:
        OSError: It is closed.

    """
    status = os.fstat(fd)
    return status.st_dev, status.st_ino
