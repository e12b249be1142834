"""`hostler completion`: what makes a shell complete commands, options, runs and nodes."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

import hostler.completing
from hostler.commands.arguments import command_parser
from hostler.commands.output import print_line

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

SHELLS: Final = ("bash", "zsh", "fish")
FOLDER: Final = Path(hostler.completing.__file__).parent


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "completion",
        description="print what makes a shell complete commands, options, runs and nodes",
        example='bash   # in ~/.bashrc: eval "$(hostler completion bash)"',
        more=(
            'zsh    # in ~/.zshrc, after compinit: eval "$(hostler completion zsh)"',
            "fish   # in ~/.config/fish/config.fish: hostler completion fish | source",
        ),
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(args: argparse.Namespace) -> int:
    """Print the script of that shell."""
    print_line((FOLDER / f"{args.shell}.sh").read_text(encoding="utf-8").rstrip("\n"))
    return 0
