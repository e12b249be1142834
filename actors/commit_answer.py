"""The answer to a commit that a scheduler hands over: here and now, where its own thread carries the commit out."""

import threading

from actors.actions import Address
from actors.messages import CommitRefused, Committed
from actors.shell import tell


class CommitAnswer:
    """Where the store answers a commit: to the thread that waits here, or else to the scheduler.

    Args:
        address: The scheduler's.

    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._thread: int | None = threading.get_ident()
        self._said: Committed | CommitRefused | None = None

    def tell(self, message: Committed | CommitRefused) -> None:
        """Take the answer."""
        if self._thread == threading.get_ident():
            self._said = message
        else:
            tell(self._address, message)

    def taken(self) -> Committed | CommitRefused | None:
        """Return the answer if it was given on this thread; none is awaited here any more."""
        self._thread = None
        return self._said
