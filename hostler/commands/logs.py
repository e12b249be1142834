"""`hostler logs`: what the processes of a node wrote."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, add_run, command_parser
from hostler.commands.following import follow
from hostler.commands.output import print_json, print_line
from hostler.commands.places import node_of, reading
from hostler.views.terminal import harmless

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

STREAMS: Final = ("stdout", "stderr")


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "logs", description="print what the processes of a node wrote", example="- transcode"
    )
    add_run(parser)
    parser.add_argument("node", metavar="NODE", help="key of the node")
    parser.add_argument("--attempt", type=int, metavar="N", help="of that attempt (default: the last one)")
    parser.add_argument("--stream", choices=STREAMS, help="only that stream (default: both)")
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
        attempt = node.attempt if args.attempt is None else args.attempt
        paths = {
            stream: home.log_path(run_id, node.key, attempt, stream)
            for stream in ((args.stream,) if args.stream else STREAMS)
        }
        if args.json and not args.follow:
            texts = {stream: _read(path, 0).decode(errors="replace") for stream, path in paths.items()}
            print_json({"run_id": run_id, "node": node.key, "attempt": attempt, **texts})
            return 0
        printer = _Printer(paths, json=args.json)
        if args.follow:
            follow(reader, run_id, printer.show_new)
        else:
            printer.show_new()
        printer.finish()
    return 0


class _Printer:
    """Prints what is new in each log: whole lines as they come, on a terminal made harmless."""

    def __init__(self, paths: dict[str, Path], *, json: bool) -> None:
        self._paths = paths
        self._json = json
        self._offsets = dict.fromkeys(paths, 0)
        self._pending = dict.fromkeys(paths, b"")

    def show_new(self) -> None:
        for stream, path in self._paths.items():
            new = _read(path, self._offsets[stream])
            self._offsets[stream] += len(new)
            whole, end, rest = (self._pending[stream] + new).rpartition(b"\n")
            self._pending[stream] = rest
            if end:
                self._print(stream, whole)

    def finish(self) -> None:
        for stream, rest in self._pending.items():
            if rest:
                self._print(stream, rest)

    def _print(self, stream: str, data: bytes) -> None:
        if self._json:
            for line in data.split(b"\n"):
                print_json({"stream": stream, "line": line.decode(errors="replace")}, compact=True)
        elif sys.stdout.isatty():
            # With its line end, so that a carriage return before that counts as part of it.
            text = harmless(f"{data.decode(errors='replace')}\n", lines=True)
            print_line(text.removesuffix("\n"))
        else:
            sys.stdout.buffer.write(data + b"\n")
            sys.stdout.buffer.flush()


def _read(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read()
    except FileNotFoundError:
        return b""  # a node that started no process, or has not started yet
