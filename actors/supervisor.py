"""Starts the services in order, one scheduler a run, and stops all in reverse.

An actor that breaks is started anew, with all that depend on it, and runs go on from the store. A run whose scheduler
breaks more often than its budget bears is given up; the others go on. More deaths of what all runs need cost the host:
every run is let go as it stands in the store, and the host gives up.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pykka

from actors.actions import RunLeft, SetTimer, TimerName
from actors.authorization import Authorization
from actors.giving_up import give_back
from actors.host_messages import (
    Adopt,
    ChangeTimers,
    ClaimRefused,
    ClaimRun,
    CreateRefused,
    CreateRun,
    Died,
    GivenBack,
    LookForRequests,
    Ping,
    Report,
    RequestsFound,
    RunClaimed,
    RunCreated,
    RunLost,
    Vacated,
    Woken,
)
from actors.host_resources import HostResources
from actors.messages import Drain, Due, Vacate
from actors.run_store import RunStore
from actors.scheduler import Scheduler
from actors.services import Services
from actors.shell import Shell, tell
from actors.supervision import OF_A_RUN, RESTARTS, Budget, Deaths
from actors.threads import WorkThreads
from actors.timer import Timer
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError, describe, unavailable
from store.claiming import OwnedError
from store.clock import Clock
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import RunStatus
from store.rules import DEFAULT_RULES, Rule
from store.run_store import RunStore as Store
from store.transactions import Claimed, Fence

log = logging.getLogger(__name__)

STOP_S: Final = 10.0
AGAIN_S: Final = 0.05
"""So long after a run that another host has is asked for again."""
_CLAIM: Final = "claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the composition root opened for the actors."""

    home: Home
    identity: HostIdentity
    clock: Clock
    coordinator: Coordinator
    open_store: Callable[[], Store]
    threads: WorkThreads
    rules: tuple[Rule, ...] = DEFAULT_RULES


@dataclass(slots=True)
class _Run:
    """A run that this host works on, or is about to.

    Attributes:
        claim: Number of the latest claim that was asked for.
        left: Said by its scheduler; told on once no request has come in meanwhile.
        handed_back: What was said, if a request did come in: told on if another host is at it first.
        fence: The latest claim that it was given.
        deaths: Of its schedulers.
        given_up: Why it is not taken up again, once nothing of it runs any more.
        patient_until: Until when it is asked for again while another host has it, monotonic seconds.

    """

    adopt: Adopt
    patient_until: float
    claim: int = 0
    scheduler: pykka.ActorRef[Scheduler] | None = None
    left: RunLeft | None = None
    handed_back: RunLeft | None = None
    fence: Fence | None = None
    deaths: Deaths = field(default_factory=lambda: Deaths(OF_A_RUN))
    given_up: HostlerError | None = None


@dataclass(frozen=True, slots=True)
class _Child:
    """A service: its name, and how to start it once those before it run."""

    name: str
    start: Callable[[], pykka.ActorRef[Any]]


