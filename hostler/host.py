"""A host in a program: it opens the parts, starts the actors, and hands out runs.

with Host() as host:
    run = host.submit(podcast, source="talk.mp4")
    outcome = run.wait(timeout=3600)
"""

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

import pykka

from actors.host_messages import Adopt, CreateRefused, CreateRun, Ping, Pong, RunLost, Woken
from actors.mailbox import Mailbox
from actors.messages import Drain
from actors.operations import Compute, Operation
from actors.scheduling.stopping import OVERDUE_AFTER_S
from actors.supervisor import Parts, Supervisor
from actors.threads import WorkThreads
from hostler.being_loaded import refuse_host
from hostler.compiler import Compiled, compile_workflow
from hostler.config import Config
from hostler.hosted_run import Delivery, Run
from hostler.origin import Origin
from hostler.principal import principal
from hostler.progress_notes import ProgressNotes
from hostler.stored_code import code_of, entries_of
from hostler.submissions import inputs_of, new_record, place_of_run
from hostler.worker_code import RunEntries
from hostler.worktrees import WorktreesOnDemand
from hostres import arguments
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError, unavailable
from hostres.lease import Lease
from store.approvals import Refused, Standing, judge
from store.claiming import OwnedError
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import MAY_RUN, NEEDS_CODE, RUN_FINAL
from store.reader import Reader
from store.requests import post
from store.room import refuse_if_full
from store.run_store import RunStore
from store.service import wake_service

GRACE_S: Final = 5.0
CLOSE_S: Final = 30.0
BRIEFLY_S: Final = 3.0
"""So long a resume waits for another host of the run: commands that take up an answer have it only for a moment."""


