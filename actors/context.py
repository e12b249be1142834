"""What an operation gets as `ctx`: its place, its processes, its way to the outside.

Everything here may be called from any thread of the operation. Work that was aborted leaves by `OperationAborted`,
which is not an `Exception`, so that an operation's own `except Exception` does not swallow it.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from actors.assignment import Assignment, Host
from actors.bounds import check_kept, check_program, check_target
from actors.control import Control, OperationAborted
from actors.evidence_file import MAX_PIECES
from actors.evidence_file import NAME as EVIDENCE_FILE
from actors.failures import OperationFailed
from actors.pace import measured
from actors.program import Completed, Tail, left_behind, process_failed, program_words, secret_values
from actors.publication import check_source, is_special, publish_file
from actors.worktrees import REPOSITORY_VARIABLES
from hostres.arguments import shown
from hostres.heartbeat import HEARTBEAT_FD
from hostres.masking import Mask
from hostres.niceness import Niceness
from store.amounts import Usage
from store.home import PROGRAM
from store.policy import FailureCode
from store.terms import Evidence, EvidenceType

if TYPE_CHECKING:
    from pydantic import JsonValue

    from actors.heartbeats import Advance, BeatPipe
    from hostres.lease import Lease
    from store.terms import Envelope

__all__ = ["Completed", "Context", "OperationAborted", "OperationFailed"]

LEFT_BEHIND_GRACE_S: Final = 2.0
"""What a program leaves in the background is ended with it: nothing of a node outlives its step."""

Argument = str | os.PathLike[str] | int | float


class Context:
    """The host as one attempt of one node sees it.

    Attributes:
        lease: The admitted claims, None for a node that claims nothing.

    """

    def __init__(self, assignment: Assignment, *, control: Control, host: Host, lease: "Lease | None") -> None:
        self._assignment = assignment
        self._control = control
        self._host = host
        self._workspace: Path | None = None
        self._opening = threading.Lock()
        self._furthest = 0.0
        self._brought: dict[Evidence, None] = {}
        self.lease = lease

    @property
    def run_id(self) -> str:
        """The run."""
        return self._assignment.run_id

    @property
    def node(self) -> str:
        """The node's key."""
        return self._assignment.node

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self._assignment.attempt

    @property
    def idempotency_key(self) -> str:
        """`run:node:attempt`, for services that can tell a repeated call."""
        return self._assignment.idempotency_key

    @property
    def workspace(self) -> Path:
        """The private folder of this node and plan, empty at the first look; work that never looks makes none."""
        with self._opening:
            if self._workspace is None:
                self._workspace = self._host.open_workspace()
            return self._workspace

    @property
    def brought(self) -> tuple[Evidence, ...]:
        """What was reported as evidence so far."""
        return tuple(self._brought)

    @property
    def folder(self) -> Path:
        """The folder where the run was created."""
        return self._assignment.folder

    @property
    def niceness(self) -> Niceness | None:
        """How far processes of this node stand behind others."""
        return self._assignment.niceness

    @property
    def envelope(self) -> "Envelope | None":
        """What this node may do at most; None where nothing is kept from it."""
        return self._assignment.envelope

    @property
    def kept(self) -> tuple[Path, ...]:
        """Folders that Hostler keeps for itself."""
        return self._assignment.kept

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was asked to stop."""
        return self._control.reason is not None

    def check_cancelled(self) -> None:
        """Leave by `OperationAborted` if this attempt was asked to stop."""
        self._control.check()

    def path(self, text: str | os.PathLike[str]) -> Path:
        """Return *text* as an absolute path, resolved against the run's folder."""
        return self.folder / text

    def environment(self) -> dict[str, str]:
        """Return the environment that processes of this node get."""
        lease = dict(self.lease.environment) if self.lease else {}
        here = {name: value for name, value in os.environ.items() if not self._leads_elsewhere(name)}
        return {**here, **lease, "HOSTLER_RUN": self.run_id, "HOSTLER_NODE": self.node}

    def _leads_elsewhere(self, name: str) -> bool:
        """Say whether a variable would have git work in another repository than that of the workspace."""
        return self._assignment.in_repository and name in REPOSITORY_VARIABLES

    @property
    def _beside(self) -> Path:
        """The folder for what the host and a command tell each other."""
        return self.workspace.parent if self._assignment.in_repository else self.workspace

    @property
    def evidence_file(self) -> Path:
        """Where a command reports its evidence."""
        return self._beside / EVIDENCE_FILE

    @property
    def input_file(self) -> Path:
        """Where a command finds its input."""
        return self._beside / "input.json"

    def run(  # noqa: PLR0913 - what a program can be given
        self,
        argv: Sequence[Argument],
        *,
        stdin: bytes | Path | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        on_stderr: Callable[[bytes], None] | None = None,
        check: bool = True,
        keep_stdout: bool = True,
        secrets: Sequence[str] = (),
    ) -> Completed:
        """Run a program to its end, as a tree that the host supervises.

        It inherits the lease, has its own session and no terminal, and is ended as a whole when this node is
        cancelled or runs out of time. What it leaves in the background is ended with it. Where the node's policy has
        a heartbeat, each line of JSON on the descriptor that HOSTLER_HEARTBEAT_FD names is a beat.

        Args:
            argv: Program and arguments, texts, paths or numbers; never a shell string.
            stdin: What it reads: bytes, or the file or device of a path, relative to the workspace; None is /dev/null.
                A pipe is refused: nobody could end the wait for its writer.
            env: Added to the environment.
            cwd: Where it runs; None is the workspace.
            on_stdout: Called with each chunk of its output, on a thread of its own. What it raises is raised here once
                the program has ended; it is not called again.
            on_stderr: Likewise.
            check: Whether another exit code than 0 is a failure.
            keep_stdout: Whether its output is kept in the node's log, as it is.
            secrets: Values that its logs and its failure must not show, besides those that `HOSTLER_SECRETS` marks.

        Returns:
            The exit code and the ends of both streams; both are kept whole, within a bound, in the node's logs.

        Raises:
            OperationFailed: It could not be started, or ended with another code than 0.
            OperationAborted: This attempt was asked to stop.
            TypeError: *argv* is no list of texts, paths and numbers, or an argument is of another type than it says.

        """
        from hostres.process import Supervised  # noqa: PLC0415 - a worker process that runs no program needs none of it

        self._control.check()
        words, mask = program_words(argv), Mask.of(os.environ, secret_values(secrets))
        out, err = Tail(on_stdout), Tail(on_stderr)
        logs = self._host.next_logs()
        if self.envelope is not None:
            check_program(self.envelope, words[0])
        with _beats(self._assignment) as pipe:
            tree = Supervised.start(
                words,
                env={**self.environment(), **(env or {}), **({HEARTBEAT_FD: str(pipe.fd)} if pipe else {})},
                cwd=cwd or self.workspace,
                lease_fds=[*([self.lease.fd] if self.lease else []), *([pipe.fd] if pipe else [])],
                cpus=self.lease.cpus if self.lease else (),
                niceness=self.niceness,
                stdin=self.workspace / stdin if isinstance(stdin, Path) else stdin,
                stdout_log=logs[0] if keep_stdout else None,
                stderr_log=logs[1],
                on_stdout=out.feed,
                on_stderr=err.feed,
                mask=mask,
            )
            self._keep_name(logs[1], mask.text(tree.program))
            with self._control.supervising(tree):
                if pipe is not None:
                    pipe.listen(self._heard)
                tree.wait()
                ended = tree.end(grace_s=LEFT_BEHIND_GRACE_S, reason="end of its program")
                for cut in tree.cuts:
                    self._host.log_cut(cut)
        self._control.check()
        if ended.left or ended.exit is None or ended.exit.unseen:
            raise left_behind(Path(words[0]).name, ended)
        for stream in (out, err):
            if stream.error is not None:
                raise stream.error
        code = ended.exit.code if ended.exit.code is not None else 128 + (ended.exit.signal or 0)
        if check and code != 0:
            raise process_failed(Path(words[0]).name, ended.exit.code, ended.exit.signal, err.data)
        return Completed(code=code, stdout=out.data, stderr=err.data)

    def _keep_name(self, stderr_log: Path, program: str) -> None:
        """Keep beside the logs of a program which one it was: the same name may mean another one elsewhere."""
        path = stderr_log.with_name(stderr_log.name.replace(".stderr", f".{PROGRAM}", 1))
        try:
            with open(path, "wb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW, 0o600)) as file:
                file.write(os.fsencode(program))
        except OSError as error:
            from hostres.logs import Cut  # noqa: PLC0415 - as for `Supervised`

            self._host.log_cut(Cut(path.name, len(program), str(error)))

    def before_publication(self) -> None:
        """Ask to be let through to a write outside the workspace; call it just before each.

        The deadline has not passed, the machine lease is owned, this host still owns the run, and nobody cancelled:
        when this returns, that was so, and the attempt is durably marked as let through.

        Raises:
            OperationFailed: One of these does not hold.
            OperationAborted: This attempt was asked to stop.

        """
        self._control.check()
        if self.lease is not None:
            self.lease.assert_owned()
        self._host.allow_publication()
        self._control.check()

    def publish(
        self, source: str | os.PathLike[str], target: str | os.PathLike[str], *, overwrite: bool = True
    ) -> Path:
        """Give a finished file its final name, at once and whole.

        Args:
            source: A file, or a link to one. One of this node's workspace is moved; any other is copied, since its
                maker still owns it.
            target: Its final name; relative to the run's folder.
            overwrite: Whether a file of that name is replaced, also one that somebody has made meanwhile.

        Returns:
            The absolute final path.

        Raises:
            OperationFailed: *source* is a folder, a pipe or a device; or *target* stands for one, is there and must
                not be replaced, lies in a folder that Hostler keeps, or may not be written; or as
                `before_publication`.
            OperationAborted: This attempt was asked to stop; a copy that is under way has left nothing then.

        """
        start = Path(os.path.realpath(self.workspace / source))
        check_source(start)
        final = self.path(target)
        if is_special(final):
            raise OperationFailed(
                FailureCode.CONFLICT, f"{final} is a link, a folder or a device, not a file", "choose another target"
            )
        check_kept(self.kept, final)
        if self.envelope is not None:
            check_target(self.envelope, final, self.folder)
        self.before_publication()
        keep = not start.is_relative_to(os.path.realpath(self.workspace))
        publish_file(start, final, keep=keep, overwrite=overwrite, between=self.beat)
        return final

    def evidence(self, id: str, type: EvidenceType | str) -> None:
        """Report a piece of evidence; it counts if this attempt gives a value. Reported twice, it is one piece.

        Args:
            id: What it is called, as the terms of the node name it.
            type: commit, test, journey, screenshot, report, review or external-update. An approval of a person is
                given by `hostler approve` alone: one that is reported here counts for nothing.

        Raises:
            OperationFailed: There is no such type, that is no name, or there are too many.

        """
        self._control.check_over()
        try:
            piece = Evidence(id=id, type=EvidenceType(type))
        except ValueError as error:
            raise OperationFailed(
                FailureCode.INVALID_DATA, f"{id!r:.100} of type {type!r:.100} is no evidence", "name it as its terms do"
            ) from error
        if len(self._brought) >= MAX_PIECES and piece not in self._brought:
            raise OperationFailed(
                FailureCode.INVALID_DATA, f"more than {MAX_PIECES} pieces of evidence", "report what is due"
            )
        self._brought[piece] = None

    def spend(self, *, tokens: int = 0, cost: Decimal | float | str = 0) -> None:
        """Say what this attempt has spent since it last said so; when this returns, that is recorded for good.

        Say it as soon as it is known: what was recorded survives a crash, and the rest of what was reserved for a paid
        call counts as spent then, until somebody says better.

        Args:
            tokens: Of language models.
            cost: Money, at most nine decimal places; a text or a Decimal is exact, a float is what it prints as.

        Raises:
            OperationFailed: It is no amount, or this host no longer works on the run.
            OperationAborted: This attempt was asked to stop; whether it was recorded is not known.

        """
        try:
            usage = Usage(tokens=tokens, cost=cost)  # type: ignore[arg-type] # its validator takes what people write
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise OperationFailed(
                FailureCode.INVALID_DATA,
                f"{first['loc'][0]} is no amount that can be spent: {first['msg']}",
                "say how much was spent, from 0, with at most nine decimal places",
            ) from error
        self._host.spend(usage)

    def progress(
        self,
        fraction: float | None,
        text: str = "",
        *,
        speed: float | None = None,
        left_s: float | None = None,
    ) -> None:
        """Say how far the work is; advice for people. What is None, infinite or no number by arithmetic is unknown.

        Args:
            fraction: 0 to 1. It is clamped and never goes back.
            text: A few words.
            speed: Multiple of real time, where that makes sense; from 0.
            left_s: Time left, seconds; from 0.

        Raises:
            TypeError: One of the numbers is none, or the text is no text.

        """
        if not isinstance(text, str):
            raise TypeError(f"text is {shown(text)}, not text")
        known = measured(fraction, "fraction")
        pace, rest = measured(speed, "speed"), measured(left_s, "left_s")
        if known is not None:
            self._furthest = known = max(self._furthest, min(1.0, max(0.0, known)))
        self._host.progress(
            known, text, None if pace is None else max(0.0, pace), None if rest is None else max(0.0, rest)
        )

    def beat(self, progress: "JsonValue" = None, text: str = "") -> None:
        """Show that the work lives; `progress` does so too.

        Args:
            progress: A fraction, or {fraction, text}, as for `progress`; None says nothing of it.
            text: A few words.

        Raises:
            OperationAborted: This attempt was asked to stop, so that its beats count no more.

        """
        from actors.heartbeats import advance_of  # noqa: PLC0415 - most work never beats

        self._control.check()
        advance = advance_of(progress)
        self._host.beat()
        if advance is not None or text:
            self.progress(advance.fraction if advance else None, text or (advance.text if advance else ""))

    def _heard(self, advance: "Advance | None") -> None:
        """Take a beat of one of its processes."""
        self._host.beat()
        if advance is not None:
            self.progress(advance.fraction, advance.text)


@contextmanager
def _beats(assignment: Assignment) -> "Iterator[BeatPipe | None]":
    """Give the pipe on which a process of a node beats, None for a node that has no heartbeat."""
    if not assignment.beats:
        yield None
        return
    from actors.heartbeats import BeatPipe  # noqa: PLC0415 - likewise

    with BeatPipe() as pipe:
        yield pipe
