"""`hostler service`: have the background service kept by whoever keeps services on this machine."""

import argparse
import os
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.config import Config
from hostler.service_installation import install, place_of, uninstall, usual_manager
from hostler.service_record import ServiceRecord
from hostler.service_units import ServiceManager, last_steps, next_steps
from store.home import Home
from store.service import service_alive

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

NOT_RUNNING = 3
"""As systemctl says it."""


def add(subparsers: "Subparsers") -> None:
    """Add the command and those below it."""
    parser = command_parser(
        subparsers, "service", description="install, take away or show the background service", example="install"
    )
    below = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, description in (
        ("install", "write the unit, check it, show it and what to type next"),
        ("uninstall", "take the unit away"),
        ("status", "say whether the service runs, and where its unit is"),
    ):
        one = command_parser(below, name, under="service", description=description, example="--manager supervisord")
        one.add_argument(
            "--manager",
            choices=[manager.value for manager in ServiceManager],
            help="who keeps it (default: what this machine has)",
        )
        add_json(one)


def run(args: argparse.Namespace) -> int:
    """Do what is asked."""
    manager = ServiceManager(args.manager) if args.manager else usual_manager()
    match args.action:
        case "install":
            return _install(manager, json=args.json)
        case "uninstall":
            return _uninstall(manager, json=args.json)
        case _:
            return _status(manager, json=args.json)


def _install(manager: ServiceManager, *, json: bool) -> int:
    config = Config.load()
    Home.open(config.home, create=True)
    path, text = install(manager, config, os.environ)
    steps = next_steps(manager, path)
    if json:
        print_json({"manager": manager.value, "path": str(path), "unit": text, "next": list(steps)})
    else:
        print_line(f"{path}\n\n{text}\nnext:\n" + "\n".join(f"  {step}" for step in steps))
    return 0


def _uninstall(manager: ServiceManager, *, json: bool) -> int:
    path = uninstall(manager, os.environ)
    steps = last_steps(manager, place_of(manager, os.environ)) if path is not None else ()
    if json:
        print_json({"manager": manager.value, "removed": None if path is None else str(path), "next": list(steps)})
    elif path is None:
        print_line(f"there is no unit for {manager}")
    else:
        print_line(f"removed {path}\nif it still runs:\n" + "\n".join(f"  {step}" for step in steps))
    return 0


def _status(manager: ServiceManager, *, json: bool) -> int:
    config = Config.load()
    home = Home.open(config.home, create=False)
    alive = service_alive(home)
    record = ServiceRecord.read(home) if alive else None
    place = place_of(manager, os.environ)
    if json:
        shape = {"running": alive, "home": str(home.root), "manager": manager.value}
        if record is not None:
            shape |= {"pid": record.pid, "since": record.since, "version": record.version}
        print_json({**shape, "unit": str(place) if place.exists() else None})
    else:
        named = f", pid {record.pid}, since {record.since}, version {record.version}" if record is not None else ""
        print_line(f"{'runs' if alive else 'does not run'}: the service of {home.root}{named}")
        print_line(f"unit for {manager}: {place if place.exists() else 'not installed'}")
    return 0 if alive else NOT_RUNNING
