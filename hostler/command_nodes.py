"""What a command node authors for itself: its words, its files and its policy."""

import os
from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from hostler.refusals import first_problem, invalid, require_utf8
from hostler.schemas import Schema
from hostres.errors import Code, HostlerError
from store.policy import Effect, Policy, Resume
from store.program_words import in_words

COMMAND_SECONDS: Final = 3600.0
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
