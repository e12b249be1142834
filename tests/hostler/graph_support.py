"""A graph file for tests, changed in one place, and how it is compiled or refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from hostler.compiler import Compiled, compile_workflow
from hostler.loading import load
from hostres.errors import Code, HostlerError

GRAPH: dict[str, Any] = {
    "workflow": {"id": "demo", "version": 2},
    "inputs": {"text": {"type": "string"}, "times": {"type": "integer", "minimum": 1, "default": 3}},
    "nodes": [
        {
            "key": "write",
            "label": "Write it",
            "input": {"times": {"$input": "times"}},
            "executor": {
                "command": {
                    "argv": ["sh", "-c", "cat > out.txt", {"$input": "times"}],
                    "stdin": {"$input": "text"},
                    "env": {"LANG": "C"},
                    "cwd": "work",
                    "outputs": {"out": "out.txt"},
                    "claims": {"cpu": 1},
                    "effect": "local-read",
                    "resume": "verified-receipt",
                    "max_seconds": 60,
                }
            },
        },
        {
            "key": "look",
            "input": {"letter": {"$ref": {"node": "write", "path": ["outputs", "out", "path"]}}},
            "executor": {"gate": "final-delivery"},
        },
        {
            "key": "read",
            "after": ["look"],
            "executor": {"command": {"argv": ["cat", {"$ref": {"node": "write", "path": ["outputs", "out", "path"]}}]}},
        },
    ],
    "outputs": {"code": {"$ref": {"node": "read", "path": ["exit_code"]}}, "said": {"$input": "text"}},
}


def write(folder: Path, document: Any, name: str = "graph.json") -> Path:
    path = folder / name
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def compiled(path: Path, **inputs: Any) -> Compiled:
    return compile_workflow(load(path.name, folder=path.parent), inputs, folder=path.parent)


def refusal(path: Path, code: Code = Code.INVALID_DATA, **inputs: Any) -> str:
    with pytest.raises(HostlerError) as caught:
        compiled(path, **({"text": "a"} | inputs))
    assert caught.value.code is code
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line or "workflow demo" in line or "node " in line
    return line


def changed(**changes: Any) -> dict[str, Any]:
    return {**GRAPH, **changes}


def node(**changes: Any) -> dict[str, Any]:
    return changed(nodes=[{"key": "a", "executor": {"command": {"argv": ["true"]}}, **changes}], outputs=None)


def command(**changes: Any) -> dict[str, Any]:
    return node(executor={"command": {"argv": ["true"], **changes}})
