"""`hostler logs`: what the processes of a node wrote, and the traceback of its own code."""

import argparse
import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hostler.commands.arguments import add_json, add_run, command_parser, positive
from hostler.commands.following import follow
from hostler.commands.output import print_json, print_line
from hostler.log_streams import ERROR, PROCESS_STREAMS, process_of, said, stream_of
from hostler.stored_runs import node_of, reading
from hostler.views.terminal import harmless
from hostres.errors import Code, HostlerError
from hostres.logs import read_log
from store.home import PROGRAM, Home
from store.reader import Reader

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "logs",
        description="print what the processes of a node wrote",
        example="- transcode",
        more=("- transcode --follow", "- transcode --attempt 1 --stream stderr"),
    )
    add_run(parser)
    parser.add_argument("node", metavar="NODE", help="key of the node")
    parser.add_argument(
        "--attempt",
        type=positive,
        metavar="N",
        help="of that attempt (default: the last one; with --follow all that begin)",
    )
    parser.add_argument(
        "--stream",
        choices=(*PROCESS_STREAMS, ERROR),
        help="only that stream of every process, or only the traceback (default: all)",
    )
    parser.add_argument(
        "--follow",
        action="store_true",
        help="go on until the run ends, rests or has no host that works on it",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the logs."""
    with reading() as (home, reader):
        run_id = reader.find(args.run)
        node = node_of(reader, run_id, args.node)
        if args.attempt is not None and args.attempt > node.attempt:
            what = f"node {node.key} of {run_id} has had {node.attempt} attempts, not {args.attempt}"
            raise HostlerError(Code.NOT_FOUND, what, "leave --attempt out for the last one")
        attempt = node.attempt if args.attempt is None else args.attempt
        shelf = _Shelf(home, run_id, node.key, attempt, only=args.stream)
        if args.follow:
            _follow(args, reader, shelf)
        elif args.json:
            print_json({"run_id": run_id, "node": node.key, "attempt": attempt, **_shape(shelf, args.stream)})
        else:
            _print_all(shelf)
    return 0


def _follow(args: argparse.Namespace, reader: Reader, shelf: "_Shelf") -> None:
    """Show what comes; unless one attempt is named, of each that begins, one after the other."""
    paper = _Paper(json=args.json)
    follower = _Follower(shelf, paper)

    def show_new() -> None:
        nonlocal follower
        last = shelf.attempt if args.attempt is not None else node_of(reader, shelf.run_id, shelf.node).attempt
        follower.show_new()
        while follower.attempt < last:
            follower.finish()
            follower = _Follower(shelf.of_attempt(follower.attempt + 1), paper)
            follower.show_new()

    follow(reader, shelf.run_id, show_new)
    follower.finish()


class _Shelf:
    """The logs of one attempt, in the order in which they are read."""

    def __init__(self, home: Home, run_id: str, node: str, attempt: int, *, only: str | None) -> None:
        self._home = home
        self.run_id = run_id
        self.node = node
        self.attempt = attempt
        self._only = only

    def of_attempt(self, attempt: int) -> "_Shelf":
        """Return the logs of another attempt."""
        return _Shelf(self._home, self.run_id, self.node, attempt, only=self._only)

    def logs(self) -> dict[str, Path]:
        found = self._home.logs_of(self.run_id, self.node, self.attempt)
        wanted = (stream for stream in said(found) if self._only in (None, stream.partition(".")[0]))
        return {stream: found[stream] for stream in wanted}

    def program(self, number: int) -> dict[str, str]:
        """Return the path of the program that a process was, where that is known."""
        path = self._home.logs_of(self.run_id, self.node, self.attempt).get(stream_of(PROGRAM, number))
        return {} if path is None else {PROGRAM: b"".join(_read_all(path)).decode(errors="replace")}


def _section(stream: str) -> str:
    return ERROR if stream == ERROR else f"process {process_of(stream)}"


def _shape(shelf: _Shelf, only: str | None) -> dict[str, Any]:
    texts = {stream: b"".join(_read_all(path)).decode(errors="replace") for stream, path in shelf.logs().items()}
    numbers = sorted({process_of(stream) for stream in texts if stream != ERROR})
    names = [name for name in PROCESS_STREAMS if only in (None, name)]

    def of(number: int) -> dict[str, str]:
        return {name: texts.get(stream_of(name, number), "") for name in names}

    shape: dict[str, Any] = dict(of(1))
    if only != ERROR:
        shape["processes"] = [{"number": number, **shelf.program(number), **of(number)} for number in numbers]
    if only in (None, ERROR):
        shape[ERROR] = texts.get(ERROR, "")
    return shape


def _print_all(shelf: _Shelf) -> None:
    logs = shelf.logs()
    paper = _Paper(json=False)
    paper.expect(logs)
    for stream, path in logs.items():
        data = b"".join(_read_all(path))
        if data:
            paper.write(stream, data.removesuffix(b"\n"))


class _Paper:
    """What the reader sees: lines, under a heading for each process where there are several."""

    def __init__(self, *, json: bool) -> None:
        self._json = json
        self._sections: list[str] = []
        self._current = ""

    def expect(self, streams: Iterable[str]) -> None:
        """Take in which streams there are."""
        new = [section for section in map(_section, streams) if section not in self._sections]
        self._sections += dict.fromkeys(new)

    def write(self, stream: str, data: bytes) -> None:
        """Write whole lines; on a terminal made harmless, in a pipe the bytes as they are."""
        if self._json:
            for line in data.split(b"\n"):
                print_json({"stream": stream, "line": line.decode(errors="replace")}, compact=True)
            return
        self._enter(_section(stream))
        if sys.stdout.isatty():
            # With its line end, so that a carriage return before that counts as part of it.
            text = harmless(f"{data.decode(errors='replace')}\n", lines=True)
            print_line(text.removesuffix("\n"))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(data + b"\n")
            sys.stdout.buffer.flush()

    def _enter(self, section: str) -> None:
        if section != self._current and len(self._sections) > 1:
            print_line(f"== {section}")
        self._current = section


class _Follower:
    """Shows what is new in each log, whole lines as they come."""

    def __init__(self, shelf: _Shelf, paper: _Paper) -> None:
        self.attempt = shelf.attempt
        self._shelf = shelf
        self._paper = paper
        self._offsets: dict[str, int] = {}
        self._pending: dict[str, bytes] = {}

    def show_new(self) -> None:
        logs = self._shelf.logs()
        self._paper.expect(logs)
        for stream, path in logs.items():
            new = _read_from(path, self._offsets.get(stream, 0))
            self._offsets[stream] = self._offsets.get(stream, 0) + len(new)
            whole, end, rest = (self._pending.get(stream, b"") + new).rpartition(b"\n")
            self._pending[stream] = rest
            if end:
                self._paper.write(stream, whole)

    def finish(self) -> None:
        for stream, rest in self._pending.items():
            if rest:
                self._paper.write(stream, rest)


def _read_all(path: Path) -> Iterable[bytes]:
    with contextlib.suppress(FileNotFoundError):  # it went while we looked
        yield from read_log(path)


def _read_from(path: Path, offset: int) -> bytes:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(offset)
        return file.read()
    return b""
