"""`hostler top`: who holds the machine, who waits, and why."""

import argparse
import contextlib
import json
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, command_parser
from hostler.json_format import versioned
from hostler.views.machine import fitted, machine_lines
from hostler.views.terminal import is_terminal
from hostres.folders import machine_folder
from hostres.top import snapshot

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

REFRESH_S: Final = 1.0
OPEN: Final = "\x1b[?1049h\x1b[?25l"
"""A screen of its own, without a cursor."""
CLOSE: Final = "\x1b[?25h\x1b[?1049l"
HOME: Final = "\x1b[H"
REST_OF_LINE: Final = "\x1b[K"
REST_OF_SCREEN: Final = "\x1b[J"


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "top", description="show who holds the machine and who waits", example="--once --json", more=("",)
    )
    parser.add_argument("--once", action="store_true", help="print it once; so it is anyway when not on a terminal")
    add_json(parser, "print one JSON object, once")


def run(args: argparse.Namespace) -> int:
    """Print the machine, on a terminal again and again until `q` or Ctrl-C."""
    folder = machine_folder(os.environ)
    if args.json:
        sys.stdout.write(json.dumps(versioned(snapshot(folder).to_json()), indent=2) + "\n")
    elif args.once or not is_terminal():
        sys.stdout.write("".join(f"{line}\n" for line in machine_lines(snapshot(folder))))
    else:
        with contextlib.suppress(KeyboardInterrupt), _screen() as (keys, bell):
            _look_on(folder, keys, bell)
    return 0


def _look_on(folder: Path, keys: int | None, bell: int) -> None:
    wanted = [bell] if keys is None else [bell, keys]
    while True:
        size = os.get_terminal_size(sys.stdout.fileno())
        lines = fitted(
            [*machine_lines(snapshot(folder)), "", "q quits"], columns=size.columns or 80, rows=size.lines or 24
        )
        sys.stdout.write(HOME + f"{REST_OF_LINE}\n".join(lines) + REST_OF_LINE + REST_OF_SCREEN)
        sys.stdout.flush()
        ready = select.select(wanted, [], [], REFRESH_S)[0]
        if bell in ready:
            os.read(bell, 4096)
        if keys in ready:
            typed = os.read(keys, 4096)
            if not typed:
                wanted = [bell]
            if typed[:1] in (b"q", b"Q"):
                return


@contextlib.contextmanager
def _screen() -> Iterator[tuple[int | None, int]]:
    """Return where keys come from, if anywhere, and what becomes readable when the size changes."""
    keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else None
    bell, ring = os.pipe()
    os.set_blocking(ring, False)
    old = signal.signal(signal.SIGWINCH, lambda *_: None)
    rung = signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    before = None if keys is None else termios.tcgetattr(keys)
    try:
        if keys is not None:
            tty.setcbreak(keys, termios.TCSADRAIN)
        sys.stdout.write(OPEN)
        yield keys, bell
    finally:
        sys.stdout.write(CLOSE)
        sys.stdout.flush()
        if keys is not None and before is not None:
            termios.tcsetattr(keys, termios.TCSADRAIN, before)
        signal.set_wakeup_fd(rung)
        signal.signal(signal.SIGWINCH, old)
        os.close(bell)
        os.close(ring)
