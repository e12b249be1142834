"""The only writer of the store in this process; what has gathered is committed together.

A commit behind which nothing waits is made at once; else the first pending one makes it tell itself to flush, and all
that has arrived by then is one group. A commit for which nobody waits may gather others for `GATHER_S`. This thread
exists to wait for the disk, the one place where an actor blocks.
"""

import os
import select
import threading
from collections.abc import Callable
from typing import Any, Final

from actors.actions import Address, SetTimer, TimerName
from actors.host_messages import (
    ChangeTimers,
    ClaimRefused,
    ClaimRun,
    Commit,
    CreateRefused,
    CreateRun,
    FenceLost,
    Flush,
    FollowRequests,
    ForgetRequests,
    LookForLease,
    LookForRequests,
    Ping,
    Pong,
    RequestsFound,
    RunClaimed,
    RunCreated,
    Woken,
)
from actors.messages import CommitRefused, Committed, Due, LeaseSeen, RequestsArrived
from actors.shell import Shell, tell
from hostres.beginning import begin
from hostres.errors import Code, HostlerError
from store.hosts import HostIdentity
from store.run_store import RunStore as Store

GATHER_S: Final = 0.01
GATHER: Final = SetTimer(timer=TimerName(kind="gather"), seconds=GATHER_S)
"""How much finished pure work a crash may cost, which is done again then."""


class RunStore(Shell):
    """Owns the writing connection and listens to the host's wake-up FIFO."""

    def __init__(
        self,
        *,
        open_store: Callable[[], Store],
        identity: HostIdentity,
        timer: Address,
        name: str = "run-store",
        parent: Address | None = None,
    ) -> None:
        super().__init__(name=name, parent=parent)
        self._open_store = open_store
        self._identity = identity
        self._timer = timer
        self._pending: list[Commit] = []
        self._will_flush = False
        self._followers: dict[str, FollowRequests] = {}
        self._stop_listening: int | None = None

    def setup(self) -> None:
        """Open the store, and a thread that waits for the byte of another process."""
        self._store = self._open_store()
        reading, self._stop_listening = os.pipe()
        listener = _Listener(self._identity.fd, reading, self.actor_ref)
        begin(threading.Thread(target=listener.listen, name="wake-up", daemon=True))

    def teardown(self) -> None:
        """Commit what was handed in, then close."""
        if self._stop_listening is not None:
            os.close(self._stop_listening)
        store = getattr(self, "_store", None)
        if store is not None:
            if not self._broken:
                self._flush()
            store.close()

    def handle(self, message: Any) -> None:
        """Take one message."""
        match message:
            case Commit():
                self._pending.append(message)
                self._flush_in_time(message)
            case Flush() | Due():
                self._flush()
            case ClaimRun():
                self._flush()
                self._claim(message)
            case CreateRun():
                self._create(message)
            case LookForRequests():
                found = bool(self._store.requests([message.run_id]))
                tell(message.reply_to, RequestsFound(run_id=message.run_id, found=found))
            case LookForLease(run_id=run_id, lease=lease):
                left_s = self._store.lease_left_s(run_id, lease.node, lease.attempt)
                tell(message.reply_to, LeaseSeen(node=lease.node, attempt=lease.attempt, left_s=left_s))
            case FollowRequests():
                self._followers[message.run_id] = message
                self._tell_requests([message.run_id])
            case ForgetRequests():
                follower = self._followers.get(message.run_id)
                if follower is not None and follower.reply_to == message.reply_to:
                    del self._followers[message.run_id]
            case Ping():
                tell(message.reply_to, Pong(gone=self._gone()))
            case Woken():
                self._flush()
                self._tell_lost()
                self._tell_requests(list(self._followers))
            case _:
                super().handle(message)

    def _flush_in_time(self, commit: Commit) -> None:
        if not commit.awaited:
            if len(self._pending) == 1:
                self._timer.tell(ChangeTimers(owner=self.actor_urn, changes=(GATHER,), reply_to=self.actor_ref))
        elif self.actor_inbox.empty():
            self._flush()
        elif not self._will_flush:
            self._will_flush = True
            self.actor_ref.tell(Flush())

    def _flush(self) -> None:
        self._will_flush = False
        group, self._pending = self._pending, []
        if not group:
            return
        refusals: list[HostlerError | None]
        gone = self._gone()
        if gone is None:
            refusals = list(self._store.write([commit.transaction for commit in group]))
        else:
            refusals = [gone] * len(group)
        made: dict[Address, int] = {}
        for commit, refusal in zip(group, refusals, strict=True):
            if refusal is None:
                made[commit.reply_to] = commit.number
                continue
            if commit.reply_to in made:
                tell(commit.reply_to, Committed(number=made.pop(commit.reply_to)))
            tell(commit.reply_to, CommitRefused(number=commit.number, error=refusal))
        for address, number in made.items():
            tell(address, Committed(number=number))
        self._store.tidy()

    def _gone(self) -> HostlerError | None:
        """Say what is missing without which no write of this host may count."""
        if not self._identity.still_there():
            what = f"the file of this host ({self._identity.host_id}) is gone from the state folder"
            return HostlerError(Code.OWNERSHIP_LOST, what, "start again; what is stored can be resumed")
        return None if self._store.still_there() else Store.gone()

    def _create(self, message: CreateRun) -> None:
        record = message.record
        stands_as = record.run_id
        try:
            stands_as = self._store.create(record, message.plan, bundle=message.bundle, entrusted=message.entrusted)
        except HostlerError as error:
            if not (message.again and error.code is Code.CONFLICT and record.submission is None):
                tell(message.reply_to, CreateRefused(run_id=record.run_id, error=error))
                return
        tell(message.reply_to, RunCreated(run_id=record.run_id, stands_as=stands_as))

    def _claim(self, message: ClaimRun) -> None:
        try:
            claimed = self._store.claim(
                message.run_id, self._identity, again=message.again, entrusted=message.entrusted
            )
        except HostlerError as error:
            tell(message.reply_to, ClaimRefused(number=message.number, run_id=message.run_id, error=error))
        else:
            tell(message.reply_to, RunClaimed(number=message.number, claimed=claimed))

    def _tell_requests(self, run_ids: list[str]) -> None:
        waiting: dict[str, list[Any]] = {}
        for request in self._store.requests(run_ids) if run_ids else ():
            waiting.setdefault(request.run_id, []).append(request)
        for run_id, requests in waiting.items():
            tell(self._followers[run_id].reply_to, RequestsArrived(requests=tuple(requests)))

    def _tell_lost(self) -> None:
        """Tell those whose claim is no longer in force, before they learn it from a write."""
        gone = self._gone()
        for run_id, follower in list(self._followers.items()):
            error = gone or self._store.refusal(follower.fence)
            if error is not None:
                del self._followers[run_id]
                tell(follower.reply_to, FenceLost(error=error))


class _Listener:
    """Waits for a byte in the host's FIFO: another process has put something into the store."""

    def __init__(self, fifo: int, stop: int, address: Address) -> None:
        self._fifo = fifo
        self._stop = stop
        self._address = address

    def listen(self) -> None:
        waiting = select.poll()
        waiting.register(self._fifo, select.POLLIN)
        waiting.register(self._stop, select.POLLIN | select.POLLHUP)
        try:
            while True:
                ready = {descriptor for descriptor, _ in waiting.poll()}
                if self._stop in ready:
                    return
                try:
                    os.read(self._fifo, 4096)
                except BlockingIOError:
                    continue
                if not tell(self._address, Woken()):
                    return
        finally:
            os.close(self._stop)
