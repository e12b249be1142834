"""Runs that older programs wrote: sound as they are, in the file and as archives, and nothing in them written anew.

`tests/store/schemas/written/` holds, for each schema version, what the last program of that version left (as
`schema_sample.dump` writes it) after `hostler run` of the three workflows beside it: one that completed, one that waits
for a person, and one whose effect is in doubt.
"""

import io
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from store.archive.importing import bring_in
from store.archive.reading import opened
from store.home import Home
from store.reader import Reader
from store.run_store import RunStore
from store.schema import SCHEMA_VERSION
from store.values import Domain, digest_bytes
from store.verification.findings import Fault
from tests.store.keeping.support import archive_of, proved
from tests.store.schema_sample import FOLDER
from tests.store.support import CLOCK

RECORDS = (
    "SELECT run_id, record FROM runs ORDER BY run_id",
    "SELECT sha256, content FROM graph_plans ORDER BY sha256",
    "SELECT sha256, content FROM node_plans ORDER BY sha256",
    "SELECT sha256, record FROM nodes ORDER BY sha256",
)


def written(version: int, folder: Path) -> Home:
    """Return a home as the program of that schema version left it."""
    home = Home.open(folder, create=True)
    with closing(sqlite3.connect(home.database)) as connection:
        connection.executescript((FOLDER / "written" / f"{version}.sql").read_text(encoding="utf-8"))
    home.database.chmod(0o600)
    return home


def records(home: Home) -> list[list[tuple[str, bytes]]]:
    with closing(sqlite3.connect(home.database)) as connection:
        return [connection.execute(query).fetchall() for query in RECORDS]


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_the_runs_of_every_released_version_are_sound_and_so_are_their_archives(tmp_path: Path, version: int) -> None:
    """Fields that came since are absent from them; they are brought up to date without a byte of them changed."""
    home = written(version, tmp_path / "home")
    before = records(home)
    RunStore.open(home, clock=CLOCK).close()
    with Reader.open(home) as reader:
        runs = {row.workflow: row.run_id for row in reader.runs()}
    assert set(runs) == {"hello", "letter", "ends"}
    other = Home.open(tmp_path / "other", create=True)
    for run in runs.values():
        assert proved(home, run).problems == ()
        archive = archive_of(home, run)
        with opened(io.BytesIO(archive), "x.tar") as found:
            assert found.verdict.problems == ()
        assert bring_in(other, io.BytesIO(archive), "x.tar", clock=CLOCK).new
        assert proved(other, run).problems == ()
        assert archive_of(other, run) == archive
    assert records(home) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b",", b", ", 1),
        lambda data: b'{"status":"completed",' + data[1:].replace(b',"status":"completed"', b""),
        lambda data: data.replace(b'"attempt":1', b'"attempt":1,"attempt":1'),
        lambda data: data.replace(b'"attempt":1', b'"attempt":1,"attempts":1'),
        lambda data: data.replace(b'"attempt":1', b'"attempt":1.0'),
        lambda data: data.replace(b'"key":"greet",', b""),
        lambda data: data.replace(b"greet", b"gree\\u0074"),
    ],
    ids=["space", "order", "twice", "unknown", "number", "missing", "escape"],
)
@pytest.mark.parametrize("version", [1, SCHEMA_VERSION])
def test_a_record_in_another_form_than_the_canonical_one_is_still_found(
    tmp_path: Path, version: int, change: Callable[[bytes], bytes]
) -> None:
    """Its digest is that of what stands there, so only its form tells."""
    home = written(version, tmp_path / "home")
    RunStore.open(home, clock=CLOCK).close()
    with closing(sqlite3.connect(home.database)) as connection, connection:
        query = "SELECT r.run_id, n.run, n.record FROM runs AS r JOIN nodes AS n ON n.run = r.run WHERE n.key = 'greet'"
        ((run_id, run, data),) = connection.execute(query).fetchall()
        changed = change(data)
        assert changed != data
        values = changed, digest_bytes(Domain.RECORD, changed), run
        connection.execute("UPDATE nodes SET record = ?, sha256 = ? WHERE run = ? AND key = 'greet'", values)
    assert next((one.fault, one.table) for one in proved(home, run_id).problems) == (Fault.MALFORMED, "nodes")
