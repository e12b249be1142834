"""A small store of each schema version, as SQL text: a finished run, and one whose owner died.

`python -m tests.store.schema_sample` writes the text of the version that the program has now. Do so once for each
version, when it is released; the text never changes after that.
"""

import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from store import lifecycle
from store.contracts import GrantAction, RequestKind, Summary
from store.home import Home
from store.lifecycle import RunStatus, Status
from store.requests import cancel_id, post
from store.schema import SCHEMA_VERSION
from store.transactions import Claimed
from tests.store.support import (
    CLOCK,
    NOTE,
    Setting,
    finish_node,
    grant_of,
    moved,
    node_plan,
    plan_of,
    receipt_of,
    request_of,
)

FOLDER: Final = Path(__file__).parent / "schemas"
VALUE: Final[JsonValue] = {"text": "größer als ein Wort", "numbers": [1, 2.5, None, True]}


def restore(version: int, home: Home) -> None:
    """Make the database of that version in *home*."""
    with closing(sqlite3.connect(home.database)) as connection:
        connection.executescript((FOLDER / f"{version}.sql").read_text(encoding="utf-8"))
    home.database.chmod(0o600)


def fill(folder: Path) -> Path:
    """Make a store with everything in it that a table holds; return its file."""
    setting = Setting(folder)
    _finished(setting, setting.claimed(plan_of({"a": []}).model_copy(update={"workflow": "finished"})))
    _interrupted(
        setting, setting.claimed(plan_of({"a": [], "b": ["a"]}).model_copy(update={"workflow": "interrupted"}))
    )
    setting.close()
    return setting.home.database


def _finished(setting: Setting, claimed: Claimed) -> None:
    done = finish_node(setting, claimed, "a", VALUE)
    summary = Summary(status=RunStatus.COMPLETED, counts=lifecycle.counts({Status.COMPLETED: 1}), outputs=None)
    setting.accept(claimed, nodes=(done,), summary=summary, release=True)


def _interrupted(setting: Setting, claimed: Claimed) -> None:
    run = claimed.fence.run_id
    finish_node(setting, claimed, "a", VALUE)
    frozen = node_plan(run, "b", [1])
    waiting = moved(claimed.nodes[1], Status.READY, plan_sha256=frozen.sha256)
    grant = grant_of(run, "b", GrantAction.EFFECT, plan_sha256=frozen.sha256)
    receipt = receipt_of(run, "b", frozen.sha256)
    setting.accept(claimed, plans=(frozen,), nodes=(waiting,), grants=(grant,), receipts=(receipt,), events=(NOTE,))
    post(setting.home, request_of(run, RequestKind.CANCEL, request_id=cancel_id(run)), clock=CLOCK)


def dump(database: Path) -> str:
    """Return a database as SQL text, with what `iterdump` leaves out."""
    with closing(sqlite3.connect(database)) as connection:
        numbers = [
            f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*connection.iterdump(), *numbers, ""])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        text = dump(fill(Path(temporary) / "home"))
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{SCHEMA_VERSION}.sql").write_text(text, encoding="utf-8")
    sys.stdout.write(f"wrote {FOLDER / f'{SCHEMA_VERSION}.sql'}\n")
