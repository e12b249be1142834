"""`hostler serve`: the background service of this home."""

import argparse
import os
import select
import time
from itertools import chain, repeat
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from hostler import __version__
from hostler.commands.arguments import add_jobs, command_parser
from hostler.commands.output import print_line
from hostler.config import Config
from hostler.interrupts import Interrupted, Interrupts, Reloaded
from hostler.notify import Notifier
from hostler.service import Service, Woken
from hostler.service_log import bound_errors, service_log
from hostler.service_record import ServiceRecord
from hostler.service_settings import ServiceSettings
from hostler.service_units import HOPELESS
from hostler.service_watch import ServiceWatch
from hostler.troubles import tell
from hostres import descriptors
from hostres.errors import EXIT_CODES, Code, HostlerError, unavailable
from store.clock import SystemClock
from store.home import Home
from store.service import ServiceIdentity, watch_service

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

MEGABYTE: Final = 1_000_000
PASSING: Final = frozenset({Code.UNAVAILABLE, Code.PROFILE_MISMATCH})
"""Causes that go away without this program: a full disk, a busy store, others who still use other capacities."""
PAUSES_S: Final = (1.0, 5.0, 15.0, 60.0)


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
        "--wait",
        action="store_true",
        help="wait for a service that there is already to end, and for what cannot be had yet, as on a full disk",
    )
    parser.add_argument(
        "--hopeless-is-0",
        action="store_true",
        help="exit with 0 where starting again cannot help: for launchd, which knows no other code",
    )
    parser.add_argument(
        "--own-errors",
        action="store_true",
        help="standard error is a file of this service alone: begin it anew at log_megabytes",
    )


def run(args: argparse.Namespace) -> int:
    """Be the service until told to stop; where there is one already, say so."""
    notifier = Notifier.of(os.environ)
    inbox: SimpleQueue[Any] = SimpleQueue()
    try:
        with Interrupts(inbox, reloads=True):
            return _attempts(args, notifier, inbox)
    except HostlerError as error:
        if args.own_errors:
            bound_errors(int(ServiceSettings().log_megabytes * MEGABYTE))
        if not (args.hopeless_is_0 and EXIT_CODES[error.code] in HOPELESS):
            raise
        tell(error, debug=False)
        return 0


def _attempts(args: argparse.Namespace, notifier: Notifier, inbox: "SimpleQueue[Any]") -> int:
    """Be the service; wait inside this process for what may come, longer each time, and say why once."""
    said = ""
    for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
        try:
            return _be_the_service(args, notifier, inbox)
        except HostlerError as error:
            if not args.wait or error.code not in PASSING:
                raise
            if str(error) != said:
                said = str(error)
                tell(error, debug=False)
            notifier.status(f"waits: {error.what}")
        if _is_stopped(inbox, pause_s):
            break
    return 0


def _is_stopped(inbox: "SimpleQueue[Any]", seconds: float) -> bool:
    """Wait for so long, or until this process is to stop; a changed configuration is tried at once."""
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        try:
            message = inbox.get(timeout=left_s)
        except Empty:
            return False
        if isinstance(message, Interrupted):
            return True
        if isinstance(message, Reloaded):
            return False
    return False


def _be_the_service(args: argparse.Namespace, notifier: Notifier, inbox: "SimpleQueue[Any]") -> int:
    config = Config.load()
    if args.own_errors:
        bound_errors(int(config.service.log_megabytes * MEGABYTE))
    home = Home.open(config.home, create=True)
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
    with service_log(
        home.logs,
        max_bytes=int(settings.log_megabytes * MEGABYTE),
        files=settings.log_files,
        own_errors=args.own_errors,
    ) as log:
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
