"""Starts the services in order, one scheduler a run, and stops all in reverse.

A scheduler that breaks costs its run this host, nothing else: the run stands in the store and can be resumed. A
service that breaks costs the host: everything is handed back and the host gives up.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pykka

from actors.actions import RunLeft
from actors.authorization import Authorization
from actors.host_resources import HostResources
from actors.messages import (
    Adopt,
    ClaimRefused,
    ClaimRun,
    CreateRun,
    Died,
    Drain,
    LookForRequests,
    Report,
    RequestsFound,
    RunClaimed,
    RunLost,
)
from actors.run_store import RunStore
from actors.scheduler import Scheduler, Services
from actors.shell import Shell, tell
from actors.threads import WorkThreads
from actors.timer import Timer
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from store.clock import Clock
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RUN_RESTING
from store.run_store import RunStore as Store

log = logging.getLogger(__name__)

STOP_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the composition root opened for the actors."""

    home: Home
    identity: HostIdentity
    clock: Clock
    coordinator: Coordinator
    open_store: Callable[[], Store]
    threads: WorkThreads


@dataclass(slots=True)
class _Run:
    adopt: Adopt
    scheduler: pykka.ActorRef[Scheduler] | None = None
    left: RunLeft | None = None


class Supervisor(Shell):
    """The root of a host's actors."""

    def __init__(self, *, parts: Parts, gave_up: Callable[[HostlerError], None]) -> None:
        super().__init__(name="supervisor", parent=None)
        self._parts = parts
        self._gave_up = gave_up
        self._services: list[pykka.ActorRef[Any]] = []
        self._runs: dict[str, _Run] = {}
        self._draining: Drain | None = None

    def setup(self) -> None:
        """Start the services, each with the addresses of those before it."""
        parts = self._parts
        store = RunStore.start(open_store=parts.open_store, identity=parts.identity, parent=self.actor_ref)
        self._services.append(store)
        machine = HostResources.start(coordinator=parts.coordinator, parent=self.actor_ref)
        self._services.append(machine)
        authorization = Authorization.start(parent=self.actor_ref)
        self._services.append(authorization)
        timer = Timer.start(parent=self.actor_ref)
        self._services.append(timer)
        self._store = store
        self._shared = Services(
            store=store,
            machine=machine,
            authorization=authorization,
            timer=timer,
            threads=parts.threads,
            home=parts.home,
            clock=parts.clock,
        )

    def teardown(self) -> None:
        """Stop schedulers, then services in reverse order."""
        for run in self._runs.values():
            if run.scheduler is not None:
                _stop(run.scheduler)
        for service in reversed(self._services):
            _stop(service)

    def handle(self, message: Any) -> None:
        """Take one message."""
        match message:
            case CreateRun():
                tell(self._store, message)
            case Adopt():
                self._runs[message.run_id] = _Run(message)
                tell(self._store, ClaimRun(run_id=message.run_id, reply_to=self.actor_ref))
            case RunClaimed(claimed=claimed):
                self._start(claimed)
            case ClaimRefused():
                self._lost(message.run_id, message.error)
            case RunLeft():
                self._left(message)
            case RequestsFound():
                self._handed_back(message)
            case RunLost():
                self._lost(message.run_id, message.error)
            case Drain():
                self._draining = message
                for run in self._runs.values():
                    if run.scheduler is not None:
                        tell(run.scheduler, message)
            case Died():
                self._died(message)
            case _:
                super().handle(message)

    def _start(self, claimed: Any) -> None:
        run = self._runs[claimed.record.run_id]
        run.scheduler = Scheduler.start(claimed=claimed, adopt=run.adopt, services=self._shared, parent=self.actor_ref)
        if self._draining is not None:
            tell(run.scheduler, self._draining)

    def _left(self, message: RunLeft) -> None:
        run = self._runs[message.run_id]
        if run.scheduler is not None:
            run.scheduler.stop(block=False)
            run.scheduler = None
        if message.status in RUN_RESTING:  # an answer may have come in while it was being handed back
            run.left = message
            tell(self._store, LookForRequests(run_id=message.run_id, reply_to=self.actor_ref))
        else:
            self._report(message.run_id, message)

    def _handed_back(self, message: RequestsFound) -> None:
        run = self._runs.get(message.run_id)
        if run is None or run.left is None:
            return
        left, run.left = run.left, None
        if message.found and self._draining is None:
            tell(self._store, ClaimRun(run_id=message.run_id, reply_to=self.actor_ref))
        else:
            self._report(message.run_id, left)

    def _lost(self, run_id: str, error: HostlerError) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        if run.scheduler is not None:
            run.scheduler.stop(block=False)
        self._report(run_id, RunLost(run_id=run_id, error=error))

    def _report(self, run_id: str, report: Report) -> None:
        run = self._runs.pop(run_id)
        try:
            run.adopt.subscriber(report)
        except Exception:
            log.exception("a subscriber of %s failed", run_id)

    def _died(self, message: Died) -> None:
        log.error("%s broke", message.name, exc_info=message.error)
        for run_id, run in list(self._runs.items()):
            if run.scheduler is not None and run.scheduler.actor_urn == message.urn:
                self._lost(run_id, _broken(message))
                return
        if message.urn in {service.actor_urn for service in self._services}:
            error = message.error if isinstance(message.error, HostlerError) else _broken(message)
            for run_id in list(self._runs):
                self._lost(run_id, error)
            self._gave_up(error)


def _broken(message: Died) -> HostlerError:
    return HostlerError(
        Code.INTERNAL,
        f"{message.name} broke: {type(message.error).__name__}: {message.error}",
        "resume the run; if it breaks again, report it with the output of --debug",
    )


def _stop(actor: pykka.ActorRef[Any]) -> None:
    """Stop an actor and wait for it: the only place where one waits for another, and only on the way out."""
    try:
        actor.stop(block=True, timeout=STOP_S)
    except pykka.Timeout:
        log.exception("%s did not stop within %s s", actor, STOP_S)
