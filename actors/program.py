"""A program that an operation ran: what it wrote last, how it ended, and what is wrong when it did not end well."""

import os
import re
from collections.abc import Callable, Sequence
from signal import Signals
from typing import TYPE_CHECKING, Any, Final

from actors.failures import OperationFailed
from hostres.arguments import shown
from store.lazy_dataclass import dataclass
from store.policy import FailureCode

if TYPE_CHECKING:
    from hostres.exits import Ended


TAIL_BYTES: Final = 64 * 1024
MESSAGE_LINES: Final = 3
CRASHED_AT: Final = re.compile(r"Current thread 0x\w+ .*most recent call first")
CRASHES: Final = frozenset(
    {Signals.SIGILL, Signals.SIGTRAP, Signals.SIGABRT, Signals.SIGBUS, Signals.SIGFPE, Signals.SIGSEGV, Signals.SIGSYS}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A process that has ended.

    Attributes:
        code: Its exit code; 128 + signal where a signal ended it.
        stdout: The last 64 KiB of its standard output.
        stderr: Likewise of its standard error.

    """

    code: int
    stdout: bytes
    stderr: bytes


def program_words(argv: Any) -> list[str]:
    """Return a program and its arguments as the system is given them; numbers are written out.

    Raises:
        TypeError: It is no list, names no program, or a word of it is neither a text, a path nor a number.

    """
    if isinstance(argv, str | bytes) or not isinstance(argv, Sequence) or not argv:
        raise TypeError(f'{shown(argv)} is no program and its arguments, as ["echo", "hi"] is')
    for number, word in enumerate(argv):
        if isinstance(word, bool) or not isinstance(word, str | os.PathLike | int | float):
            raise TypeError(f"word {number} of the program is {shown(word)}, neither a text, a path nor a number")
    return [os.fsdecode(word) if isinstance(word, os.PathLike) else str(word) for word in argv]


def secret_values(secrets: Any) -> Sequence[str]:
    """Return the values that nothing of a program may show.

    Raises:
        TypeError: They are no list of texts; what they are is not said, as one of them may be right.

    """
    if isinstance(secrets, str) or not all(isinstance(value, str) for value in secrets):
        raise TypeError("what is secret is no list of texts")
    return tuple(secrets)


class Tail:
    """The last bytes of a stream.

    Attributes:
        data: At most 64 KiB.
        error: What the listener raised; it is not called again after that.

    Args:
        pass_on: The listener, called with each chunk.

    Raises:
        TypeError: It cannot be called.

    """

    def __init__(self, pass_on: Callable[[bytes], None] | None) -> None:
        if pass_on is not None and not callable(pass_on):
            raise TypeError(f"what is to hear the output is {pass_on!r:.60}, which cannot be called")
        self.data = b""
        self.error: BaseException | None = None
        self._pass_on = pass_on

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.data = (self.data + chunk)[-TAIL_BYTES:]
        if self._pass_on is not None:
            try:
                self._pass_on(chunk)
            except BaseException as error:  # noqa: BLE001 - a stranger's: what comes after it is kept all the same
                self.error, self._pass_on = error, None


def left_behind(name: str, ended: "Ended") -> OperationFailed:
    """Return the failure of a program some of whose processes could not be ended, or whose end nobody has seen."""
    if not ended.left:
        return OperationFailed(FailureCode.INTERNAL, f"how {name} ended is not known", "look what it did, then retry")
    named = ", ".join(f"{each.command} (pid {each.pid})" for each in ended.left)
    return OperationFailed(FailureCode.CONFLICT, f"{name} left what could not be ended: {named}", "end it, then retry")


def process_failed(
    name: str, code: int | None, signal: int | None, stderr: bytes, *, too_early: str = ""
) -> OperationFailed:
    """Return the failure of a program that did not end well.

    Args:
        name: What it is called.
        code: Its exit code; None if a signal ended it.
        signal: That signal.
        stderr: The end of what it said.
        too_early: Added to its exit code, where it should not have ended at all yet.

    """
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    said = " / ".join(lines[-MESSAGE_LINES:])[-1000:]
    if code is None and signal in CRASHES:
        said = _place_of_crash(lines) or said
        how = f"{name} crashed with {Signals(signal).name}"
        todo = "read its log with: hostler logs RUN NODE"
    elif code is None:
        how = f"{name} was killed from outside" + (f" by signal {signal}" if signal else "")
        todo = "look whether the machine ran out of memory, then run it again"
    else:
        how = f"{name} ended with exit code {code}{too_early}"
        todo = "read its log with: hostler logs RUN NODE"
    return OperationFailed(
        FailureCode.SUBPROCESS,
        f"{how}: {said}" if said else how,
        todo,
        retryable=code is None and signal not in CRASHES,
    )


def _place_of_crash(lines: list[str]) -> str:
    """Return where a Python was when it crashed, as its `faulthandler` said last: innermost calls first."""
    starts = [place for place, line in enumerate(lines) if CRASHED_AT.match(line)]
    return " / ".join(lines[starts[-1] + 1 :][:MESSAGE_LINES])[:1000] if starts else ""
