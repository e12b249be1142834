"""Runs with something of everything in them, worked on by a real host."""

import contextlib
import io
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostler.config import Config
from store.archive.exporting import write_archive
from store.home import Home
from store.proving import prove
from store.reader import Reader
from store.snapshots import snapshot
from store.verification.findings import Verdict

WORKFLOW = """
from pathlib import Path

from pydantic import BaseModel

from hostler import OperationFailed, Policy, compute, operation, workflow


class Text(BaseModel):
    text: str


@operation("test.upper", version=1, policy=Policy())
def upper(ctx, input: Text) -> Text:
    return Text(text=input.text.upper())


@operation("test.grows", version=1, policy=Policy(effect="local-read"))
def grows(ctx, input: Text) -> Text:
    return Text(text=input.text * 100_000)


@operation("test.flaky", version=1, policy=Policy(effect="local-read"))
def flaky(ctx, input: Text) -> Text:
    marker = ctx.path("mended")
    if not marker.exists():
        raise OperationFailed("unavailable", "not yet", "make the file mended")
    return input


@operation("test.pays", version=1, policy=Policy(effect="paid-cloud", resume="ambiguous-after-dispatch"))
def pays(ctx, input: Text) -> Text:
    return input


@compute("length")
def length(value):
    return {"length": len(value["text"])}


@workflow("everything", version=1)
def everything(build, name: str):
    first = build.call(upper, key="a/upper", input={"text": name})
    large = build.call(grows, key="large", input={"text": first["text"]})
    size = build.call(length, key="size", input={"text": large["text"]})
    flake = build.call(flaky, key="flaky", input={"text": first["text"]})
    build.call(upper, key="after", input={"text": flake["text"]})
    paid = build.call(pays, key="paid", input={"text": name})
    build.command(
        ["sh", "-c", "echo said; echo made > made.txt"], key="made", outputs={"file": "made.txt"},
        claims={"cpu": 1}, effect="local-derived-write",
    )
    build.gate("publication", key="gate", input={"what": paid["text"]})
    return {"length": size["length"], "name": first["text"]}
"""


def everything(folder: Path) -> str:
    """Make a run with something of everything in the home of the environment; it has completed.

    It is approved with a receipt, failed, was retried, asked in vain to be retried, corrected, and resumed between all
    of these.
    """
    path = folder / "workflow.py"
    path.write_text(WORKFLOW, encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        assert main(["run", str(path), "-i", "name=ann", "--jobs", "2"]) == 3
        with Reader.open(Home.open(Config.load().home, create=False)) as reader:
            run_id = reader.find("-")
            waiting = {node.key: node.plan_sha256 for node in reader.nodes(run_id)}
        give = ["receipt", "create", run_id, "paid", "--for", "agent:night", "--plan", str(waiting["paid"])]
        assert main([*give, "--id", "night"]) == 0
        assert main([*give, "--id", "spare"]) == 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOSTLER_PRINCIPAL", "night")
            assert main(["approve", run_id, "paid", "--receipt", "night"]) == 0
        assert main(["receipt", "revoke", run_id, "spare"]) == 0
        main(["resume", run_id])
        assert main(["retry", run_id, "flaky"]) == 0
        main(["resume", run_id])
        (folder / "mended").touch()
        (folder / "input.json").write_text('{"text": {"$ref": {"node": "a/upper", "path": ["text"]}}}')
        assert main(["correct", run_id, "flaky", "--input", "input.json", "--reason", "as it was"]) == 0
        main(["resume", run_id])
        with Reader.open(Home.open(Config.load().home, create=False)) as reader:
            waiting = {node.key: node.plan_sha256 for node in reader.nodes(run_id)}
        assert main(["approve", run_id, "gate", "--plan", str(waiting["gate"])]) == 0
        assert main(["resume", run_id]) == 0
    finally:
        os.chdir(before)
    return run_id


def copied(home: Home, folder: Path) -> Home:
    """Return a copy of a home that nobody works on."""
    shutil.copytree(home.root, folder, ignore=shutil.ignore_patterns("host_*"))
    copy = Home.open(folder, create=True)
    with contextlib.closing(sqlite3.connect(copy.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # all of it in one file, which a test may put back
    return copy


def proved(home: Home, run_id: str) -> Verdict:
    """Verify a run."""
    with snapshot(home) as seen:
        assert seen is not None
        run = seen.number(run_id)
    return prove(home, run)


def archive_of(home: Home, run_id: str) -> bytes:
    """Return a run as an archive."""
    file = io.BytesIO()
    with snapshot(home) as seen:
        assert seen is not None
        write_archive(seen.connection, seen.content, seen.number(run_id), home.logs_of_run(run_id), file)
    return file.getvalue()
