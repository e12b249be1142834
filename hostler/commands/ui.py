"""`hostler ui`: runs and the machine in a browser, to look at."""

import argparse
import os
import re
import sys
import webbrowser
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.config import Config
from hostler.dashboard.server import Dashboard
from hostler.interrupts import Interrupted, Interrupts
from store.home import Home

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

LAST_PORT: Final = 65535
SCREENS: Final = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Without any of them a browser would be one that takes this terminal."""


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "ui",
        description="show runs and the machine in a browser, to look at, until Ctrl-C",
        example="--port 8080 --no-browser",
    )
    parser.add_argument("--port", type=_port, default=0, metavar="N", help="listen there (default: any free port)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_json(parser, "print one JSON object: the address and the port")


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {LAST_PORT}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop."""
    folder = Home.open(Config.load().home, create=False).root
    inbox: SimpleQueue[Any] = SimpleQueue()
    with Interrupts(inbox), Dashboard(folder, port=args.port) as dashboard:
        if args.json:
            print_json({"url": dashboard.url, "port": dashboard.port}, compact=True)
        else:
            print_line(f"look at {dashboard.url}")
            print_line("only for you: the address holds a secret; Ctrl-C ends it")
        if not args.no_browser and any(os.environ.get(name) for name in SCREENS):
            url = dashboard.entry_url()
            Thread(target=_open, args=(url,), name="browser", daemon=True).start()
        while not isinstance(inbox.get(), Interrupted):
            pass
    if not args.json:
        print_line("ended; no page is served any more")
    return 0


def _open(url: str) -> None:
    """Open a browser; without one the address stands in the terminal."""
    try:
        opened = webbrowser.open(url)
    except (OSError, webbrowser.Error):
        opened = False
    if not opened:
        sys.stderr.write("hostler: no browser could be started; open the address yourself\n")
