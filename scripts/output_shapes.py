"""Which type each command prints with `--json`; `scripts/write-tables` writes `hostler/output_schemas/` from them."""

# ruff: noqa: D101  each class is called like what it tells, and its fields are those of the JSON
from typing import Any, Final, Union

from pydantic import TypeAdapter

from hostler.json_format import FIELD, FORMAT_VERSION
from scripts.shapes.common import Versioned
from scripts.shapes.machine import Findings, Machine, TicketGone, TicketRevoked, Top
from scripts.shapes.planning import Plan, Submitted
from scripts.shapes.requests import (
    Answered,
    Answers,
    Budgeted,
    Cancelled,
    Questions,
    ReceiptGiven,
    ReceiptRevoked,
    Receipts,
)
from scripts.shapes.runs import Detached, Drawn, Event, LogLine, Logs, Run, Runs, Why
from scripts.shapes.service import Address, ServiceStatus, UnitInstalled, UnitRemoved
from scripts.shapes.stored import BroughtIn, Collected, Exported, Verified
from scripts.shapes.work import Work, WorkGivenBack, WorkKept, WorkSettled


class Schemas(Versioned):
    commands: list[str]


SHAPES: Final[dict[str, Any]] = {
    "run": Union[Run, Detached],  # noqa: UP007 (both are types at run time only)
    "plan": Plan,
    "submit": Submitted,
    "resume": Run,
    "watch": Run,
    "cancel": Cancelled,
    "approve": Union[Answers, Questions],  # noqa: UP007
    "receipt create": ReceiptGiven,
    "receipt list": Receipts,
    "receipt revoke": ReceiptRevoked,
    "retry": Answered,
    "correct": Answered,
    "recover": Answered,
    "replay": Answered,
    "settle": Answered,
    "work next": Work,
    "work beat": WorkKept,
    "work submit": WorkSettled,
    "work give-back": WorkGivenBack,
    "budget": Budgeted,
    "runs": Runs,
    "show": Run,
    "why": Why,
    "events": Event,
    "logs": Union[Logs, LogLine],  # noqa: UP007
    "timeline": Drawn,
    "ui": Address,
    "verify": Verified,
    "export": Exported,
    "import": BroughtIn,
    "gc": Collected,
    "service install": UnitInstalled,
    "service uninstall": UnitRemoved,
    "service status": ServiceStatus,
    "machine show": Machine,
    "machine set": Machine,
    "machine revoke": Union[TicketRevoked, TicketGone],  # noqa: UP007
    "top": Top,
    "doctor": Findings,
    "schema": Schemas,
}
"""Command, with its action → what one object of it looks like; of `events` and `logs --follow` one line."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(command: str) -> dict[str, Any]:
    """Return the JSON Schema of what a command prints with `--json`."""
    found = TypeAdapter(SHAPES[command]).json_schema(mode="serialization")
    return {"$schema": DIALECT, "title": f"hostler {command} --json", FIELD: FORMAT_VERSION, **_open(found)}


def _open(schema: Any) -> Any:
    """Return a schema that lets further fields pass, as readers should, without names that are only ours."""
    match schema:
        case dict():
            return {name: _open(value) for name, value in schema.items() if not _is_ours(name, value)}
        case list():
            return [_open(each) for each in schema]
        case _:
            return schema


def _is_ours(name: str, value: Any) -> bool:
    return (name == "additionalProperties" and value is False) or (name == "title" and isinstance(value, str))
