"""A store of an older version: looking asks for a command that writes, and each of those brings it up to date."""

import os
from pathlib import Path

import pytest

from hostler.__main__ import main
from hostres.errors import EXIT_CODES, Code
from store import database_file
from store.home import Home
from store.reader import Reader
from store.schema import SCHEMA_VERSION
from store.upgrade import kept_copy
from tests.store import schema_sample

OLD = SCHEMA_VERSION - 1
WRITING = (
    ["resume", "-"],
    ["cancel", "-"],
    ["approve", "-"],
    ["retry", "-", "a"],
    ["settle", "-", "a", "--failed"],
    ["budget", "-", "--add", "tokens=1"],
    ["receipt", "revoke", "-", "rcpt"],
    ["work", "next", "--worker", "ann"],
    ["gc", "--keep", "5"],
)


@pytest.fixture
def home() -> Home:
    home = Home.open(Path(os.environ["HOSTLER_HOME"]), create=True)
    schema_sample.restore(OLD, home)
    database_file._opened.clear()  # who looks next is a new program
    return home


@pytest.mark.parametrize("argv", [["runs"], ["show", "-"], ["budget", "-"], ["receipt", "list", "-"]])
def test_who_only_looks_leaves_it_as_it_is(home: Home, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    before = home.database.read_bytes()
    assert main(argv) == EXIT_CODES[Code.UNAVAILABLE]
    assert "run any command that writes" in capsys.readouterr().err
    assert home.database.read_bytes() == before


@pytest.mark.parametrize("argv", WRITING, ids=lambda argv: argv[0])
def test_who_writes_brings_it_up_to_date_first(home: Home, argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the command then says of the runs in it, it says of the store as this program knows it."""
    main(argv)
    assert "schema version" not in capsys.readouterr().err
    with Reader.open(home) as reader:
        assert len(reader.runs()) == 2
    assert kept_copy(home.database, OLD).exists()
