"""An inbox whose actor may be stood in for by the thread that has a message for it, while it is idle.

A switch to the actor's own thread costs more than most messages do. Nothing else changes: an actor takes one message
at a time, in the order of their arrival, whoever's thread it is.
"""

import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any


class Inbox:
    """The messages of one actor; its own thread takes them by `get`, one at a time."""

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        # held by the actor's thread until its first `get` and from each to the next, or by who stands in for it
        self._turn = threading.Lock()
        self._turn.acquire()
        self._mine = True

    def put(self, item: Any) -> None:
        """Put a message, and wake the actor's thread."""
        self._messages.append(item)
        self._bell.put(None)

    def get(self) -> Any:
        """Return the next message, once there is one; the one before it has been handled."""
        if self._mine:
            self._mine = False
            self._turn.release()
        while True:
            if self._messages:
                self._turn.acquire()
                if self._messages:
                    self._mine = True
                    return self._messages.popleft()
                self._turn.release()
            self._bell.get()

    def take(self, fits: Callable[[Any], bool], most: int) -> list[Any]:
        """Take the messages that come next and fit, for who handles one already.

        Args:
            fits: Whether a message does; the first one that does not ends it. Whoever sent it waits for no answer.
            most: How many at most.

        """
        taken: list[Any] = []
        while self._messages and len(taken) < most and fits(self._messages[0].message):
            taken.append(self._messages.popleft().message)
        return taken

    def empty(self) -> bool:
        """Say whether no message waits."""
        return not self._messages

    def stand_in(self) -> bool:
        """Take the actor's place for one message, if it is idle; `leave` gives it back.

        Returns:
            Whether it is. If not, the message must be put: others, those of this thread among them, come first.

        """
        if self._messages or not self._turn.acquire(blocking=False):
            return False
        if self._messages:
            self._turn.release()
            return False
        return True

    def leave(self) -> None:
        """Give the actor its place back."""
        self._turn.release()
