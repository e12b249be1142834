"""What can go wrong, in words a person can act on.

Every refusal that reaches a user is a `HostlerError`: a stable code, the thing at fault, and what to do.
"""

import errno
import os
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Code(StrEnum):
    """The stable error codes; scripts may rely on them."""

    USAGE = "usage"
    INVALID_CLAIMS = "invalid-claims"
    INVALID_DATA = "invalid-data"
    INVALID_PROFILE = "invalid-profile"
    NOT_FOUND = "not-found"
    CONFLICT = "conflict"
    UNAVAILABLE = "unavailable"
    UNSAFE_STATE = "unsafe-state"
    NEWER_SCHEMA = "newer-schema"
    PROFILE_MISMATCH = "profile-mismatch"
    UNSUPPORTED_PLATFORM = "unsupported-platform"
    WAIT_TIMEOUT = "wait-timeout"
    WAIT_ABORTED = "wait-aborted"
    OWNERSHIP_LOST = "ownership-lost"
    INTERNAL = "internal"
    RECEIPT_UNKNOWN = "receipt-unknown"
    RECEIPT_COLLISION = "receipt-collision"
    RECEIPT_CONSUMED = "receipt-consumed"
    RECEIPT_EXPIRED = "receipt-expired"
    RECEIPT_REJECTED = "receipt-rejected"
    RECEIPT_WRONG_APPROVER = "receipt-wrong-approver"
    RECEIPT_NOT_HUMAN = "receipt-not-human"
    RECEIPT_MISMATCH = "receipt-mismatch"


EXIT_CODES: Final[Mapping[Code, int]] = MappingProxyType(
    {
        Code.USAGE: 2,
        Code.INVALID_CLAIMS: 2,
        Code.INVALID_DATA: 2,
        Code.INVALID_PROFILE: 2,
        Code.NOT_FOUND: 4,
        Code.CONFLICT: 5,
        Code.UNAVAILABLE: 69,
        Code.UNSAFE_STATE: 73,
        Code.NEWER_SCHEMA: 73,
        Code.PROFILE_MISMATCH: 73,
        Code.UNSUPPORTED_PLATFORM: 73,
        Code.WAIT_TIMEOUT: 75,
        Code.WAIT_ABORTED: 130,
        Code.OWNERSHIP_LOST: 70,
        Code.INTERNAL: 70,
        Code.RECEIPT_UNKNOWN: 4,
        Code.RECEIPT_COLLISION: 5,
        Code.RECEIPT_CONSUMED: 5,
        Code.RECEIPT_EXPIRED: 5,
        Code.RECEIPT_REJECTED: 5,
        Code.RECEIPT_WRONG_APPROVER: 5,
        Code.RECEIPT_NOT_HUMAN: 5,
        Code.RECEIPT_MISMATCH: 5,
    }
)
"""The exit code of a command that ends with an error of that code."""


class HostlerError(Exception):
    """A refusal with a stable code.

    Attributes:
        code: The stable code.
        what: The thing at fault and what is wrong with it, one line.
        todo: What the reader can do about it, one line.

    """

    def __init__(self, code: Code, what: str, todo: str) -> None:
        super().__init__(code, what, todo)
        self.code = code
        self.what = what
        self.todo = todo

    def __reduce__(self) -> tuple[type["HostlerError"], tuple[Code, str, str]]:
        """Come back whole from another process."""
        return type(self), (self.code, self.what, self.todo)

    def __str__(self) -> str:
        return f"error[{self.code.value}]: {self.what}; {self.todo}"


LONGEST: Final = 4000
"""Characters of a line that tells of an error; what it quotes is cut, not what to do."""


def told(code: Code, what: str, todo: str) -> str:
    """Return an error in one line that can do nothing to a terminal: `error[CODE]: what; what to do`.

    Args:
        code: The stable code.
        what: The thing at fault and what is wrong with it.
        todo: What the reader can do about it.

    """
    line = what if len(what) <= LONGEST else f"{what[:LONGEST]}…"
    text = str(HostlerError(code, " ".join(line.split()), " ".join(todo.split())))
    return "".join(character if character.isprintable() else " " for character in text)


MENDS: Final[Mapping[int, str]] = MappingProxyType(
    {
        errno.ENOSPC: "free some space, then try again",
        errno.EDQUOT: "free some space, then try again",
        errno.EFBIG: "raise the limit of the size of files (ulimit -f), then try again",
        errno.EMFILE: "raise the limit of open files (ulimit -n), or run fewer things at once",
        errno.EAGAIN: "raise the limit of processes and threads (ulimit -u, or TasksMax), or run fewer things at once",
        errno.ENFILE: "the whole system is out of open files; end something, then try again",
        errno.EROFS: "make the file system writable",
        errno.EACCES: "check the permissions",
        errno.EPERM: "check the permissions",
        errno.EISDIR: "name a file",
        errno.E2BIG: "put long words into a file, and name that",
        errno.EADDRINUSE: "name another port, or end what listens there",
    }
)
"""What to do about the system's refusals."""


def unavailable(what: str, error: OSError) -> HostlerError:
    """Return the error of something that the system refused.

    Args:
        what: What could not be done, as the start of a sentence.
        error: The system's answer.

    """
    reason = (error.strerror or str(error)).lower()
    place = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if place and place not in what:
        reason += f" ({place if place.isprintable() else repr(place)})"
    todo = MENDS.get(error.errno or 0, "check the disk and its permissions, then try again")
    return HostlerError(Code.UNAVAILABLE, f"{what}: {reason}", todo)


def describe(error: BaseException) -> str:
    """Return the kind of an exception and what it says, in one line, even if it cannot say it."""
    kind = type(error).__name__
    try:
        said = f"{error!s}"
    except BaseException:  # noqa: BLE001 - an exception of somebody else's making may fail at anything
        said = "(it cannot be printed)"
    return f"{kind}: {said}"[:2000] if said else kind
