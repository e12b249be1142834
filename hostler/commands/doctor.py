"""`hostler doctor`: what is in force, where it comes from, and what is wrong with it."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.diagnosis.examination import Examination, examine
from hostler.diagnosis.in_force import DEFAULT, Setting
from hostler.views.terminal import harmless

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hostler.commands.arguments import Subparsers

RULES = "authority.rule"


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "doctor",
        description="show what is in force and from where, and check the installation, the disk and the machine",
        example="--json",
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print what is in force and what was found; nothing is changed."""
    found = examine()
    if args.json:
        print_json(found.to_json())
    else:
        for line in _lines(found):
            print_line(harmless(line))
    return found.exit_code


def _lines(found: Examination) -> Iterator[str]:
    if found.settings:
        yield "settings in force"
        yield from _table(found.settings)
        yield ""
    width = max(len(finding.name) for finding in found.findings)
    for finding in found.findings:
        yield f"{finding.mark:5} {finding.name:{width}}  {finding.said}"
        if finding.todo:
            yield f"{'':5} {'':{width}}  → {finding.todo}"
    marks = [finding.mark for finding in found.findings]
    wrong, notes = marks.count("WRONG"), marks.count("note")
    yield ""
    if wrong or notes:
        yield f"{wrong} wrong, {notes} to note; what helps stands after →"
    else:
        yield "nothing is wrong"


def _table(settings: "Sequence[Setting]") -> Iterator[str]:
    """Show the settings, the rules that everybody has as one."""
    own = [one for one in settings if (one.key, one.source) != (RULES, DEFAULT)]
    rows = [(one.key, one.value, one.origin) for one in own]
    rules = len(settings) - len(own)
    if rules:
        rows.append((RULES, f"{rules} rules that hold after those of the file", DEFAULT))
    keys, origins = max(len(row[0]) for row in rows), max(len(row[2]) for row in rows)
    for key, value, origin in rows:
        yield f"  {key:{keys}}  {origin:{origins}}  {value}"
