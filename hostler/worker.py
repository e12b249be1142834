"""A worker process: it loads one function, calls it once, says what came of it, and ends.

Started by a host with the number of an inherited descriptor, never by people. What the function prints goes to the
node's logs; the channel is a descriptor of its own, so nothing that is printed can be taken for a result.
"""

import atexit
import faulthandler
import gc
import linecache
import os
import socket
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from actors.calling import dumped, given
from actors.control import Control, OperationAborted
from actors.failures import MAX_MESSAGE, MAX_TODO, MAX_TRACEBACK_BYTES, Fault, fault_of, fault_of_code, too_large
from actors.frames import Channel, FrameError
from actors.operations import Compute, Operation
from actors.outcomes import storable
from actors.remote_host import HOST_GONE, RemoteHost, end_at_stop, end_by_signal, stop_by_signal
from actors.worker_messages import (
    MAX_BLOB_OF_HOST,
    MAX_WORDS_OF_HOST,
    Broke,
    Bundle,
    Calling,
    Gave,
    Shown,
    Start,
    frame_of,
    from_host,
)
from hostler.being_loaded import being_loaded
from hostler.bundles import unpack
from hostler.code_at import CodeAt
from hostler.code_space import open_space
from hostler.matching import difference
from hostler.places import run_space
from hostres.errors import HostlerError, describe
from store.policy import FailureCode
from store.values import canonical, check

if TYPE_CHECKING:
    from actors.context import Context

MEND: Final = "bring the environment back in which the run was created, or start a new run"


