"""`hostler doctor`: what is in force, where it comes from, and what is wrong with it."""

import argparse
from typing import TYPE_CHECKING

from hostler.commands.arguments import add_json, command_parser
from hostler.commands.output import print_json, print_line
from hostler.diagnosis import examine
from hostler.views.terminal import harmless

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers, "doctor", description="check the installation and the machine", example="--json"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings; nothing is made or changed."""
    findings = examine()
    code = max((finding.exit_code for finding in findings), default=0)
    if args.json:
        print_json({"ok": code == 0, "findings": [finding.to_json() for finding in findings]})
        return code
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print_line(harmless(f"{finding.mark:5} {finding.name:{width}}  {finding.said}"))
        if finding.todo:
            print_line(harmless(f"{'':5} {'':{width}}  → {finding.todo}"))
    return code
