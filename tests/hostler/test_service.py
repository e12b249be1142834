"""The background service on faults of its disk."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from actors import scheduler as schedulers
from actors.messages import Returned
from actors.scheduling.decide import decide
from hostler import service as module
from hostler.compiler import compile_workflow
from hostler.config import Config
from hostler.host import Host
from hostler.interrupts import Interrupted
from hostler.loading import load
from hostler.notify import Notifier
from hostler.service import Service, Woken
from hostler.service_log import service_log
from hostres.errors import Code, HostlerError
from store.home import Home
from store.reader import Reader
from store.run_store import RunStore
from tests.support import until


def test_a_run_lost_to_a_full_disk_is_taken_up_again_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its claim is its own host's, which lives: that host gives way to another, and what it had is free."""
    (tmp_path / "flow.json").write_text(
        json.dumps({"workflow": {"id": "w"}, "nodes": [{"key": "a", "executor": {"command": {"argv": ["true"]}}}]})
    )
    compiled = compile_workflow(load("flow.json", folder=tmp_path), {}, folder=tmp_path)
    with Host() as host:
        run = host.create(compiled, entrusted=True)
    full = [True]
    whole = RunStore.write

    def write(self: RunStore, transactions: Sequence[Any]) -> list[HostlerError | None]:
        if full[0]:
            return [HostlerError(Code.UNAVAILABLE, "the disk is full", "make room")] * len(transactions)
        return whole(self, transactions)

    monkeypatch.setattr(RunStore, "write", write)
    monkeypatch.setattr(module, "RETRY_S", (0.05,))
    home = Home.open(Config.load().home, create=True)
    inbox: SimpleQueue[Any] = SimpleQueue()

    def told() -> list[str]:
        return [json.loads(line)["event"] for line in (home.logs / "service.jsonl").read_text().splitlines()]

    def status() -> str:
        with Reader.open(home) as reader:
            return reader.run(run).status.value

    with service_log(home.logs, max_bytes=1 << 20, files=1) as log:
        serving = Service(home=home, load=Config.load, inbox=inbox, log=log, notifier=Notifier(None, None))
        thread = threading.Thread(target=serving.run)
        thread.start()
        until(lambda: "run-lost" in told())
        full[0] = False
        until(lambda: status() == "completed", timeout=60)
        inbox.put(Woken())
        inbox.put(Interrupted(times=1))
        thread.join(60)
    assert told().count("run-taken-up") >= 2
    assert not thread.is_alive()


def test_many_runs_that_are_lost_at_once_put_the_next_look_off_only_once(tmp_path: Path) -> None:
    """A full disk takes all of them; three of them made the second look come half a minute later."""
    home = Home.open(Config.load().home, create=True)
    error = HostlerError(Code.UNAVAILABLE, "the disk is full", "make room")
    inbox: SimpleQueue[Any] = SimpleQueue()
    with service_log(home.logs, max_bytes=1 << 20, files=1) as log:
        serving = Service(home=home, load=Config.load, inbox=inbox, log=log, notifier=Notifier(None, None))
        for _ in range(3):
            serving._look_later(error)
        serving._looks_again = None  # its time has come, and it fails
        serving._look_later(error)
        inbox.put(Interrupted(times=1))
        serving.run()
    said = [json.loads(line) for line in (home.logs / "service.jsonl").read_text().splitlines()]
    waits = [line["seconds"] for line in said if line["event"] == "looks-again-later"]
    assert max(waits[:3]) <= module.RETRY_S[0] < waits[3] <= module.RETRY_S[1]


def test_a_run_that_breaks_its_scheduler_is_left_alone_and_the_service_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be taken up again and again, and no other run would get through."""
    node = {"key": "a", "executor": {"command": {"argv": ["true"]}}}
    runs = {}
    with Host() as host:
        for name in ("bad", "good"):
            (tmp_path / f"{name}.json").write_text(json.dumps({"workflow": {"id": name}, "nodes": [node]}))
            compiled = compile_workflow(load(f"{name}.json", folder=tmp_path), {}, folder=tmp_path)
            runs[name] = host.create(compiled, entrusted=True)

    def breaks(state: Any, now: Any, *messages: Any, full: bool) -> Any:
        if state.record.workflow == "bad" and any(isinstance(each, Returned) for each in messages):
            raise ValueError("nobody thought of this")
        return decide(state, now, *messages, full=full)

    monkeypatch.setattr(schedulers, "decide", breaks)
    home = Home.open(Config.load().home, create=True)
    inbox: SimpleQueue[Any] = SimpleQueue()

    def told(run: str) -> list[str]:
        lines = [json.loads(line) for line in (home.logs / "service.jsonl").read_text().splitlines()]
        return [line["event"] for line in lines if line.get("run_id") == run]

    with service_log(home.logs, max_bytes=1 << 20, files=1) as log:
        serving = Service(home=home, load=Config.load, inbox=inbox, log=log, notifier=Notifier(None, None))
        ended: list[HostlerError | None] = []
        thread = threading.Thread(target=lambda: ended.append(serving.run()))
        thread.start()
        until(lambda: "run-lost" in told(runs["bad"]) and "run-ended" in told(runs["good"]))
        with Host() as host:
            later = host.create(compiled, entrusted=True)
        inbox.put(Woken())
        until(lambda: "run-ended" in told(later))
        inbox.put(Interrupted(times=1))
        thread.join(60)
    assert ended == [None]
    assert told(runs["bad"]).count("run-taken-up") == 1
