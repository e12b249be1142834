"""What `verify`, `export`, `import` and `gc` tell of what is stored."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import NotRequired

from typing_extensions import TypedDict

from scripts.shapes.common import Units, Versioned
from store.fields import NodeKey, RunId, Sha256
from store.lifecycle import RunStatus


class Problem(TypedDict):
    code: str
    table: str
    node: NotRequired[str]
    event: NotRequired[int]
    what: str


class OutputFile(TypedDict):
    code: str
    node: NodeKey
    path: str
    what: str


class Verdicts(TypedDict):
    file: NotRequired[str]
    run_id: str
    ok: bool
    status: RunStatus | None
    nodes: int
    events: int
    grants: int
    problems: list[Problem]
    files: list[OutputFile]


class Database(TypedDict):
    ok: bool
    problems: list[Problem]


class Verified(Versioned):
    ok: bool
    results: list[Verdicts]
    database: NotRequired[Database]


class Exported(Versioned):
    run_id: RunId
    file: str
    bytes: int
    sha256: Sha256


class BroughtIn(Versioned):
    run_id: RunId
    sha256: Sha256
    new: bool


class Bytes(TypedDict):
    files: int
    database: int
    reserved: int


class Collected(Versioned):
    dry_run: bool
    runs: list[RunId]
    plans: int
    bundles: int
    leftovers: int
    bytes: Bytes
    failed: list[str]
    kept: Units
