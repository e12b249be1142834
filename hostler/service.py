"""The background service: it goes on with what was submitted and with what dead hosts left, until it is stopped.

One thread waits on a queue for all that can happen; nothing is looked at by the clock but, if a supervisor wants signs
of life, whether the actors answer. A new configuration is a new host: the old one ends what it has.
"""

import time
from collections import Counter
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Final

from actors.actions import RunChanged, RunLeft
from actors.host_messages import Report, RunLost
from hostler.config import Config
from hostler.host import Host
from hostler.hosted_run import Run
from hostler.interrupts import Continued, Interrupted, Reloaded
from hostler.notify import Notifier
from hostler.service_log import ServiceLog
from hostres.errors import Code, HostlerError
from store.home import Home
from store.lazy_dataclass import dataclass
from store.lifecycle import RUN_FINAL, RUN_RESTING
from store.reader import Reader
from store.service import ToDo

HURRIED_S: Final = 1.0
RETRY_S: Final = (1.0, 5.0, 30.0)
"""After what could not be had (a full disk, a busy store) the service looks again, at last every half minute."""
ANSWERS_WITHIN_S: Final = 5.0
KNOWS_WITHIN_S: Final = 1.0
"""A run store that is busy for longer with its disk finds out by itself, before its next write."""


@dataclass(frozen=True, slots=True)
class Woken:
    """There may be something to do."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A run of this service has changed."""

    run_id: str
    report: Report


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A host of this service cannot go on."""


class Service:
    """Works on the runs of a home until it is told to stop.

    Args:
        home: The state folder.
        load: Reads the configuration.
        inbox: Where `Woken`, `Interrupted`, `Reloaded` and `Continued` arrive.
        log: Where it says what it does.
        notifier: Whom it tells how it is.
        jobs: How many nodes of a run may be active; None is the machine's cpu capacity.

    """

    def __init__(
        self,
        *,
        home: Home,
        load: Callable[[], Config],
        inbox: "SimpleQueue[Any]",
        log: ServiceLog,
        notifier: Notifier,
        jobs: int | None = None,
    ) -> None:
        self._home = home
        self._load = load
        self._inbox = inbox
        self._log = log
        self._notifier = notifier
        self._jobs = jobs
        self._config = load()
        self._hosts = [self._open(self._config)]
        self._runs: dict[str, tuple[Host, str]] = {}
        self._answering: set[str] = set()
        self._refused: dict[str, ToDo] = {}
        self._looks_again: float | None = None
        self._failed_looks = 0
        self._stopping = False
        self._worn = False
        self._gone: HostlerError | None = None

    def run(self) -> HostlerError | None:
        """Work until told to stop.

        Returns:
            Why it could not go on; None if it was told to stop.

        """
        self._log.say("started", home=str(self._home.root), jobs=self._hosts[0].jobs)
        self._notifier.ready()
        try:
            self._look()
            while not (self._stopping and not self._runs):
                self._say_status()
                message = self._next()
                if message is not None:
                    self._handle(message)
                broken = next((host.gave_up for host in self._hosts if host.gave_up is not None), self._gone)
                if broken is not None:
                    self._log.warn("gave-up", code=broken.code.value, message=broken.what)
                    return broken
            return None
        finally:
            self._notifier.stopping()
            for host in self._hosts:
                host.close()
            self._log.say("stopped")

    def _open(self, config: Config) -> Host:
        return Host(
            config=config,
            jobs=self._jobs,
            release_at_rest=True,
            service=True,
            gave_up=lambda: self._inbox.put(GaveUp()),
        )

    def _next(self) -> Any:
        """Return the next message, or None when it is time for a sign of life or for another look."""
        waits = [] if self._looks_again is None else [max(0.0, self._looks_again - time.monotonic())]
        if self._notifier.watchdog_s is not None:
            waits.append(self._notifier.watchdog_s / 3)
        try:
            message = self._inbox.get(timeout=min(waits, default=None))
        except Empty:
            message = None
        if self._notifier.watchdog_s is not None and self._hosts[-1].responds(within_s=ANSWERS_WITHIN_S):
            self._notifier.alive()
        if self._looks_again is not None and time.monotonic() >= self._looks_again:
            self._looks_again = None
            self._look()
        return message

    def _handle(self, message: Any) -> None:
        match message:
            case Woken():
                self._look()
            case Heard(run_id=run_id, report=report):
                self._hear(run_id, report)
            case Interrupted(times=times):
                self._stop(times)
            case Reloaded():
                self._reload()
            case Continued():
                for host in self._hosts:
                    host.look()
                self._look()
            case _:
                pass

    def _look(self) -> None:
        """Take up what is to be done and can be."""
        if self._stopping:
            return
        self._gone = self._hosts[-1].lost_files(within_s=KNOWS_WITHIN_S)
        if self._gone is not None:  # what is asked of it stands in other files than those that it has open
            return
        try:
            if self._worn:
                self._renew(self._config)
            with Reader.open(self._home) as reader:
                found = reader.to_do()
            refused = {one.run_id for one in found if not self._take_up(one)}
        except HostlerError as error:
            self._look_later(error)
            return
        self._refused = {run_id: one for run_id, one in self._refused.items() if run_id in refused}
        self._failed_looks = 0

    def _take_up(self, one: ToDo) -> bool:
        """Go on with a run; False if that was refused, and would be again."""
        if one.run_id in self._runs:
            return True
        if self._refused.get(one.run_id) == one:
            return False
        host = self._hosts[-1]
        try:
            run = host.resume(one.run_id)
        except HostlerError as error:
            if error.code is Code.UNAVAILABLE:
                raise
            self._refused[one.run_id] = one
            self._log.warn("run-left-alone", run_id=one.run_id, code=error.code.value, message=error.what)
            if one.asked:
                self._answer(one, host)
            return False
        self._log.say("run-taken-up", run_id=one.run_id, **({"dead_host": one.host_id} if one.host_id else {}))
        self._follow(run, host)
        return True

    def _answer(self, one: ToDo, host: Host) -> None:
        """Take up what people want of a run that cannot be gone on with here: nobody else may come for a long time."""
        self._answering.add(one.run_id)
        self._log.say("requests-taken-up", run_id=one.run_id, requests=one.asked)
        self._follow(host.answer(one.run_id), host)

    def _follow(self, run: Run, host: Host) -> None:
        run_id = run.run_id
        self._runs[run_id] = host, ""
        run.subscribe(lambda report: self._inbox.put(Heard(run_id, report)))

    def _look_later(self, error: HostlerError) -> None:
        """Look again after a while; whatever else fails until then has the same cause, and puts it off no further."""
        if self._looks_again is None:
            self._looks_again = time.monotonic() + RETRY_S[min(self._failed_looks, len(RETRY_S) - 1)]
            self._failed_looks += 1
        left_s = round(max(0.0, self._looks_again - time.monotonic()), 1)
        self._log.warn("looks-again-later", code=error.code.value, message=error.what, seconds=left_s)

    def _hear(self, run_id: str, report: Report) -> None:
        if run_id not in self._runs:
            return
        host, status = self._runs[run_id]
        match report:
            case RunChanged(status=now) if now.value != status:
                self._runs[run_id] = host, now.value
                self._log.say("run-status", run_id=run_id, status=now.value)
            case RunLeft(status=now):
                self._let_go(run_id, host)
                kind = "run-ended" if now in RUN_FINAL else "run-rests" if now in RUN_RESTING else "run-handed-back"
                self._log.say(kind, run_id=run_id, status=now.value)
                if run_id in self._answering:
                    self._answering.discard(run_id)
                    self._look()  # what was lacking may not be needed any more
            case RunLost(error=error):
                self._answering.discard(run_id)
                self._let_go(run_id, host, lost=True)
                self._log.warn("run-lost", run_id=run_id, code=error.code.value, message=error.what)
                if error.code is Code.UNAVAILABLE and host.gave_up is None:
                    self._worn = self._worn or host is self._hosts[-1]
                    self._look_later(error)
                else:
                    self._leave_alone(run_id)
            case _:
                pass

    def _leave_alone(self, run_id: str) -> None:
        """Do not take a run up again that was given up, until something has happened to it."""
        try:
            with Reader.open(self._home) as reader:
                found = {one.run_id: one for one in reader.to_do()}
        except HostlerError as error:
            self._look_later(error)
            return
        if run_id in found:
            self._refused[run_id] = found[run_id]

    def _let_go(self, run_id: str, host: Host, *, lost: bool = False) -> None:
        del self._runs[run_id]
        if not lost:  # what a lost run has started is waited for when its host closes
            host.forget(run_id)
        if host is not self._hosts[-1]:
            self._close_if_idle(host)

    def _renew(self, config: Config) -> None:
        """Begin a host; the one before ends what it has, and what it has lost is free once it is closed.

        Raises:
            HostlerError: It cannot be begun; then all is as it was.

        """
        host = self._open(config)
        before, self._worn = self._hosts[-1], False
        self._hosts.append(host)
        self._close_if_idle(before)

    def _close_if_idle(self, host: Host) -> None:
        if not any(each is host for each, _ in self._runs.values()):
            self._hosts.remove(host)
            host.close()

    def _stop(self, times: int) -> None:
        self._stopping = True
        grace_s = self._config.service.grace_seconds if times == 1 else HURRIED_S
        self._notifier.stopping()
        self._log.say("draining", runs=len(self._runs), grace_seconds=grace_s)
        for host in self._hosts:
            host.drain(grace_s=grace_s)

    def _reload(self) -> None:
        """Begin a host with the configuration as it is now; the one before ends what it has."""
        if self._stopping:
            return
        self._notifier.reloading()
        try:
            config = self._load()
            if config.home != self._config.home:
                what = f"the state folder is now {config.home}, this is the service of {self._config.home}"
                raise HostlerError(Code.CONFLICT, what, "restart the service")  # noqa: TRY301 - one way to say no
            self._renew(config)
        except HostlerError as error:
            self._log.warn("not-reloaded", code=error.code.value, message=error.what, todo=error.todo)
        else:
            self._config = config
            self._refused.clear()
            self._log.say("reloaded", config=str(config.config_path))
        self._notifier.ready()
        self._look()

    def _say_status(self) -> None:
        counts = Counter(status or "starting" for _, status in self._runs.values())
        said = ", ".join(f"{number} {status}" for status, number in sorted(counts.items())) or "idle"
        left = f"; {len(self._refused)} left alone" if self._refused else ""
        self._notifier.status(f"{'stopping: ' if self._stopping else ''}{said}{left}")
