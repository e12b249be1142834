"""How a supervised process ended, and what ending its tree came to."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How a process ended.

    Attributes:
        code: Its exit code; None if a signal ended it, or if nobody has seen how it ended.
        signal: The signal that ended it; None with no code either: another part of this program, one that waits for
            any child, took the news of its end.
        asked_by: The reason given to `end`; None if nobody asked it to end.
        cpu_seconds: CPU time of it and of all below it that were waited for, by it or by their own parents. What
            outlives its parent, or is never waited for, is not in it: its account goes to whoever reaps it.
        peak_bytes: The largest resident memory of any one of the same processes, not their sum; None if it is not
            known. The kernel counts what the process had before it became its program, when it was a copy of this
            one; so what is not clearly more than this process ever had may be ours.

    """

    code: int | None
    signal: int | None
    asked_by: str | None
    cpu_seconds: float
    peak_bytes: int | None

    @property
    def unseen(self) -> bool:
        """Whether nobody has seen how it ended; `code` and `signal` are None."""
        return self.code is None and self.signal is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A process that could not be ended."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What ending a tree came to.

    Attributes:
        exit: How its first process ended; None if it could not be ended.
        left: What could not be ended.

    """

    exit: Exit | None
    left: tuple[Left, ...]


def unseen() -> Exit:
    """Return the end of a process that nobody has seen, because another part of this program took the news of it."""
    return Exit(code=None, signal=None, asked_by=None, cpu_seconds=0.0, peak_bytes=None)
