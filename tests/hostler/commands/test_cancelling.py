"""`hostler cancel` of a run that another process works on: what came of it, or that nobody has answered yet."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hostler.__main__ import main
from hostler.asking import ask_to_cancel
from hostler.commands import posting
from store.contracts import EventKind, NodeRecord
from store.lifecycle import Status
from store.reader import Reader
from store.requests import cancel_id
from store.transactions import NewEvent
from tests.store.support import STAMP, Setting, moved


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


class Owner:
    """A host that works on a run, and answers a cancel of it while the command waits between two looks."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._claimed = setting.claimed()
        self._running = moved(self._claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
        setting.accept(self._claimed, started=True, nodes=(self._running,))

    def answer(
        self, kind: EventKind, nodes: tuple[NodeRecord, ...] = (), *, data: dict[str, str] | None = None
    ) -> None:
        """Take the cancel of the whole run up, or refuse it."""
        asked = cancel_id(self._claimed.record.run_id)
        event = NewEvent(kind=kind, data={"request_id": asked, "request": "cancel", **(data or {})})
        self._setting.accept(self._claimed, consumed=(asked,), events=(event,), nodes=nodes)

    def stop(self) -> None:
        """Cancel what waits; what runs is being stopped."""
        _, *waiting = self._claimed.nodes
        stopped = tuple(moved(node, Status.CANCELLED, finished_at=STAMP.at) for node in waiting)
        going = self._running.model_copy(update={"cancelling": True})
        self.answer(EventKind.REQUEST, (going, *stopped))


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: object) -> None:
    """Let *act* happen in place of the time between two looks."""
    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=lambda _seconds: act())  # type: ignore[operator]
    monkeypatch.setattr(posting, "time", clock)


def test_the_answer_of_the_host_that_works_on_the_run_is_waited_for(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is told is how it stands after that."""
    owner = Owner(setting)
    meanwhile(monkeypatch, owner.stop)
    assert main(["cancel", "-", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["answered"]) == ("running", True)
    with Reader.open(setting.home) as reader:
        assert [node.status for node in reader.nodes(told["run_id"])] == [Status.RUNNING, *[Status.CANCELLED] * 3]


def test_of_what_the_host_is_still_stopping_that_is_said(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program may take its time to end."""
    owner = Owner(setting)
    meanwhile(monkeypatch, owner.stop)
    assert main(["cancel", "-"]) == 0
    assert f" asked for; host {setting.identity.host_id} stops it\n" in capsys.readouterr().out


def test_a_refusal_by_the_host_is_the_commands(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As where its rules are others."""
    owner = Owner(setting)
    said = {"code": "conflict", "message": "not by you", "todo": "ask somebody"}
    meanwhile(monkeypatch, lambda: owner.answer(EventKind.REQUEST_REFUSED, data=said))
    assert main(["cancel", "-"]) == 5
    assert capsys.readouterr().err == "hostler: error[conflict]: not by you; ask somebody\n"


def test_a_host_that_does_not_answer_in_time_is_said_not_to_have(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The request stands all the same."""
    Owner(setting)
    monkeypatch.setattr(posting, "ANSWER_S", 0.0)
    assert main(["cancel", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answered"] is False
    assert main(["cancel", "-"]) == 0
    said = f" asked for; host {setting.identity.host_id} has not answered yet; the request waits for it\n"
    assert said in capsys.readouterr().out
