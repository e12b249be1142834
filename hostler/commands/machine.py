"""`hostler machine`: see and change what the machine has, and take back a ticket."""

import argparse
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Final

from hostler.commands.arguments import add_json, command_parser
from hostler.configuration_keys import check_configuration
from hostler.json_format import versioned
from hostler.views.machine_rules import rules_text
from hostler.views.terminal import harmless
from hostres.capacities import Capacities, capacities, set_capacities
from hostres.claims import MAX_DIGITS, describe
from hostres.configuration import configuration_path, read_configuration
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.revocation import revoke
from hostres.top import REVOKED, Row, snapshot

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


ENDS: Final = (signal.SIGTERM, signal.SIGHUP)
"""Signals that end a process without a word, unless it listens to them."""


def add(subparsers: "Subparsers") -> None:
    """Add the command and those below it."""
    parser = command_parser(
        subparsers,
        "machine",
        description="show or change what the machine has, take back a ticket",
        example="set cpu=6",
    )
    below = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    show = command_parser(
        below, "show", under="machine", description="show each capacity and where it comes from", example=""
    )
    change = command_parser(
        below,
        "set",
        under="machine",
        description="change capacities, in force at once and in the configuration",
        example="cpu=6 ffmpeg=3 gpu=1",
        more=("gpu=  # take back what was set",),
    )
    change.add_argument(
        "changes",
        nargs="+",
        metavar="RES=N",
        help="units of a resource; without a number, as in gpu=, take back what was set",
    )
    take = command_parser(
        below,
        "revoke",
        under="machine",
        description="take back a ticket that a process will not let go; its units are free at once",
        example="17",
    )
    take.add_argument("ticket", metavar="TICKET", help="a number that `hostler top` shows")
    for one in (show, change, take):
        add_json(one)


def run(args: argparse.Namespace) -> int:
    """Do it and show what came of it."""
    if args.action == "revoke":
        return _revoke(args)
    if args.action == "set":
        changes = _changes(args.changes)
        _require_person("change what the machine has")
        read = read_configuration(configuration_path(os.environ))
        check_configuration(read.path, read.settings)  # where it is wrong, nothing would begin with what is set
        with _ended_in_order():
            set_capacities(machine_folder(os.environ), os.environ, changes)
    found = capacities(machine_folder(os.environ), os.environ)
    sys.stdout.write(json.dumps(versioned(_to_json(found)), indent=2) + "\n" if args.json else _text(found))
    return 0


class _Ended(BaseException):
    """Somebody ends this process."""


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """Clean up before a signal ends this process."""
    heard: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        heard.append(number)
        raise _Ended

    before = {number: signal.signal(number, end) for number in ENDS if signal.getsignal(number) is signal.SIG_DFL}
    try:
        yield
    except _Ended:
        signal.signal(heard[0], signal.SIG_DFL)
        signal.raise_signal(heard[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _revoke(args: argparse.Namespace) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", args.ticket):
        raise HostlerError(
            Code.INVALID_DATA, f"{args.ticket!r} is not a ticket", "give its number, as in `hostler top`"
        )
    _require_person("take back a ticket")
    number = int(args.ticket)
    revoke(machine_folder(os.environ), number)
    rows = [row for row in snapshot(machine_folder(os.environ)).tickets if (row.ticket, row.state) == (number, REVOKED)]
    if args.json:
        shape = rows[0].to_json() if rows else {"ticket": number, "state": REVOKED, "processes": []}
        sys.stdout.write(json.dumps(versioned(shape), indent=2) + "\n")
    else:
        sys.stdout.write(_taken(number, rows))
    return 0


def _taken(number: int, rows: list[Row]) -> str:
    if not rows:
        return f"ticket {number} is taken back; nobody holds it open any more\n"
    lines = [f"ticket {number} ({describe(rows[0].claims)}) is taken back"]
    lines += [f"  still held open by pid {process.pid}: {process.command}" for process in rows[0].processes]
    return "".join(f"{line}\n" for line in lines)


def _changes(texts: list[str]) -> dict[str, int | None]:
    changes: dict[str, int | None] = {}
    for text in texts:
        name, equals, units = text.partition("=")
        if not (equals and re.fullmatch(rf"[0-9]{{0,{MAX_DIGITS}}}", units)):
            raise HostlerError(Code.INVALID_DATA, f"{text!r} is not a capacity", "write RES=UNITS, as in ffmpeg=2")
        if name in changes:
            raise HostlerError(Code.INVALID_DATA, f"{name} is set twice", "set each resource once")
        changes[name] = int(units) if units else None
    return changes


def _require_person(what: str) -> None:
    from hostler.principal import is_human, principal  # noqa: PLC0415  looks at all ancestors; showing needs none of it

    who = principal()
    if not is_human(who):
        raise HostlerError(Code.CONFLICT, f"{who} may not {what}", "it is a person's decision; ask the person")


def _to_json(found: Capacities) -> dict[str, object]:
    settings, niceness = found.settings, found.settings.niceness
    return {
        "profile": found.profile,
        "turnaround_s": found.turnaround_s,
        "folder": str(machine_folder(os.environ)),
        "configuration": str(configuration_path(os.environ)),
        "capacity": {
            one.name: {"units": one.units, "used": one.used, "source": one.source, "configured": one.configured}
            for one in found.resources
        },
        "claims": {name: dict(taken) for name, taken in settings.claims.takes.items()} if settings.claims else {},
        "memory": "claimed" if found.available_mb is None else "available",
        "available_mb": found.available_mb,
        "nice": niceness.nice if niceness else 0,
        "ionice": niceness.io if niceness else None,
    }


SOURCES = {
    "configuration": "the configuration",
    "decision": "`hostler machine set`, but not this configuration",
    "default": "the default of this machine",
    "program": "a program that set it",
}


def _text(found: Capacities) -> str:
    width = max((len(one.name) for one in found.resources), default=0)
    lines = [f"{'RESOURCE':{width}}  {'USED':>9}  {'CAPACITY':>9}  FROM"]
    for one in found.resources:
        source = SOURCES[one.source]
        if one.configured is not None:
            source += f"; the configuration says {one.configured}, which counts once the machine is idle"
        lines.append(f"{one.name:{width}}  {one.used:>9}  {one.units:>9}  {source}")
    lines += ["", *rules] if (rules := rules_text(found.settings, found.available_mb)) else []
    turn = "" if found.turnaround_s is None else f"; a turn takes {found.turnaround_s:.1f} s on average"
    lines += [
        "",
        f"profile {found.profile}{turn}",
        f"machine folder {harmless(str(machine_folder(os.environ)))}",
        f"configuration {harmless(str(configuration_path(os.environ)))}",
    ]
    return "".join(f"{line}\n" for line in lines)
