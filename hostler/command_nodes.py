"""What a command node authors for itself: its words, its files and its policy."""

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from hostler.refusals import first_problem, invalid, require_utf8
from hostler.schemas import Schema
from hostres.errors import Code, HostlerError
from store.policy import Effect, Policy, Resume
from store.references import REF

COMMAND_SECONDS: Final = 3600.0
RESERVED: Final = "HOSTLER_"
VARIABLE: Final = re.compile(r"[^=\0]+")
OUTPUT_FILE: Final[Schema] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "bytes": {"type": "integer", "minimum": 0},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    },
    "required": ["path", "bytes", "sha256"],
    "additionalProperties": False,
}
WORD: Final[Schema] = {"type": ["string", "number"]}
COMMAND_INPUT: Final[Schema] = {
    "type": "object",
    "properties": {
        "argv": {"type": "array", "items": WORD},
        "env": {"type": "object", "additionalProperties": WORD},
        "stdin": {"type": "string"},
    },
    "additionalProperties": True,
}


def command_output(files: Mapping[str, str]) -> Schema:
    """Return the schema of the output of a command that leaves these files."""
    return {
        "type": "object",
        "properties": {
            "exit_code": {"type": "integer", "const": 0},
            "outputs": {
                "type": "object",
                "properties": dict.fromkeys(files, OUTPUT_FILE),
                "required": list(files),
                "additionalProperties": False,
            },
        },
        "required": ["exit_code", "outputs"],
        "additionalProperties": False,
    }


def command_policy(authored: Mapping[str, Any], subject: str) -> Policy:
    """Return the policy a command node authors.

    Raises:
        HostlerError: A claim or another word of it is not allowed (invalid-claims, invalid-data).

    """
    try:
        said = {word: given for word, given in authored.items() if word != "resume" or given is not None}
        policy = Policy.model_validate(said).authored
    except ValidationError as error:
        problem = first_problem(error)
        if error.errors(include_url=False)[0]["loc"][:1] == ("claims",):
            raise HostlerError(
                Code.INVALID_CLAIMS, f"{subject}: {problem}", "claim whole units from 1 of named resources"
            ) from error
        raise invalid(f"{subject}: {problem}", "use the words of the policy vocabulary") from error
    if policy.effect is Effect.TRUSTED_CODE or policy.resume is Resume.EXPLICIT_CODE_REPLAY:
        raise invalid(
            f"{subject}: trusted-code and explicit-code-replay are derived, for compute functions only",
            "choose another effect and resume class",
        )
    return policy


def output_files(authored: Mapping[Any, Any], subject: str) -> dict[str, str]:
    """Return name → path of the files a command leaves.

    Raises:
        HostlerError: A path leads out of the workspace (invalid-data).

    """
    return {_output_name(name, subject): _inside(path, f"{subject}: output {name}") for name, path in authored.items()}


def _output_name(name: Any, subject: str) -> str:
    if not isinstance(name, str) or not name:
        raise invalid(f"{subject}: {name!r} is no name of an output", "name each output")
    return require_utf8(name, f"{subject}: the output")


def _inside(path: Any, subject: str) -> str:
    text = path_text(path, subject)
    if text.startswith("/") or ".." in text.split("/") or text.strip("/") in {"", "."}:
        raise invalid(
            f"{subject} is {text!r}, which is no path inside the workspace", "give a relative path that stays in it"
        )
    return text


def path_text(value: Any, subject: str) -> str:
    """Return a path that an author gave as text.

    Raises:
        HostlerError: It is none (invalid-data).

    """
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or not text or "\0" in text:
        raise invalid(f"{subject} is {in_words(value)}, not a path", "give a path")
    return require_utf8(text, subject)


def check_variable(name: Any, subject: str) -> None:
    """Refuse a name that a command's environment cannot have, or that the host sets.

    Raises:
        HostlerError: invalid-data.

    """
    if not isinstance(name, str) or not VARIABLE.fullmatch(name) or name.startswith(RESERVED):
        raise invalid(
            f"{subject}: {name!r} cannot be set in its environment",
            f"use a name without = that does not begin with {RESERVED}",
        )
    require_utf8(name, f"{subject}: the variable")


def check_word(word: Any, subject: str, *, text_only: bool = False) -> None:
    """Refuse what cannot stand as one word of a command.

    Args:
        word: A template.
        subject: Whom an error names.
        text_only: Whether a number is refused too.

    Raises:
        HostlerError: invalid-data.

    """
    if isinstance(word, str):
        if "\0" in word:
            raise invalid(f"{subject} holds a NUL character", "leave it out")
        return
    number = isinstance(word, int | float) and not isinstance(word, bool) and not text_only
    if not number and not (isinstance(word, dict) and REF in word):
        kinds = "a text or a reference" if text_only else "a text, a number or a reference"
        raise invalid(f"{subject} is {in_words(word)}, not {kinds}", "write it as text")


def in_words(value: Any) -> str:
    """Return what kind of thing a value is, for an error."""
    names = {dict: "an object", list: "a list", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), repr(value))
