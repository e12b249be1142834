"""The words of the command line as a table, from the parsers: commands, options, and what each argument stands for.

Each command is {about, options: {option: {about, takes?}}, arguments: [{takes, many?}], below?: {action: command}}.
`takes` is a list of words to choose from, or the kind of a thing: run, node, file, program, resource, ticket, schema,
or text, for which there is nothing to offer.
"""

# ruff: noqa: SLF001  argparse tells of its parsers in no other way
import argparse
from typing import Any, Final

from hostler.command_line import below, parser_of
from hostler.commands import COMMANDS

KINDS: Final = {
    "run": "run", "before": "run", "node": "node", "claim": "resource", "changes": "resource", "ticket": "ticket",
    "workflow": "file", "input_file": "file", "input": "file", "file": "file", "completed": "file", "result": "file",
    "argv": "program", "targets": "run-or-file", "name": "schema", "out": "file", "output": "file",
}  # fmt: skip
"""Name of an argument → what it stands for."""
TEXT: Final = "text"


def vocabulary() -> dict[str, Any]:
    """Return the table of the whole command line."""
    top = _command(parser_of(""), "")
    top["below"] = {
        name: _command(below(parser_of(name))[name], summary, of=name) for name, summary in COMMANDS.items()
    }
    return top


def _command(parser: argparse.ArgumentParser, about: str, *, of: str = "") -> dict[str, Any]:
    shape: dict[str, Any] = {"about": about, "options": {}, "arguments": []}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            if of:
                shape["below"] = {
                    name: _command(each, (each.description or "").rstrip("."), of=of)
                    for name, each in action.choices.items()
                }
        elif not action.option_strings:
            many = {"many": True} if action.nargs in ("*", "+", argparse.REMAINDER) else {}
            shape["arguments"].append({"takes": _takes(action, of), **many})
        else:
            told = {"about": "" if action.help in (None, argparse.SUPPRESS) else action.help % vars(action)}
            if action.nargs != 0:
                told["takes"] = _takes(action, of)
            shape["options"].update(dict.fromkeys(action.option_strings, told))
    return shape


def _takes(action: argparse.Action, command: str) -> Any:
    if action.choices is not None:
        return [str(choice) for choice in action.choices]
    if action.dest == "name" and command != "schema":
        return TEXT
    return KINDS.get(action.dest, TEXT)
