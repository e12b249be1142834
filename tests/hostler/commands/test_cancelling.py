"""`hostler cancel` of a run that another process works on: what came of it, or that nobody has answered yet."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.asking import ask_to_cancel
from store.contracts import NodeRecord
from store.reader import Reader
from tests.store.support import Setting


@pytest.fixture
def setting() -> Iterator[Setting]:
    found = Setting(Path(os.environ["HOSTLER_HOME"]))
    yield found
    found.close()


def test_the_nodes_of_a_run_are_read_once_to_ask_something_of_one(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are verified, each, every time."""
    run_id = setting.created()
    reads: list[str] = []
    nodes = Reader.nodes

    def counted(reader: Reader, run: str) -> tuple[NodeRecord, ...]:
        reads.append(run)
        return nodes(reader, run)

    monkeypatch.setattr(Reader, "nodes", counted)
    with Reader.open(setting.home) as reader:
        ask_to_cancel(setting.home, reader, run_id, "a", reason="")
    assert reads == [run_id]
