"""The run store: the only writer of runs in this process. What a call returned from is on the disk."""

import contextlib
import itertools
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hostres.clock import boot_id
from hostres.errors import Code, HostlerError
from store import claiming
from store.clock import Clock
from store.content import Content
from store.contracts import Request, RunRecord
from store.creation import check_new, insert_run, submitted
from store.database import begin_write, close_writer, grow_wal, open_writer, reading, roll_back, writing
from store.database_file import Connection
from store.faults import refuse_if_damaged, store_error, translated
from store.heads import read_head, refuse_if_imported
from store.held import OutdatedError
from store.home import Home
from store.hosts import HostIdentity, bury, bury_dead, host_alive
from store.lifecycle import RUN_FINAL, RunStatus
from store.limits import Limits
from store.log_size import LogSize
from store.plans import GraphPlan
from store.records import encode, exactly
from store.requests import waiting
from store.room import give_up_reserve, is_full, keep_reserve, refuse_if_full
from store.schema import SCHEMA_VERSION, check_version
from store.service import entrust, take_back
from store.staged import Staged, stage
from store.transactions import Claimed, Fence, Transaction
from store.upgrade import upgrade
from store.work import taken_work
from store.writing import Writer, check_fence

_NOT_FINAL: Final = tuple(sorted(status.value for status in frozenset(RunStatus) - RUN_FINAL))
_UNFINISHED: Final = (
    f"SELECT run_id, host_id FROM runs WHERE status IN ({', '.join('?' * len(_NOT_FINAL))})"  # noqa: S608 - question marks
    " AND imported_sha256 IS NULL ORDER BY run_id"
)


