"""What wakes the background service: a byte in its FIFO, and the death of another host of its home."""

import os
import select
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from hostres import descriptors
from hostres.beginning import begin
from hostres.errors import HostlerError
from hostres.locks import probe
from store.home import Home
from store.hosts import known_hosts
from store.service import ServiceIdentity


class ServiceWatch:
    """While entered, calls back whenever there may be something to do; nothing is looked at by the clock.

    The kernel hangs up the FIFO of a host that dies. A host that begins to live wakes the service, which then watches
    it too.
    """

    def __init__(self, home: Home, identity: ServiceIdentity, woken: Callable[[], None]) -> None:
        """Prepare the watch.

        Args:
            home: Whose hosts to watch.
            identity: The service.
            woken: Called on a thread of this watch; quick.

        """
        self._home = home
        self._identity = identity
        self._woken = woken
        self._hosts: dict[int, str] = {}
        self._reading = self._writing = -1
        self._thread = threading.Thread(target=self._watch, name="service-watch", daemon=True)

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        begin(self._thread)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._writing)
        self._thread.join()
        os.close(self._reading)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._reading, 0)
        poll.register(self._identity.fd, select.POLLIN)
        try:
            while True:
                self._follow_hosts(poll)
                self._woken()
                ready = {descriptor for descriptor, _ in poll.poll()}
                if self._reading in ready:
                    return
                self._identity.drain()
                for gone in ready & self._hosts.keys():
                    self._forget(poll, gone)
        finally:
            for descriptor in list(self._hosts):
                self._forget(poll, descriptor)

    def _follow_hosts(self, poll: "select.poll") -> None:
        """Watch every living host that is not watched yet."""
        watched = set(self._hosts.values())
        for host_id in known_hosts(self._home):
            if host_id in watched:
                continue
            try:
                descriptor = probe(self._home.hosts / host_id)
            except (OSError, HostlerError):
                continue  # no descriptor left, or no FIFO: what it left is found when something else wakes the service
            if descriptor is not None:
                self._hosts[descriptor] = host_id
                poll.register(descriptor, 0)

    def _forget(self, poll: "select.poll", descriptor: int) -> None:
        poll.unregister(descriptor)
        del self._hosts[descriptor]
        descriptors.close(descriptor)
