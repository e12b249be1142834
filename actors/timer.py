"""The only actor that knows the time: it sends `Due`. Durations are monotonic; nothing here reads a wall clock.

What it is told of timers it does at once, on the thread of whoever tells it: each node sets and forgets some, and a
switch to the actor's own thread and back would cost ten times as much.
"""

import heapq
import threading
import time
from typing import Any

import pykka

from actors.actions import Address, CancelTimer, SetTimer, TimerName
from actors.host_messages import ChangeTimers, StopTimers
from actors.messages import Due
from actors.shell import Shell, tell
from hostres.beginning import begin

Key = tuple[str, TimerName]


class Timer(Shell):
    """Keeps timers by owner and name; setting one again replaces it."""

    def __init__(self, *, name: str = "timer", parent: Address | None = None) -> None:
        super().__init__(name=name, parent=parent)
        self._actor_ref = _Ref(self)
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, Key]] = []
        self._set: dict[Key, tuple[int, Address]] = {}
        self._count = 0
        self._closed = False

    def setup(self) -> None:
        """Start the thread that waits."""
        begin(threading.Thread(target=self._wait, name="timer-wait", daemon=True))

    def teardown(self) -> None:
        """Let that thread go."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def handle(self, message: Any) -> None:
        """Set or forget timers."""
        with self._changed:
            match message:
                case ChangeTimers():
                    for change in message.changes:
                        self._change(message, change)
                case StopTimers():
                    for key in [key for key in self._set if key[0] == message.owner]:
                        del self._set[key]
                case _:
                    super().handle(message)

    def _change(self, message: ChangeTimers, change: SetTimer | CancelTimer) -> None:
        key = message.owner, change.timer
        if isinstance(change, CancelTimer):
            self._set.pop(key, None)
            return
        self._count += 1
        self._set[key] = self._count, message.reply_to
        heapq.heappush(self._heap, (time.monotonic() + change.seconds, self._count, key))
        if self._heap[0][1] == self._count:  # else its thread waits for an earlier one anyway
            self._changed.notify()

    def _wait(self) -> None:
        with self._changed:
            while not self._closed:
                self._drop_forgotten()
                if not self._heap:
                    self._changed.wait()
                    continue
                due, _, key = self._heap[0]
                left = due - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                heapq.heappop(self._heap)
                _, reply_to = self._set.pop(key)
                tell(reply_to, Due(timer=key[1]))

    def _drop_forgotten(self) -> None:
        while self._heap and self._set.get(self._heap[0][2], (0,))[0] != self._heap[0][1]:
            heapq.heappop(self._heap)


class _Ref(pykka.ActorRef[Timer]):
    """Where the timer is told."""

    def tell(self, message: Any) -> None:
        actor = self._actor_weakref() if isinstance(message, ChangeTimers | StopTimers) else None
        if actor is None or not self.is_alive():
            super().tell(message)
        else:
            actor.on_receive(message)
