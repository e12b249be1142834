"""`hostler serve`: the background service of this home."""

import argparse
import os
import select
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from hostler import __version__
from hostler.commands.arguments import add_jobs, command_parser
from hostler.commands.output import print_line
from hostler.config import Config
from hostler.interrupts import Interrupted, Interrupts
from hostler.notify import Notifier
from hostler.service import Service, Woken
from hostler.service_log import service_log
from hostler.service_record import ServiceRecord
from hostler.service_watch import ServiceWatch
from hostres import descriptors
from hostres.errors import EXIT_CODES, unavailable
from store.clock import SystemClock
from store.home import Home
from store.service import ServiceIdentity, watch_service

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

MEGABYTE: Final = 1_000_000


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "serve",
        description="work on what is submitted, in the background, until stopped by SIGTERM",
        example="--jobs 2",
    )
    add_jobs(parser)
    parser.add_argument(
        "--wait", action="store_true", help="if there is a service already, wait until it ends, then take its place"
    )


def run(args: argparse.Namespace) -> int:
    """Be the service until told to stop; where there is one already, say so."""
    config = Config.load()
    home = Home.open(config.home, create=True)
    notifier = Notifier.of(os.environ)
    inbox: SimpleQueue[Any] = SimpleQueue()
    with Interrupts(inbox, reloads=True):
        identity = ServiceIdentity.take(home)
        while identity is None:
            record = ServiceRecord.read(home)
            named = f" (pid {record.pid})" if record is not None else ""
            print_line(f"there is a service of {home.root} already{named}")
            if not args.wait:
                return 0
            notifier.status("waits for the service before it to end")
            if not _its_end(home, inbox):
                return 0
            identity = ServiceIdentity.take(home)
        try:
            return _serve(args, config, home, identity, notifier, inbox)
        finally:
            identity.close()


def _serve(
    args: argparse.Namespace,
    config: Config,
    home: Home,
    identity: ServiceIdentity,
    notifier: Notifier,
    inbox: "SimpleQueue[Any]",
) -> int:
    settings = config.service
    record = ServiceRecord(pid=os.getpid(), since=SystemClock().now().at, version=__version__)
    try:
        record.write(home)
    except OSError as error:
        raise unavailable(f"{home.root} cannot be written", error) from error
    with service_log(home.logs, max_bytes=int(settings.log_megabytes * MEGABYTE), files=settings.log_files) as log:
        service = Service(home=home, load=Config.load, inbox=inbox, log=log, notifier=notifier, jobs=args.jobs)
        try:
            with ServiceWatch(home, identity, lambda: inbox.put(Woken())):
                broken = service.run()
        finally:
            ServiceRecord.remove(home)
    return 0 if broken is None else EXIT_CODES[broken.code]


def _its_end(home: Home, inbox: "SimpleQueue[Any]") -> bool:
    """Wait until the service that there is has ended; False if this process is to stop instead."""

    def watch() -> None:
        descriptor = watch_service(home)
        if descriptor is not None:
            poll = select.poll()
            poll.register(descriptor, 0)
            poll.poll()
            descriptors.close(descriptor)
        inbox.put(Woken())

    Thread(target=watch, name="service-before", daemon=True).start()
    while True:
        message = inbox.get()
        if isinstance(message, Woken):
            return True
        if isinstance(message, Interrupted):
            return False
