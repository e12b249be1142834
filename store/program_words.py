"""What may stand as the words of a program in a plan; whoever writes one, and whoever corrects it, is held to it. Pure.

What then comes in the place of a reference is looked at when it has come: `store.words`.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.plans import AgentExecutor, CommandExecutor
from store.references import REF
from store.words import secret_named

RESERVED: Final = "HOSTLER_"
VARIABLE: Final = re.compile(r"[^=\0]+")
LONGEST_OBJECTIVE: Final = 64 * 1024
WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"command": ("argv", "env", "stdin", "value"), "agent": ("argv", "env", "objective", "value")}
)
"""What the input of a node that runs a program is made of, by the kind of its executor."""


def check_program(executor: CommandExecutor | AgentExecutor, value: JsonValue) -> None:
    """Refuse what cannot be the whole input of a command or an agent.

    Args:
        executor: Whose.
        value: The input, with references.

    Raises:
        HostlerError: invalid-data.

    """
    kind, external = executor.kind, isinstance(executor, AgentExecutor) and executor.external
    if not isinstance(value, dict) or not value.keys() <= set(WORDS[kind]):
        whose = "an agent" if kind == "agent" else "a command"
        raise _invalid(f"the input of {whose} is an object of {', '.join(WORDS[kind])}", "give it those it is to have")
    argv, env = value.get("argv"), value.get("env") or {}
    if external and (argv is not None or env):
        raise _invalid("argv and env are for its program, and it has none", "leave them out")
    if not external and (not isinstance(argv, list) or not argv):
        raise _invalid("its argv is no list of words", "write at least its program, one word each")
    for index, word in enumerate(argv if isinstance(argv, list) else ()):
        check_word(word, f"argv[{index}]")
    if not isinstance(env, dict):
        raise _invalid("env is no object", "give names and their values")
    for name, word in env.items():
        check_variable(name, "env")
        secret = secret_named(word)
        if secret is None:
            check_word(word, f"env.{name}")
        else:
            check_variable(secret, f"env.{name}")
    if value.get("stdin") is not None:
        check_word(value["stdin"], "stdin", text_only=True)
    if kind == "agent":
        check_objective(value.get("objective"), "objective", "its objective")


def check_objective(asked: JsonValue, place: str, subject: str) -> None:
    """Refuse what an agent cannot be asked to do.

    Args:
        asked: A template.
        place: Where it stands, for an error.
        subject: What it is, for an error.

    Raises:
        HostlerError: invalid-data.

    """
    check_word(asked, place, text_only=True)
    if isinstance(asked, str) and not 0 < len(asked) <= LONGEST_OBJECTIVE:
        raise _invalid(f"{subject} has {len(asked)} characters", f"give it 1 to {LONGEST_OBJECTIVE}")


def check_variable(name: Any, subject: str) -> None:
    """Refuse a name that a program's environment cannot have, or that the host sets.

    Args:
        name: The name.
        subject: Whom an error names.

    Raises:
        HostlerError: invalid-data.

    """
    if not isinstance(name, str) or not VARIABLE.fullmatch(name) or name.startswith(RESERVED):
        raise _invalid(
            f"{subject}: {name!r:.200} cannot be set in its environment",
            f"use a name without = that does not begin with {RESERVED}",
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        shown = name.encode("utf-8", "replace").decode()
        raise _invalid(f"{subject}: the variable {shown!r:.200} is not UTF-8", "use another name") from None


def check_word(word: Any, subject: str, *, text_only: bool = False) -> None:
    """Refuse what cannot stand as one word of a program.

    Args:
        word: A template.
        subject: Whom an error names.
        text_only: Whether a number is refused too.

    Raises:
        HostlerError: invalid-data.

    """
    if isinstance(word, str):
        if "\0" in word:
            raise _invalid(f"{subject} holds a NUL character", "leave it out")
        return
    number = isinstance(word, int | float) and not isinstance(word, bool) and not text_only
    if not number and not (isinstance(word, dict) and REF in word):
        kinds = "a text or a reference" if text_only else "a text, a number or a reference"
        raise _invalid(f"{subject} is {in_words(word)}, not {kinds}", "write it as text")


def in_words(value: Any) -> str:
    """Return what kind of thing a value is, for an error."""
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "nothing"}
    return names.get(type(value)) or f"{value!r:.200}"


def _invalid(what: str, todo: str) -> HostlerError:
    return HostlerError(Code.INVALID_DATA, what, todo)
