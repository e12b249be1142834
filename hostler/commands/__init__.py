"""The commands of `hostler`: one module each, with `add(subparsers)` and `run(args)`, imported when named."""

from collections.abc import Mapping
from keyword import iskeyword
from types import MappingProxyType
from typing import Final

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "plan, create and run a workflow here, with a live view",
        "plan": "compile a workflow and show what it would do, without doing it",
        "submit": "create a run and leave it to the background service",
        "resume": "go on with a run here",
        "watch": "look on while another process works on a run",
        "cancel": "stop a run or one node of it",
        "approve": "answer what waits for a person",
        "receipt": "let somebody else have one thing done later, see what was given, take it back",
        "retry": "let a failed or blocked node be tried again",
        "correct": "let a failed or blocked node run with another input",
        "recover": "end what a running node has got stuck in, and let it be tried again",
        "replay": "let trusted code that was interrupted run again",
        "settle": "say what became of an effect that may have happened",
        "work": "take work that waits for workers, and bring its result",
        "budget": "show what a run may spend, or let it spend more",
        "runs": "list runs, newest first",
        "show": "show a run and its nodes",
        "why": "say why a run or a node does not move",
        "events": "print the event log of a run",
        "logs": "print what the processes of a node wrote",
        "timeline": "draw what a run did when",
        "ui": "show runs and the machine in a browser, to look at",
        "verify": "prove runs, or an archive of one, from what is stored",
        "export": "write a run as one file",
        "import": "bring a run back from an archive, to be looked at",
        "gc": "take away old runs that have ended, and what belongs to nothing",
        "serve": "work on what is submitted, in the background",
        "service": "install, take away or show the background service",
        "exec": "run any command under machine-wide admission",
        "machine": "show or change what the machine has, take back a ticket",
        "top": "show who holds the machine and who waits",
        "doctor": "check the installation and the machine",
        "schema": "print the JSON Schema of what a command prints with --json",
        "completion": "print what makes a shell complete commands, runs and nodes",
    }
)
"""Name → summary, in the order in which `--help` lists them."""


def module_of(command: str) -> str:
    """Return the module of a command; a name that Python keeps for itself has a _ behind it there."""
    return f"hostler.commands.{command}{'_' if iskeyword(command) else ''}"
