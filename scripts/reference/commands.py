"""The page of all commands, from the parser that reads them."""

import argparse
import importlib
from collections.abc import Iterator
from typing import Final

from hostler.commands import COMMANDS, module_of
from scripts.reference.tables import table

HEAD: Final = """\
# Commands

*Written from the parser by `scripts/docs`.*

Each command says the same with `--help`. RUN is any unique prefix of a run's id, or `-` for the newest; WORKFLOW is a
Python file (`file.py` or `file.py:name`), `package.module:name`, or a [graph file](../graph-files.md). With `--json`
standard output holds that alone: one object, or one a line for `events` and `--follow`. `--debug` before the command
shows the traceback of an error.

## Exit codes

| code | means |
| --- | --- |
| 0 | completed; of other commands: done |
| 1 | failed, partly failed, or incompatible |
| 2 | wrong use: also a workflow, an input or claims that are wrong, and stored data that is not what was stored |
| 3 | waits for a person; `watch`: also a run that nobody works on |
| 4, 5 | not found; conflict |
| 69, 70, 73 | unavailable; gave up; unsafe state, a damaged file, or other capacities than the machine in use has |
| 75 | waited too long for the machine |
| 130 | stopped or cancelled |

`hostler exec` gives its command's own code; 126 if that cannot be executed, 127 if it is not found, 128 + n if signal n
ended it. A signal that is sent to it, any that ends or stops a process and can be caught, reaches the command alone,
not what that has started; so does HUP when its terminal is closed, where there is no shell to pass that on. Ctrl-C
reaches all, as always. What goes on in the background is named and keeps its place. Which error gives which code stands
in [errors](errors.md).

A resumed run goes on with its own code. An operation comes from the recorded workflow file if its version, policy and
schemas are still as planned, so that a mended body counts; else from the copy stored with the run, else from what is
installed. Compute code always comes from the stored copy: mend it and start a new run. Where none of these matches, the
run is left as it is, and `hostler why` names what is missing; `hostler resume RUN --accept-incompatible` goes on
without the nodes that need it.
"""


def commands_page() -> str:
    """Return the page."""
    return HEAD + "".join(_section(parser, level) for parser, level in _parsers())


def whole_parser() -> argparse.ArgumentParser:
    """Return a parser that knows all commands; the program's own knows the one that it was given."""
    parser = argparse.ArgumentParser(prog="hostler")
    subparsers = parser.add_subparsers(required=True)
    for name in COMMANDS:
        importlib.import_module(module_of(name)).add(subparsers)
    return parser


def below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return what may follow a command: name → its parser; empty for most."""
    for action in parser._actions:  # noqa: SLF001  argparse has no other way to look at what it was told
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return {}


def _parsers() -> Iterator[tuple[argparse.ArgumentParser, int]]:
    """Yield the parser of each command and of what is below it, with the level of its heading."""
    for command in below(whole_parser()).values():
        yield command, 2
        yield from ((each, 3) for each in below(command).values())


def _section(parser: argparse.ArgumentParser, level: int) -> str:
    own = [action for action in parser._actions if action.help is not argparse.SUPPRESS]  # noqa: SLF001
    rows = [
        (f"`{_name(action)}`", _help(parser, action))
        for action in own
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)  # noqa: SLF001
    ]
    parts = [f"{'#' * level} {parser.prog.removeprefix('hostler ')}", (parser.description or "").strip()]
    parts += [f"`{_usage(parser)}`"]
    parts += [table("argument", "is", rows=rows).rstrip()] if rows else []
    parts += [_examples(parser.epilog or "")]
    return "".join(f"\n{part}\n" for part in parts if part)


def _name(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    return ", ".join(f"{option} {value}".strip() for option in action.option_strings) or value


def _value(action: argparse.Action) -> str:
    if action.metavar is None and action.choices is not None:
        return "{" + ",".join(str(choice) for choice in action.choices) + "}"
    return str(action.metavar or action.dest.upper())


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = (action.help or "") % {**vars(action), "prog": parser.prog}
    repeated = isinstance(action, argparse._AppendAction) and "several times" not in text and "repeated" not in text  # noqa: SLF001
    return text + ("; may be given several times" if repeated else "") + ("; required" if _is_needed(action) else "")


def _is_needed(action: argparse.Action) -> bool:
    return bool(action.option_strings) and action.required


def _usage(parser: argparse.ArgumentParser) -> str:
    if parser.usage is not None:
        return parser.usage
    words = [parser.prog]
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            words.append("{" + ",".join(action.choices) + "} …")
        elif not isinstance(action, argparse._HelpAction) and not action.option_strings:  # noqa: SLF001
            name = _value(action)
            words.append({"?": f"[{name}]", "*": f"[{name}]…", "+": f"{name}…"}.get(str(action.nargs), name))
    options = [
        action
        for action in parser._actions  # noqa: SLF001
        if action.option_strings and not isinstance(action, argparse._HelpAction)  # noqa: SLF001
    ]
    words += [_name(action).split(", ")[0] for action in options if _is_needed(action)]
    words += ["[OPTION]…"] if any(not _is_needed(action) for action in options) else []
    return " ".join(words)


def _examples(epilog: str) -> str:
    """Return what the end of a help says: lines with a command, each with what is said of it, and others."""
    lines = [line.strip() for line in epilog.splitlines() if line.strip(" :\n") not in {"", "example", "examples"}]
    commands = [line for line in lines if "hostler " in line]
    text = [line for line in lines if line not in commands]
    one = len(commands) == 1
    return "\n".join([*text, *(f"{'Example: ' if one else '- '}{_command(line)}" for line in commands)])


def _command(line: str) -> str:
    before, found, rest = line.partition("hostler ")
    command, _, said = rest.partition(" #")
    before = before.strip().removeprefix("example:").strip()
    return "".join(
        [
            f"{before} " if before else "",
            f"`{found}{command.strip()}`",
            f", {said.strip()}" if said.strip() else "",
        ]
    )
