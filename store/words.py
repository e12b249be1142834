"""What the program of a node is given: its words, as the plan of its node and the outputs it refers to make them. Pure.

Only the plan says what is a secret. What came out of a node or into the run is data: it is a text or a number, which
stands where a word stands, or it is refused, whatever it looks like.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue

from hostres.errors import Code, HostlerError
from store.lazy_dataclass import dataclass
from store.plans import AgentExecutor, CommandExecutor, Executor
from store.references import SECRET

_KINDS: Final = {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}
_TODO: Final = "refer to a field that holds "


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of a program.

    Attributes:
        argv: Program and arguments; empty for work that others take.
        env: What is added to its environment, the secrets apart.
        secrets: Variable → the variable of the host's environment whose value it gets when it starts.
        stdin: What it reads; None is nothing.

    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    secrets: Mapping[str, str]
    stdin: str | None


def secret_named(value: Any) -> str | None:
    """Return the variable that `{"$secret": NAME}` names; None for anything else."""
    if isinstance(value, Mapping) and set(value) == {SECRET} and isinstance(value[SECRET], str):
        return value[SECRET]
    return None


def secrets_of_plan(executor: Executor, planned: JsonValue) -> dict[str, str]:
    """Return the variables of a node's program that are secrets, each with the variable of the host it comes from.

    Args:
        executor: What runs.
        planned: The input of the node with its references, as whoever wrote the plan wrote it; never a resolved one.

    """
    if not isinstance(executor, CommandExecutor | AgentExecutor) or not isinstance(planned, dict):
        return {}
    env = planned.get("env")
    named = {name: secret_named(value) for name, value in (env if isinstance(env, dict) else {}).items()}
    return {name: secret for name, secret in named.items() if secret is not None}


def words_of(executor: Executor, planned: JsonValue, given: JsonValue) -> Words:
    """Return the words of a node's program.

    Args:
        executor: A command's, or an agent's.
        planned: The input of its node with its references.
        given: The same with what they refer to.

    Raises:
        HostlerError: invalid-data, where something that cannot be a word came in the place of one.

    """
    template, resolved = (each if isinstance(each, dict) else {} for each in (planned, given))
    secrets = secrets_of_plan(executor, planned)
    argv, env = resolved.get("argv") or [], resolved.get("env") or {}
    if not isinstance(argv, list) or not isinstance(env, dict):
        raise _refusal("argv" if isinstance(env, dict) else "env", argv if isinstance(env, dict) else env, "words")
    if isinstance(executor, AgentExecutor):
        _text("objective", resolved.get("objective"))
    return Words(
        argv=tuple(_word(f"argv[{index}]", word) for index, word in enumerate(argv)),
        env={name: _word(f"env.{name}", word) for name, word in env.items() if name not in secrets},
        secrets=secrets,
        stdin=None if template.get("stdin") is None else _text("stdin", resolved.get("stdin")),
    )


def _word(name: str, value: JsonValue) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _refusal(name, value, "text or a number")
    if "\0" in str(value):
        raise HostlerError(Code.INVALID_DATA, f"{name} holds a NUL character", "refer to a text without one")
    return str(value)


def _text(name: str, value: JsonValue) -> str:
    if not isinstance(value, str):
        raise _refusal(name, value, "text")
    return value


def _refusal(name: str, value: JsonValue, wanted: str) -> HostlerError:
    kind = _KINDS.get(type(value)) or str(value)
    return HostlerError(Code.INVALID_DATA, f"{name} is {kind}, not {wanted}", f"{_TODO}{wanted}")