class RunStore:
    """Writes runs; one caller at a time, others wait.

    Attributes:
        commits: Durable write transactions made so far.

    """

    def __init__(self, home: Home, connection: Connection, clock: Clock, limits: Limits) -> None:
        self.commits = 0
        self._home = home
        self._connection = connection
        self._clock = clock
        self._limits = limits
        self._content = Content(home.content)
        self._writer = Writer(connection, self._content, limits)
        self._one_at_a_time = threading.RLock()
        self._created: claiming.Known | None = None  # the plan of the last new run, which most claim at once
        self._database = home.database
        assert connection.files is not None
        self._files = connection.files
        self._log_size = LogSize(connection, self._database)
        self._has_reserve = keep_reserve(home)

    @classmethod
    def open(cls, home: Home, *, clock: Clock, limits: Limits | None = None) -> "RunStore":
        """Open the run store of *home*, making or upgrading its file if need be.

        Args:
            home: Opened with `create=True`.
            clock: Stamps creation and claims.
            limits: What is taken; the documented bounds by default.

        Raises:
            HostlerError: newer-schema, unsafe-state or unavailable.

        """
        connection = open_writer(home.database, SCHEMA_VERSION, create=True)
        try:
            with translated(home.database):
                upgrade(connection, home.database, home.hosts)
                grow_wal(connection, home.database)
                store = cls(home, connection, clock, limits or Limits())
                bury_dead(home)
        except BaseException:
            close_writer(connection, home.database)
            raise
        return store

    def still_there(self) -> bool:
        """Say whether what is written, the file and its log, is still what everybody else finds under those names."""
        return self._files.still_there()

    @staticmethod
    def gone() -> HostlerError:
        """Return the refusal of a write into files that nobody else would find."""
        what = "runs.db or its log was removed, replaced or emptied under this program"
        return HostlerError(Code.OWNERSHIP_LOST, what, "start again; what is stored can be resumed")

    def close(self) -> None:
        """Close the file; idempotent."""
        with self._one_at_a_time:
            close_writer(self._connection, self._database)

    def _refuse_if_unfit(self) -> None:
        refuse_if_damaged(self._database)
        self._log_size.before_write()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._refuse_if_unfit()
        if not self.still_there():
            raise self.gone()
        with writing(self._connection, self._database):
            # since this process looked, a newer program may have come, as long as no host was there to be seen
            check_version(self._connection, self._database)
            yield
        self.commits += 1

    def create(self, record: RunRecord, plan: GraphPlan, *, bundle: bytes | None, entrusted: bool = False) -> str:
        """Store a new run; its roots are ready, its other nodes pending, its status planned.

        A record with the submission key of a stored run asks for that run again, and nothing is stored.

        Args:
            record: What it is.
            plan: What it does.
            bundle: The code that it names, if it names any.
            entrusted: Whether it is left to the background service.

        Returns:
            The id of the run: the record's, or that of the run that was asked for under its key before.

        Raises:
            HostlerError: invalid-data; conflict, if there is such a run, or another one under its key; unavailable,
                also where what is left of the disk is kept for what runs already.

        """
        exact = exactly(plan)
        plan_data = encode(plan) if exact is None else exact
        check_new(record, plan, plan_data, bundle, self._limits)
        plan_row = len(plan_data), self._content.put(record.plan_sha256, plan_data)
        bundle_row = None
        if bundle is not None and record.bundle_sha256 is not None:
            bundle_row = len(bundle), self._content.put(record.bundle_sha256, bundle)
        with self._one_at_a_time, self._writing():
            before = submitted(self._connection, record)
            if before is not None:
                return before
            refuse_if_full(self._home)
            insert_run(
                self._connection,
                record=record,
                plan=plan,
                plan_row=plan_row,
                bundle_row=bundle_row,
                stamp=self._clock.now(),
                limits=self._limits,
                entrusted=entrusted,
            )
            if bundle_row is not None and bundle_row[1] is None and bundle is not None:
                self._content.keep(record.bundle_sha256 or "", bundle)
            if plan_row[1] is None:
                self._content.keep(record.plan_sha256, plan_data)
        self._created = None if exact is None else (record.plan_sha256, plan)
        return record.run_id

    def claim(
        self, run_id: str, identity: HostIdentity, *, again: bool = False, entrusted: bool | None = None
    ) -> Claimed:
        """Take a run, verified whole.

        A dead owner loses all its claims at once; a living one, also a stopped one, keeps them.

        Args:
            run_id: The run.
            identity: The host that takes it.
            again: Whether that host may have it already: what worked on it there is gone.
            entrusted: Whether the run is left to the background service from now on; None leaves that as it is.

        Raises:
            HostlerError: not-found; conflict, naming the living owner, or for a run that was imported; invalid-data,
                naming what is damaged; ownership-lost, if the host itself can no longer be seen to live; unavailable.

        """
        if not identity.still_there():
            what = f"the file of {identity.host_id} is gone; others take this host for dead"
            raise HostlerError(Code.OWNERSHIP_LOST, what, "start this program again")
        with self._one_at_a_time:
            claimed = None
            while claimed is None:
                claimed = self._take(
                    self._load(run_id, identity.host_id if again else None), identity, entrusted=entrusted
                )
            if self._created is not None and claimed.plan is self._created[1]:
                self._created = None
            return claimed

    def _load(self, run_id: str, again: str | None) -> claiming.Loaded:
        with reading(self._connection, self._database):
            head = read_head(self._connection, run_id)
            refuse_if_imported(run_id, imported=head.imported)
            claiming.refuse_if_owned(self._home, self._connection, head, again=again)
            return claiming.load(self._connection, self._content, run_id, self._created)

    def _take(self, loaded: claiming.Loaded, identity: HostIdentity, *, entrusted: bool | None) -> Claimed | None:
        """Claim what was loaded; None if it has changed since."""
        stamp = self._clock.now()
        with self._writing():
            head = read_head(self._connection, loaded.head.run_id)
            if head != loaded.head:
                return None
            dead = head.host_id
            fence = claiming.take(self._connection, head, identity.host_id, stamp, self._limits)
            claimed = loaded.claimed(self._connection, fence, stamp)
            if entrusted is not None:
                (entrust if entrusted else take_back)(self._connection, head.run)
        self._writer.hold(head, loaded.plan, loaded.nodes, loaded.digests)
        if dead not in (None, identity.host_id):
            bury(self._home, dead)
        return claimed

    def write(self, transactions: Sequence[Transaction]) -> list[HostlerError | None]:
        """Make a group of transactions durable in one commit; a refusal of one does not hurt the others.

        Args:
            transactions: Applied in order.

        Returns:
            For each, None once it is durable, or why it is not: conflict for a stale fence or an illegal move;
            invalid-data for what exceeds a limit; unavailable, for all, if the disk is full, the reserve used up, or
            fails.

        """
        with self._one_at_a_time:
            answers = self._write_all(transactions)
            without_room = [place for place, answer in enumerate(answers) if answer is not None and is_full(answer)]
            if without_room and give_up_reserve(self._home):
                self._has_reserve = False
                again = self._write_all([transactions[place] for place in without_room])
                for place, answer in zip(without_room, again, strict=True):
                    answers[place] = answer
            return answers

    def _write_all(self, transactions: Sequence[Transaction]) -> list[HostlerError | None]:
        try:
            self._refuse_if_unfit()
        except HostlerError as refusal:
            return [refusal] * len(transactions)
        staged = [self._stage(transaction) for transaction in transactions]
        group = [one for one in staged if isinstance(one, Staged)]
        answers: Iterator[HostlerError | None]
        try:
            answers = iter(self._write(group) if group else ())
        except (sqlite3.Error, UnicodeDecodeError) as error:
            failed = store_error(error, self._database)
            failed.__cause__ = error
            answers = itertools.repeat(failed)
        except HostlerError as refusal:
            answers = itertools.repeat(refusal)
        return [one if isinstance(one, HostlerError) else next(answers) for one in staged]

    def tidy(self) -> None:
        """Do now, while nobody waits for it, what the next write would have to do first."""
        with self._one_at_a_time:
            self._log_size.tidy()
            if not self._has_reserve:
                self._has_reserve = keep_reserve(self._home)

    def _stage(self, transaction: Transaction) -> Staged | HostlerError:
        try:
            return stage(transaction, self._content, self._limits)
        except HostlerError as refusal:
            return refusal

    def _write(self, group: Sequence[Staged]) -> Sequence[HostlerError | None]:
        """Write the whole group at once; only if one is refused, each by itself on what is read anew."""
        begin_write(self._connection)
        try:
            self._writer.apply(group)
            self._commit()
        except (HostlerError, OutdatedError):
            self._undo(group)
        except BaseException:
            self._undo(group)
            raise
        else:
            return [None] * len(group)
        begin_write(self._connection)
        try:
            answers = [self._apply(one) for one in group]
            if None in answers:
                self._commit()
            else:
                self._undo(group)
        except BaseException:
            self._undo(group)
            raise
        return answers

    def _commit(self) -> None:
        self._connection.execute("COMMIT")
        self.commits += 1

    def _undo(self, group: Sequence[Staged]) -> None:
        roll_back(self._connection)
        self._writer.forget(group)

    def _apply(self, staged: Staged) -> HostlerError | None:
        self._connection.execute("SAVEPOINT one")
        try:
            self._writer.apply([staged])
        except HostlerError as refusal:
            self._connection.execute("ROLLBACK TO one")
            self._connection.execute("RELEASE one")
            self._writer.forget([staged])
            return refusal
        self._connection.execute("RELEASE one")
        return None

    def refusal(self, fence: Fence) -> HostlerError | None:
        """Say why a write under *fence* would be refused, None if it would not be."""
        try:
            check_fence(read_head(self._connection, fence.run_id), fence)
        except HostlerError as error:
            return error
        return None

    def requests(self, run_ids: Iterable[str]) -> list[Request]:
        """Return what was asked of those runs and not yet answered, oldest first within a run.

        Raises:
            HostlerError: invalid-data, naming a damaged request; unavailable.

        """
        found: list[Request] = []
        with self._one_at_a_time, reading(self._connection, self._database):
            for run_id in run_ids:
                row = self._connection.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()
                if row is not None:
                    found += waiting(self._connection, row[0])
        return found

    def lease_left_s(self, run_id: str, node: str, attempt: int) -> float:
        """Return how long a worker's lease still lasts, seconds; 0 if there is none, or it has expired."""
        with self._one_at_a_time, reading(self._connection, self._home.database):
            found = [each for each in taken_work(self._connection, run_id=run_id, node=node) if each.attempt == attempt]
        return found[0].term.left_s(self._clock.now(), boot_id()) if found else 0.0

    def unowned(self) -> list[str]:
        """Return the runs that are not final and that no living host owns, oldest first."""
        with self._one_at_a_time, reading(self._connection, self._database):
            rows = self._connection.execute(_UNFINISHED, _NOT_FINAL).fetchall()
        alive: dict[str | None, bool] = {None: False}
        for _, host_id in rows:
            if host_id not in alive:
                alive[host_id] = host_alive(self._home, host_id)
        return [run_id for run_id, host_id in rows if not alive[host_id]]
