"""The authority of nodes: a child stays within its parent, no two siblings own the same, nothing goes beyond. Pure.

A node without an envelope has its parent's; where none of its ancestors has one, nothing is kept from it.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from posixpath import basename, join, normpath
from typing import Final

from pydantic import JsonValue

from store.plans import Executor, OperationExecutor, PlannedNode
from store.policy import Effect
from store.publication import FILE
from store.terms import Envelope

HARMLESS: Final = frozenset({Effect.PURE, Effect.LOCAL_READ})
"""Effects for which no action need be named: what has them changes nothing."""
PROGRAMS: Final = frozenset({"command", "agent"})
"""What runs the program that its input names."""


def envelope_of(key: str, nodes: Mapping[str, PlannedNode]) -> Envelope | None:
    """Return what a node may do at most: its own envelope, or that of its nearest ancestor that has one.

    Args:
        key: The node.
        nodes: All of the plan, by key.

    """
    seen: set[str] = set()
    while key in nodes and key not in seen:
        seen.add(key)
        terms = nodes[key].terms
        if terms is None:
            return None
        if terms.authority is not None:
            return terms.authority
        key = terms.parent or ""
    return None


def problems(nodes: Sequence[PlannedNode], folder: str) -> Iterator[str]:
    """Yield what is wrong with the envelopes of a plan, each a sentence that begins with its node.

    Args:
        nodes: Of the plan.
        folder: Where relative paths belong.

    """
    if not any(node.terms is not None and node.terms.authority is not None for node in nodes):
        return
    by_key = {node.key: node for node in nodes}
    owners: dict[str | None, list[tuple[str, str]]] = {}
    for node in nodes:
        envelope = envelope_of(node.key, by_key)
        if envelope is not None:
            yield from (f"node {node.key}: {why}" for why in _beyond(node, envelope))
        if node.terms is None or node.terms.authority is None:
            continue
        parent = envelope_of(node.terms.parent, by_key) if node.terms.parent is not None else None
        if parent is not None:
            yield from (f"node {node.key}: {why}" for why in _outside(node.terms.authority, parent, folder))
        owned = owners.setdefault(node.terms.parent, [])
        owned += [(_folded(_absolute(path, folder)), node.key) for path in node.terms.authority.paths]
    for siblings in owners.values():
        yield from _overlaps(siblings)


def owns(envelope: Envelope, path: str, folder: str) -> bool:
    """Say whether a file or folder is one of the envelope's own.

    Args:
        envelope: The envelope.
        path: Absolute, or relative to *folder*.
        folder: Where relative paths belong.

    """
    return any(_within(_absolute(path, folder), _absolute(each, folder)) for each in envelope.paths)


def may_run(envelope: Envelope, program: str) -> bool:
    """Say whether a program may be run: by its path as it is written, or by its name where only that is named."""
    return program in envelope.commands or ("/" not in program and basename(program) in envelope.commands)


def beyond_keys(envelope: Envelope, keys: Sequence[str], folder: str) -> str | None:
    """Return the first file that a node is going to publish outside its envelope, None if there is none."""
    files = (key.removeprefix(FILE) for key in keys if key.startswith(FILE))
    return next((path for path in files if not owns(envelope, path, folder)), None)


def beyond_commands(envelope: Envelope, executor: Executor, value: JsonValue) -> str | None:
    """Return the program of a command or an agent that its envelope does not name; None if that cannot be said yet.

    Args:
        envelope: The envelope.
        executor: What runs.
        value: Its input, with references: a program that comes from another node is known when it starts.

    """
    argv = value.get("argv") if executor.kind in PROGRAMS and isinstance(value, dict) else None
    program = argv[0] if isinstance(argv, list) and argv else None
    if isinstance(program, bool) or not isinstance(program, str | int | float) or may_run(envelope, str(program)):
        return None
    return str(program)


def _beyond(node: PlannedNode, envelope: Envelope) -> Iterator[str]:
    """Yield what a node would do that its envelope does not name."""
    executor, effect = node.executor, node.policy.effect
    names = {effect.value, executor.operation if isinstance(executor, OperationExecutor) else executor.kind}
    if executor.kind != "gate" and effect not in HARMLESS and not names & set(envelope.actions):
        yield f"its authority names neither of the actions {' and '.join(sorted(names))}"
    program = beyond_commands(envelope, executor, node.input)
    if program is not None:
        yield f"its authority does not name the command {program}"


def _outside(child: Envelope, parent: Envelope, folder: str) -> Iterator[str]:
    """Yield in what respects a child's envelope is not within its parent's."""
    for what, of_child, of_parent in (
        ("action", child.actions, parent.actions), ("command", child.commands, parent.commands),
    ):  # fmt: skip
        yield from (f"the {what} {name} is not in its parent's authority" for name in of_child if name not in of_parent)
    yield from (f"the path {path} is not in its parent's authority" for path in child.paths
                if not owns(parent, path, folder))  # fmt: skip
    for name, provider in child.providers.items():
        above = parent.providers.get(name)
        if above is None or above.mode != provider.mode:
            yield f"the provider {name} in mode {provider.mode} is not in its parent's authority"
        else:
            more = sorted(set(provider.capabilities) - set(above.capabilities))
            yield from (f"{each} of provider {name} is not in its parent's authority" for each in more)


def _overlaps(siblings: list[tuple[str, str]]) -> Iterator[str]:
    """Yield each pair of siblings that own the same, or one a part of the other's; case makes no difference."""
    ordered = sorted((path.rstrip("/") + "/", key) for path, key in siblings)
    open_paths: list[tuple[str, str]] = []
    for path, key in ordered:
        while open_paths and not path.startswith(open_paths[-1][0]):
            open_paths.pop()
        if open_paths and open_paths[-1][1] != key:
            yield f"node {key}: {path.rstrip('/')} overlaps what its sibling {open_paths[-1][1]} owns"
        open_paths.append((path, key))


def _absolute(path: str, folder: str) -> str:
    return "/" + normpath(join(folder, path)).lstrip("/")


def _within(path: str, owned: str) -> bool:
    return path == owned or path.startswith(owned.rstrip("/") + "/")


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()