class Supervisor(Shell):
    """The root of a host's actors."""

    def __init__(self, *, parts: Parts, gave_up: Callable[[HostlerError], None], budget: Budget = RESTARTS) -> None:
        super().__init__(name="supervisor", parent=None)
        self._parts = parts
        self._gave_up = gave_up
        self._deaths = Deaths(budget)
        self._services: list[pykka.ActorRef[Any]] = []
        self._runs: dict[str, _Run] = {}
        self._vacating: dict[str, str] = {}
        self._leaving: list[pykka.ActorRef[Scheduler]] = []
        self._creating: dict[str, CreateRun] = {}
        self._restart_from: int | None = None
        self._draining: Drain | None = None

    def setup(self) -> None:
        """Start the services, each with the addresses of those before it."""
        self._start_services(0)

    def teardown(self) -> None:
        """Stop schedulers, then services in reverse order."""
        for run in self._runs.values():
            if run.scheduler is not None:
                _stop(run.scheduler)
        for scheduler in self._leaving:
            _stop(scheduler)
        for service in reversed(self._services):
            _stop(service)
        if self._broken:
            self._give_up(_broken("the supervisor of this host", self._fault))

    def handle(self, message: Any) -> None:
        """Take one message."""
        match message:
            case CreateRun():
                self._create(message)
            case RunCreated() | CreateRefused():
                self._created(message)
            case Adopt():
                self._adopt(message)
            case RunClaimed(claimed=claimed, number=number):
                self._start(claimed, number)
            case ClaimRefused():
                self._not_claimed(message)
            case Due(timer=TimerName(kind=kind, node=run_id)) if kind == _CLAIM:
                self._claim_again(run_id)
            case RunLeft():
                self._left(message)
            case RequestsFound():
                self._handed_back(message)
            case RunLost():
                self._lost(message.run_id, message.error)
            case Drain():
                self._drain(message)
            case Died():
                self._died(message)
            case Vacated():
                self._vacated(message)
            case GivenBack(run_id=run_id):
                self._given_back(run_id)
            case Woken() | Ping():
                tell(self._store, message)
            case _:
                super().handle(message)

    def _drain(self, message: Drain) -> None:
        self._draining = message
        for run in self._runs.values():
            if run.scheduler is not None:
                tell(run.scheduler, message)

    @property
    def _store(self) -> pykka.ActorRef[Any]:
        return self._services[1]

    def _children(self) -> tuple[_Child, ...]:
        parts, parent = self._parts, self.actor_ref
        return (
            _Child("timer", lambda: Timer.start(parent=parent)),
            _Child(
                "run-store",
                lambda: RunStore.start(
                    open_store=parts.open_store, identity=parts.identity, timer=self._services[0], parent=parent
                ),
            ),
            _Child("host-resources", lambda: HostResources.start(coordinator=parts.coordinator, parent=parent)),
            _Child("authorization", lambda: Authorization.start(rules=parts.rules, parent=parent)),
        )

    def _start_services(self, first: int) -> None:
        for child in self._children()[first:]:
            self._services.append(child.start())
        timer, store, machine, authorization = self._services
        self._shared = Services(
            store=store,
            machine=machine,
            authorization=authorization,
            timer=timer,
            threads=self._parts.threads,
            home=self._parts.home,
            machine_folder=Path(self._parts.coordinator.machine.folder),
            clock=self._parts.clock,
            niceness=self._parts.coordinator.niceness,
            rules=self._parts.rules,
        )

    def _create(self, message: CreateRun) -> None:
        self._creating[message.record.run_id] = message
        tell(self._store, replace(message, reply_to=self.actor_ref))

    def _created(self, message: RunCreated | CreateRefused) -> None:
        wanted = self._creating.pop(message.run_id, None)
        if wanted is not None:
            tell(wanted.reply_to, message)

    def _adopt(self, message: Adopt) -> None:
        if message.run_id in self._runs:
            error = HostlerError(
                Code.CONFLICT, f"this host works on {message.run_id} already", "use the `Run` that it gave"
            )
            _tell_subscriber(message, RunLost(run_id=message.run_id, error=error))
            return
        self._runs[message.run_id] = _Run(message, patient_until=time.monotonic() + message.patience_s)
        if self._restart_from is None:
            self._claim(message.run_id)

    def _claim(self, run_id: str, *, again: bool = False) -> None:
        run = self._runs[run_id]
        run.claim += 1
        tell(
            self._store,
            ClaimRun(
                run_id=run_id,
                reply_to=self.actor_ref,
                number=run.claim,
                again=again,
                entrusted=run.adopt.entrusted,
            ),
        )

    def _is_latest(self, run_id: str, number: int) -> bool:
        """Say whether an answer is to the latest claim; when services start anew, all are asked for again."""
        run = self._runs.get(run_id)
        return run is not None and run.claim == number and self._restart_from is None

    def _start(self, claimed: Claimed, number: int) -> None:
        run_id = claimed.record.run_id
        if not self._is_latest(run_id, number):
            return
        run = self._runs[run_id]
        run.handed_back, run.fence = None, claimed.fence
        run.scheduler = Scheduler.start(claimed=claimed, adopt=run.adopt, services=self._shared, parent=self.actor_ref)
        if self._draining is not None:
            tell(run.scheduler, self._draining)

    def _not_claimed(self, message: ClaimRefused) -> None:
        if not self._is_latest(message.run_id, message.number):
            return
        run_id, run = message.run_id, self._runs[message.run_id]
        taken = isinstance(message.error, OwnedError)
        if taken and run.handed_back is not None:  # whoever has it now answers what came in
            self._report(run_id, run.handed_back)
        elif taken and self._draining is None and time.monotonic() < run.patient_until:
            again = SetTimer(timer=TimerName(_CLAIM, run_id), seconds=AGAIN_S)
            tell(self._services[0], ChangeTimers(owner=run_id, changes=(again,), reply_to=self.actor_ref))
        else:
            self._lost(run_id, message.error)

    def _claim_again(self, run_id: str) -> None:
        run = self._runs.get(run_id)
        if run is not None and run.scheduler is None and run.left is None and self._restart_from is None:
            self._claim(run_id)

    def _left(self, message: RunLeft) -> None:
        run = self._runs.get(message.run_id)
        if run is None:
            return
        if run.scheduler is not None:
            self._let_go(run.scheduler)
            run.scheduler = None
        if message.status is not RunStatus.COMPLETED:  # an answer, or a retry, may have come in meanwhile
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
            run.handed_back = left
            self._claim(message.run_id)
        else:
            self._report(message.run_id, left)

    def _lost(self, run_id: str, error: HostlerError) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        if run.scheduler is not None:
            self._let_go(run.scheduler)
        self._report(run_id, RunLost(run_id=run_id, error=error))

    def _let_go(self, scheduler: pykka.ActorRef[Scheduler]) -> None:
        """Let a scheduler end by itself; whoever stops the host waits for it."""
        scheduler.stop(block=False)
        self._leaving = [each for each in (*self._leaving, scheduler) if each.is_alive()]

    def _report(self, run_id: str, report: Report) -> None:
        _tell_subscriber(self._runs.pop(run_id).adopt, report)

    def _died(self, message: Died) -> None:
        """Start anew what broke with all that depends on it, or give up (rest-for-one: Oban's `nursery.ex`)."""
        services = [service.actor_urn for service in self._services]
        run_id = next((run_id for run_id, run in self._runs.items() if _is(run, message.urn)), None)
        if message.urn not in services and run_id is None:
            return  # an earlier incarnation
        log.error("%s broke", message.name, exc_info=message.error)
        if run_id is not None:
            run = self._runs[run_id]
            if not run.deaths.bear(time.monotonic()):
                run.given_up = _broken(message.name, message.error)
            self._await_end(run_id)
        elif not self._deaths.bear(time.monotonic()):
            self._give_up(_broken(message.name, message.error))
        else:
            index = services.index(message.urn)
            self._restart_from = index if self._restart_from is None else min(index, self._restart_from)
            for each, run in self._runs.items():
                if run.scheduler is not None:
                    tell(run.scheduler, Vacate())
                    self._await_end(each)
            self._restart_services()

    def _await_end(self, run_id: str) -> None:
        """Wait for the work of a scheduler that goes, before its run is taken up again."""
        run = self._runs[run_id]
        if run.scheduler is not None:
            self._vacating[run.scheduler.actor_urn] = run_id
            run.scheduler = None

    def _vacated(self, message: Vacated) -> None:
        run_id = self._vacating.pop(message.urn, None)
        if run_id is None:
            return
        if message.hung:
            named = ", ".join(message.hung)
            what = f"the scheduler of {run_id} broke, and what it started does not end: {named}"
            self._lost(run_id, HostlerError(Code.INTERNAL, what, "end this program, then resume the run"))
        elif self._restart_from is None:
            self._go_on(run_id)
        self._restart_services()

    def _go_on(self, run_id: str) -> None:
        """Take a run up again of which nothing runs any more, or give it up."""
        run = self._runs[run_id]
        if run.given_up is None or run.fence is None:
            self._claim(run_id, again=True)
        else:
            tell(self._store, give_back(run.fence, self._parts.clock.now(), run.given_up, self.actor_ref))

    def _given_back(self, run_id: str) -> None:
        run = self._runs.get(run_id)
        if run is not None and run.given_up is not None:
            self._lost(run_id, run.given_up)

    def _restart_services(self) -> None:
        """Start the services that broke, and those after them, once no scheduler uses the old ones."""
        first = self._restart_from
        if first is None or self._vacating:
            return
        self._restart_from = None
        for service in reversed(self._services[first:]):
            _stop(service)
        del self._services[first:]
        self._start_services(first)
        for creating in self._creating.values():
            tell(self._store, replace(creating, reply_to=self.actor_ref, again=True))
        for run_id, run in self._runs.items():
            if run.left is not None:
                tell(self._store, LookForRequests(run_id=run_id, reply_to=self.actor_ref))
            elif run.scheduler is None:
                self._go_on(run_id)

    def _give_up(self, error: HostlerError) -> None:
        for creating in self._creating.values():
            tell(creating.reply_to, CreateRefused(run_id=creating.record.run_id, error=error))
        self._creating.clear()
        for run_id in list(self._runs):
            self._lost(run_id, error)
        self._gave_up(error)


def _is(run: _Run, urn: str) -> bool:
    return run.scheduler is not None and run.scheduler.actor_urn == urn


def _tell_subscriber(adopt: Adopt, report: Report) -> None:
    try:
        adopt.subscriber(report)
    except Exception:
        log.exception("a subscriber of %s failed", adopt.run_id)


def _broken(name: str, error: BaseException | None) -> HostlerError:
    if isinstance(error, OSError):
        return unavailable(f"{name} broke", error)
    return HostlerError(
        Code.INTERNAL,
        f"{name} broke: {describe(error) if error is not None else 'nobody knows why'}",
        "resume the run; if it breaks again, report it with the output of --debug",
    )


def _stop(actor: pykka.ActorRef[Any]) -> None:
    """Stop an actor and wait for it: the only place where one waits for another, and only on the way out."""
    try:
        actor.stop(block=True, timeout=STOP_S)
    except pykka.Timeout:
        log.exception("%s did not stop within %s s", actor, STOP_S)