class UnfitError(Exception):
    """The code cannot be called here; nothing of it was."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def main() -> None:
    """Do the one attempt that the host on the descriptor of the last argument sends."""
    faulthandler.enable()
    for stream in (sys.stdout, sys.stderr):
        # whatever the locale, printing never fails; and what was printed survives a kill
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    end = socket.socket(fileno=int(sys.argv[2]))
    os.set_inheritable(end.fileno(), False)
    sys.argv = sys.argv[:1]
    channel = Channel(end, max_words=MAX_WORDS_OF_HOST, max_blob=MAX_BLOB_OF_HOST)
    work = _Work(channel)
    try:
        work.receive()
        work.do()
    except OperationAborted:
        end_by_signal()
    except (FrameError, OSError):  # nobody is there any more to hear what came of it
        os._exit(HOST_GONE)
    _leave()


def _leave() -> NoReturn:
    """End at once: taking the modules apart, for a process that ends anyway, costs a sixth of its whole time."""
    end_at_stop()
    try:
        atexit._run_exitfuncs()  # noqa: SLF001 - as multiprocessing ends its children
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(0)


class _Work:
    """One attempt, from what the host sends to the answer."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._control = Control()
        self._host = RemoteHost(channel, self._control)
        self._context: Context | None = None

    def receive(self) -> None:
        """Take the start and the code that belongs to it."""
        frames = self._frames()
        start, self._input = next(frames)
        if not isinstance(start, Start):
            raise FrameError("something else than a start")
        self._start = start
        self._bundle = next(frames)[1] if start.bundled else None
        self._at = CodeAt.model_validate(start.code)

    def do(self) -> None:
        """Load, call, answer."""
        self._host.listen()
        try:
            code = self._load()
            call = self._call_of(code, given(self._input, code.input_type))
        except UnfitError as error:
            self._break(error.fault)
            return
        except Exception as error:  # noqa: BLE001 - a validator of the author's may raise anything
            self._break(fault_of(error))
            return
        gc.freeze()
        gc.enable()
        self._channel.send(frame_of(Calling()))
        trusted = isinstance(code, Compute)
        try:
            value = dumped(call(), code.output_type)
            check(value)
            data = canonical(value)
        except BaseException as error:
            if isinstance(error, OperationAborted) and self._control.reason is not None:
                raise
            self._break(fault_of_code(error, code.function, trusted=trusted))
            return
        if len(data) > self._start.max_output_bytes:
            self._break(too_large(len(data), self._start.max_output_bytes))
        else:
            self._host.fall_silent()
            for piece in self._context.brought if self._context is not None else ():
                self._channel.send(frame_of(Shown(id=piece.id, type=piece.type)))
            self._channel.send(frame_of(Gave(), data))

    def _frames(self) -> Iterator[tuple[Any, bytes]]:
        while (frames := self._channel.receive()) is not None:
            for frame in frames:
                message = from_host(frame)
                if not isinstance(message, Start | Bundle):
                    raise FrameError("something before the start")
                yield message, frame.blob
        raise FrameError("the end of the channel")

    def _load(self) -> Operation | Compute:
        at = self._at
        sys.path[:] = at.path
        reason = "it is not where it was"
        for module in self._modules():
            for each in (each for each in list(vars(module).values()) if _is_named(each, at)):
                found = difference(
                    each,
                    policy=at.policy,
                    input_schema_sha256=at.input_sha256,
                    output_schema_sha256=at.output_sha256,
                )
                if found is None:
                    return cast("Operation | Compute", each)
                reason = found
        shown = f"{at.kind} {at.name}" + (f"@{at.version}" if at.version else "")
        raise _unfit(f"{shown}: {reason}")

    def _modules(self) -> Iterator[ModuleType]:
        """Yield the modules in which it may be, the likely ones first; a module is loaded when it is asked for."""
        at = self._at
        if at.module is not None:
            yield _imported(at.module)
            return
        bundle = unpack(self._bundle or b"", at.bundle_sha256)
        root = Path(at.root)
        for name, content in bundle.files.items():
            text, path = content.decode("utf-8", "replace"), str(root / name)
            # the lines that tracebacks show are the stored ones, whatever lies there by now
            linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        space = open_space(bundle, entry=at.entry, root=root)
        try:
            run_space(space, at.entry)
        except HostlerError as error:
            raise _unfit(f"its code cannot be loaded: {error.what}") from error
        yield from space.modules()
        # a function that is not called here may have imported others
        yield from (_imported(f"{space.prefix}.{name}") for name in space.names())

    def _call_of(self, code: Operation | Compute, argument: Any) -> Callable[[], Any]:
        if isinstance(code, Compute):
            return lambda: code.function(argument)
        stop_by_signal(self._control)
        context = self._context = self._make_context()
        return lambda: code.function(context, argument)

    def _make_context(self) -> "Context":
        from actors.assignment import Assignment  # noqa: PLC0415 - trusted code has no context
        from actors.context import Context  # noqa: PLC0415 - likewise

        start = self._start
        lease = None
        if start.lease is not None:
            from actors.inherited_lease import InheritedLease  # noqa: PLC0415 - likewise, and not every node has one
            from hostres.lease import current_lease  # noqa: PLC0415

            lease = InheritedLease.at(start.lease)
            current_lease.set(lease)
        envelope = None
        if start.envelope is not None:
            from store.terms import Envelope  # noqa: PLC0415 - most nodes have none

            envelope = Envelope.model_validate(start.envelope)
        assignment = Assignment(
            run_id=start.run_id,
            node=start.node,
            attempt=start.attempt,
            folder=Path(start.folder),
            beats=start.beats,
            envelope=envelope,
            kept=tuple(Path(each) for each in start.kept),
        )
        return Context(assignment, control=self._control, host=self._host, lease=lease)

    def _break(self, fault: Fault) -> None:
        trace = (fault.trace or "").encode("utf-8", "backslashreplace")[-MAX_TRACEBACK_BYTES:]
        broke = Broke(
            code=fault.code,
            message=storable(fault.message, MAX_MESSAGE),
            todo=storable(fault.todo, MAX_TODO),
            retryable=fault.retryable,
            after_s=fault.after_s,
        )
        self._host.fall_silent()
        self._channel.send(frame_of(broke, trace))


def _imported(name: str) -> ModuleType:
    try:
        with being_loaded():
            return import_module(name)
    except BaseException as error:
        raise _unfit(f"module {name} cannot be imported: {describe(error)}") from error


def _is_named(each: Any, at: CodeAt) -> bool:
    if at.kind == "compute":
        return isinstance(each, Compute) and each.name == at.name
    return isinstance(each, Operation) and (each.kind, each.version) == (at.name, at.version)


def _unfit(message: str) -> UnfitError:
    return UnfitError(Fault(code=FailureCode.INCOMPATIBLE, message=message, todo=MEND))