class Host:
    """The actors of one process, over the state of one home and the machine that all homes share.

    Many hosts, in as many processes, may share a home; each run is worked on by one of them at a time.

    Attributes:
        origin: The process in which it was opened.

    """

    def __init__(
        self,
        *,
        config: Config | None = None,
        jobs: int | None = None,
        release_at_rest: bool = False,
        service: bool = False,
        gave_up: Callable[[], None] | None = None,
    ) -> None:
        """Open the state folder and the machine folder and start the actors.

        Args:
            config: Places and capacities; None reads them from the environment and the configuration file.
            jobs: How many nodes of a run may be queued or running here; None is the machine's cpu capacity.
            release_at_rest: Hand a run back when it rests for a person, as a command does; a program that stays
                keeps it, and goes on by itself when the answer comes.
            service: This process is the background service: runs that it takes up stay entrusted to it.
            gave_up: Called, on a thread of the host, if it cannot go on with anything; `gave_up` says why.

        Raises:
            HostlerError: invalid-data, also where the code of a workflow is being loaded; conflict, in a process that
                was forked off one with an open host; unsafe-state, newer-schema, profile-mismatch,
                unsupported-platform…

        """
        refuse_host()
        self.origin = Origin()
        given = None if jobs is None else arguments.count(jobs, name="jobs")
        arguments.of_type(config, Config, name="config", todo="give what Config.load() reads")
        self.config = config or Config.load()
        self._release_at_rest = release_at_rest
        self._service = service
        self._tell_gave_up = gave_up
        self.hung = 0
        self.delivery = Delivery()
        self._runs: dict[str, Run] = {}
        self._adopting = threading.Lock()
        self._asked: dict[str, Mailbox] = {}
        self._closed = False
        self.gave_up: HostlerError | None = None
        self._has_given_up = threading.Event()
        self._home = Home.open(self.config.home, create=True)
        self._coordinator = Coordinator(self.config.machine_folder, settings=self.config.machine)
        with contextlib.ExitStack() as opened:
            opened.callback(self._coordinator.close)
            if self.config.machine.claims is not None:
                self.config.machine.claims.check(self._coordinator.capacity)  # else every node that claims would fail
            self.jobs = given or max(1, self._coordinator.capacity.get("cpu", 1))
            self._clock = SystemClock()
            self.origin.opens()
            opened.callback(self.origin.has_closed)
            self._store = store = RunStore.open(self._home, clock=self._clock)
            self._opened: RunStore | None = store
            opened.callback(store.close)
            self._identity = HostIdentity.register(self._home)
            opened.callback(self._identity.close)
            self._worktrees = WorktreesOnDemand(self._home, self._identity.host_id, clock=self._clock)
            wake_service(self._home)  # it watches whether this host lives
            self._threads = WorkThreads("hostler-work")
            parts = Parts(
                home=self._home,
                identity=self._identity,
                clock=self._clock,
                coordinator=self._coordinator,
                open_store=self._open_store,
                threads=self._threads,
                rules=self.config.rules,
            )
            try:
                self._supervisor = Supervisor.start(parts=parts, gave_up=self._give_up)
            except OSError as error:
                raise unavailable("no host can be started", error) from error
            opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def commits(self) -> int:
        """Durable write transactions that this host has made."""
        return self._store.commits

    def submit(
        self,
        workflow: Any,
        inputs: Mapping[str, Any] | None = None,
        /,
        *,
        folder: str | Path | None = None,
        submission_key: str | None = None,
        entrusted: bool = False,
        **more: Any,
    ) -> Run:
        """Compile *workflow* with its inputs, store the run and work on it.

        Args:
            workflow: What `@workflow` made.
            inputs: Its inputs by name, also those that are called as one of the words below.
            folder: Where relative paths of its inputs and outputs belong; None is the current folder.
            submission_key: What the caller calls this run: submitting it again gives the same run, ended or not.
            entrusted: Leave it to the background service once this host is done with it, be it that it closes. A run
                that this host works on without that is not entrusted any more.
            **more: Its other inputs.

        Raises:
            HostlerError: invalid-data; conflict, if something else was submitted under that key, the run is worked on
                without being entrusted, or on a thread that calls a listener; unavailable.

        """
        own = {"folder": folder, "submission_key": submission_key, "entrusted": entrusted}
        given = inputs_of(workflow, inputs, more, own=own)
        compiled = compile_workflow(workflow, given, folder=place_of_run(folder), max_nodes=self.config.max_nodes)
        return self.start(compiled, submission_key=submission_key, entrusted=entrusted)

    def start(self, compiled: Compiled, *, submission_key: str | None = None, entrusted: bool = False) -> Run:
        """Store a compiled workflow as a new run and work on it; the arguments are those of `submit`."""
        entries = entries_of(self._home, compiled.source, compiled.plan.bundle_sha256)
        run_id = self.create(compiled, submission_key=submission_key)
        known = self._runs.get(run_id)
        if known is not None and known.completed:
            return known
        return self._adopt(run_id, compiled.operations, compiled.computes, entries, entrusted=entrusted)

    def create(self, compiled: Compiled, *, submission_key: str | None = None, entrusted: bool = False) -> str:
        """Store a compiled workflow as a new run, without working on it.

        Args:
            compiled: The workflow.
            submission_key: What the caller calls this run, 1 to 1,024 characters; what was submitted under it before
                is given again.
            entrusted: Leave it to the background service, which is woken; where none runs, the next one finds it.

        Returns:
            The id of the run, which is durable.

        Raises:
            HostlerError: invalid-data; conflict, if something else was submitted under that key, or on a thread that
                calls a listener; unavailable.

        """
        self.delivery.refuse("submit a run")
        self._refuse_closed()
        record = new_record(compiled, submission_key=submission_key, at=self._clock.now().at)
        mailbox = Mailbox()
        self._asked[record.run_id] = mailbox
        try:
            self._tell(
                CreateRun(
                    record=record, plan=compiled.plan, bundle=compiled.bundle, reply_to=mailbox, entrusted=entrusted
                )
            )
            answer = mailbox.get()
        finally:
            del self._asked[record.run_id]
        if isinstance(answer, CreateRefused):
            raise answer.error
        if entrusted:
            wake_service(self._home)
        stands_as: str = answer.stands_as
        return stands_as

    def resume(self, run_id: str, *, accept_incompatible: bool = False, entrusted: bool = False) -> Run:
        """Work on a stored run that no other host works on; one that has it for a moment only is waited for.

        A run that this host works on goes on as it does, and its `Run` is given again; what it was taken up without is
        refused.

        Args:
            run_id: The run.
            accept_incompatible: Go on without the nodes whose code is missing or was changed: they become
                incompatible, what depends on them is skipped. Only a person may say so.
            entrusted: Leave it to the background service once this host is done with it.

        Raises:
            HostlerError: not-found; conflict, another host works on it, this one lacks what it needs, or works on it
                already without what is asked here; unavailable, the disk is full; then nothing was changed.

        """
        arguments.stored_text(run_id, name="run_id")
        self._refuse_closed()
        known = self._worked_on(run_id, accept_incompatible=accept_incompatible, entrusted=entrusted)
        if known is not None:
            return known
        refuse_if_full(self._home)
        code, entries, needing = code_of(self._home, run_id, MAY_RUN)
        if not accept_incompatible:
            code.check(run_id, needing)
        elif lacking := [key for key in code.lacking if key in needing]:
            self._accept_incompatible(run_id, lacking)
        return self._adopt(
            run_id,
            code.operations,
            code.computes,
            entries,
            lacking=code.lacking,
            accept_incompatible=accept_incompatible,
            entrusted=entrusted,
            patience_s=BRIEFLY_S,
        )

    def operate(self, run_id: str) -> bool:
        """Take up what people asked of a run that no host works on, and hand it back; see `answer`.

        Returns:
            Whether it was this host. Another one may have taken the run up a moment before, and may have it only for
            a moment: whoever wants an answer looks for it, and asks again where there is none.

        """
        try:
            self.answer(run_id).wait()
        except OwnedError:
            return False
        return True

    def answer(self, run_id: str) -> Run:
        """Begin to take up what people asked of a run that no host works on; nothing of it is started.

        What an interrupted attempt did is for its operation to find out; where that cannot be had here, its node is
        left to whoever resumes the run.
        """
        arguments.stored_text(run_id, name="run_id")
        self._refuse_closed()
        try:
            code, entries, _ = code_of(self._home, run_id, NEEDS_CODE)
        except HostlerError:  # what is stored of it is damaged
            return self._adopt(run_id, {}, {}, jobs=0)
        return self._adopt(run_id, code.operations, code.computes, entries, jobs=0, lacking=code.lacking)

    def cancel(self, run_id: str, *, node: str | None = None, reason: str = "") -> None:
        """Ask durably for a run, or for a node and what depends on it, to be cancelled.

        Raises:
            HostlerError: not-found; conflict, if it has ended, or this principal may not ask it, or in a process that
                was forked off; invalid-data.

        """
        self.origin.refuse_elsewhere()
        arguments.stored_text(run_id, name="run_id")
        if node is not None:
            arguments.stored_text(node, name="node")
        arguments.stored_text(reason, name="reason")
        from hostler.asking import ask_to_cancel  # noqa: PLC0415 - few cancel

        with Reader.open(self._home) as reader:
            ask_to_cancel(self._home, reader, run_id, node, reason=reason, rules=self.config.rules)

    def _has_ended(self, run_id: str) -> bool:
        """Say whether a run has ended in the store, be it that its `Run` has not heard of that yet."""
        with Reader.open(self._home) as reader:
            return reader.run(run_id).status in RUN_FINAL

    def lease(self, claims: Mapping[str, int], *, wait: float | None = None, name: str = "") -> Lease:
        """Admit claims on the machine, without a workflow.

        Args:
            claims: Resource → units.
            wait: Seconds to wait; None waits without limit.
            name: For people who look at the machine.

        Raises:
            HostlerError: as `Coordinator.lease`; conflict: this host is closed; wait-aborted: it was closed meanwhile.

        """
        self._refuse_closed()
        return self._coordinator.lease(claims, wait=wait, name=arguments.stored_text(name, name="name"))

    def drain(self, *, grace_s: float = GRACE_S) -> None:
        """Take up nothing more, give what runs *grace_s* seconds, hand the runs back; returns at once."""
        self._tell(Drain(grace_s=grace_s))

    def look(self) -> None:
        """Look again whether the runs are this host's, as after it was stopped for a while; returns at once."""
        self._tell(Woken())

    def forget(self, run_id: str) -> None:
        """Keep nothing more of a run that this host is done with; one that it works on stays."""
        run = self._runs.get(run_id)
        if run is not None and run.left:
            del self._runs[run_id]

    def responds(self, *, within_s: float) -> bool:
        """Say whether the actors of this host take messages.

        Args:
            within_s: Seconds to wait for their answer.

        """
        return self._pong(within_s) is not None

    def lost_files(self, *, within_s: float) -> HostlerError | None:
        """Say why no write of this host may count any more; None if all is there, or nobody answers in time.

        Args:
            within_s: Seconds to wait for the answer.

        """
        pong = self._pong(within_s)
        return None if pong is None else pong.gone

    def _pong(self, within_s: float) -> Pong | None:
        self.delivery.refuse("wait for an answer of its host")
        mailbox = Mailbox()
        try:
            self._tell(Ping(reply_to=mailbox))
            found = mailbox.get(timeout=within_s)
        except HostlerError:
            return None
        return found if isinstance(found, Pong) else None

    def close(self) -> None:
        """Hand every run back and end; waits for what runs to stop. A process that was forked off has nothing to end.

        Raises:
            HostlerError: conflict, on a thread that calls a listener.

        """
        if self._closed or self.origin.is_elsewhere:
            return
        self.delivery.refuse("close its host")
        self._closed = True
        working = [run for run in list(self._runs.values()) if not run.left]
        if working:
            self.drain(grace_s=0.0)
            deadline = time.monotonic() + CLOSE_S
            for run in working:
                with run._changed:  # noqa: SLF001 - Run is the other half of this class
                    run._changed.wait_for(lambda run=run: run.left, max(0.0, deadline - time.monotonic()))  # type: ignore[misc]  # noqa: SLF001
        with contextlib.suppress(pykka.ActorDeadError):
            self._supervisor.stop(block=True)
        lost = any(run.lost for run in list(self._runs.values()))
        self._end_waits(HostlerError(Code.CONFLICT, "this host was closed meanwhile", "open a new Host"))
        if lost:  # what it started is being ended
            self._threads.wait_idle(OVERDUE_AFTER_S)
        self._coordinator.close()
        self._identity.close()
        self._threads.retire()
        self.hung = self._threads.busy
        self.origin.has_closed()

    def _open_store(self) -> RunStore:
        """Hand out the store that was opened when this host began, and after that a new one each time."""
        opened, self._opened = self._opened, None
        self._store = opened or RunStore.open(self._home, clock=self._clock)
        return self._store

    def _adopt(  # noqa: PLR0913 - what its caller was asked
        self,
        run_id: str,
        operations: Mapping[tuple[str, int], Operation],
        computes: Mapping[str, Compute],
        entries: RunEntries | None = None,
        *,
        jobs: int | None = None,
        lacking: Mapping[str, str] = MappingProxyType({}),
        accept_incompatible: bool = False,
        entrusted: bool = False,
        patience_s: float = 0.0,
    ) -> Run:
        """Work on a stored run, unless this host does so already: then its `Run` is given again."""
        release_at_rest = self._release_at_rest or jobs == 0
        asked = {"accept_incompatible": accept_incompatible, "entrusted": self._service or entrusted}
        with self._adopting:
            self._refuse_closed()
            known = self._worked_on(run_id, **asked)
            if known is not None:
                return known
            run = Run(run_id, self, kept=not release_at_rest, notes=ProgressNotes(self._home, run_id), **asked)
            self._runs[run_id] = run
            try:
                self._tell(
                    Adopt(
                        run_id=run_id,
                        operations=operations,
                        computes=computes,
                        lacking=lacking,
                        entry=entries or entries_of(self._home, None, None),
                        worktrees=self._worktrees,
                        jobs=self.jobs if jobs is None else jobs,
                        release_at_rest=release_at_rest,
                        entrusted=None if jobs == 0 else run.entrusted,
                        patience_s=patience_s,
                        subscriber=run._hear,  # noqa: SLF001 - Run is the other half of this class
                    )
                )
            except HostlerError:
                del self._runs[run_id]  # nobody would ever tell it anything
                raise
        return run

    def _worked_on(self, run_id: str, *, accept_incompatible: bool, entrusted: bool) -> Run | None:
        """Give the `Run` that this host works on, if any.

        Raises:
            HostlerError: conflict: it was taken up without what is asked here, and goes on without it.

        """
        known = self._runs.get(run_id)
        if known is None or known.left:
            return None
        if entrusted and not known.entrusted:
            without = "without being entrusted"
        elif accept_incompatible and not known.accept_incompatible:
            without = "without accept_incompatible"
        else:
            return known
        todo = "ask for that when it is submitted or resumed first, or close this host and resume it so in a new one"
        raise HostlerError(Code.CONFLICT, f"this host works on {run_id} already, {without}", todo)

    def _accept_incompatible(self, run_id: str, lacking: list[str]) -> None:
        """Ask durably for the run to go on without these nodes; the one who takes it up does so in its first turn."""
        with Reader.open(self._home) as reader:
            owned = reader.run(run_id).owned
        if owned:
            return  # its host has what it needs, and refuses this host the run
        request = Request(
            request_id=f"{RequestKind.ACCEPT_INCOMPATIBLE}:{run_id}:{secrets.token_hex(8)}",
            run_id=run_id,
            kind=RequestKind.ACCEPT_INCOMPATIBLE,
            principal=principal(),
            data={"nodes": [*lacking]},
            at=self._clock.now().at,
        )
        ruling = judge(request, Standing(), rules=self.config.rules)
        if isinstance(ruling, Refused):
            raise HostlerError(ruling.code, ruling.what, ruling.todo)
        post(self._home, request, clock=self._clock)

    def _tell(self, message: Any) -> None:
        """Hand *message* to the actors, if they are there and this process's own.

        Raises:
            HostlerError: conflict: the host is closed, or another process's; or what made it give up.

        """
        self.origin.refuse_elsewhere()
        if self.gave_up is not None:
            raise self.gave_up
        try:
            self._supervisor.tell(message)
        except pykka.ActorDeadError:
            if not self._closed and self._has_given_up.wait(CLOSE_S) and self.gave_up is not None:
                raise self.gave_up from None
            raise HostlerError(Code.CONFLICT, "this host is closed", "open a new Host") from None

    def _refuse_closed(self) -> None:
        """Begin nothing more once it is being closed, and nothing in another process, where its locks may be held."""
        self.origin.refuse_elsewhere()
        if self._closed:
            raise HostlerError(Code.CONFLICT, "this host is closed", "open a new Host")

    def _give_up(self, error: HostlerError) -> None:
        self.gave_up = error
        self._has_given_up.set()
        self._end_waits(error)
        if self._tell_gave_up is not None:
            self._tell_gave_up()

    def _end_waits(self, error: HostlerError) -> None:
        """Answer whoever waits for what the supervisor did not get to know of any more, or did not finish."""
        for run_id, mailbox in list(self._asked.items()):
            mailbox.tell(CreateRefused(run_id=run_id, error=error))
        for run in list(self._runs.values()):
            if not run.left:
                run._hear(RunLost(run_id=run.run_id, error=error))  # noqa: SLF001 - Run is the other half of this class
