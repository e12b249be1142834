"""A run in the hands of the program that started it: it is cancelled, and tells its subscribers."""

import threading
from typing import Any

import pytest

from actors.actions import RunLeft
from actors.host_messages import CreateRun
from hostler import Host, Policy, operation, workflow
from hostler.config import Config
from hostres.errors import Code, HostlerError
from store.clock import SystemClock
from store.contracts import Request, RequestKind
from store.home import Home
from store.lifecycle import RunStatus
from store.requests import post
from tests.hostler.host_support import Number, breaking, buys, chain, long, node_status, reader, sleepers
from tests.support import until


def test_cancelling_a_run_ends_its_processes_before_it_is_called_cancelled():
    """Field case 2."""
    with Host() as host:
        run = host.submit(long)
        until(lambda: node_status(run.run_id, "long") == "running")
        until(lambda: sleepers(run.run_id))
        run.cancel("enough")
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        assert not sleepers(run.run_id)


def test_a_cancel_that_was_refused_leaves_a_run_that_a_person_can_cancel():
    """Its owner may have other rules than whoever asked first."""
    with Host() as host:
        run = host.submit(long)
        until(lambda: sleepers(run.run_id))
        with reader() as store:
            named = store.next_cancel_id(run.run_id, None)
        refused = Request(
            request_id=named, run_id=run.run_id, kind=RequestKind.CANCEL, principal="agent:bot",
            at=SystemClock().now().at,
        )  # fmt: skip
        post(Home.open(Config.load().home, create=False), refused, clock=SystemClock())
        with reader() as store:
            until(lambda: store.answer(run.run_id, named))
        run.cancel("enough")
        assert run.wait(timeout=60).status is RunStatus.CANCELLED


def test_what_cannot_be_cancelled_is_refused_and_leaves_nothing_in_the_store(monkeypatch):
    """A request that nobody would answer keeps a run from `gc`, and would cancel it once it is tried again."""
    with Host() as host:
        run = host.submit(breaking)
        assert run.wait(timeout=60).status is RunStatus.PARTIAL
        run.cancel()
        wrong = [
            ({"run_id": run.run_id}, Code.CONFLICT),
            ({"run_id": run.run_id, "node": "good"}, Code.CONFLICT),
            ({"run_id": run.run_id, "node": "nosuch"}, Code.NOT_FOUND),
            ({"run_id": "run_none"}, Code.NOT_FOUND),
            ({"run_id": run.run_id, "node": "bad", "reason": "x" * 5000}, Code.INVALID_DATA),
        ]
        for arguments, code in wrong:
            with pytest.raises(HostlerError) as caught:
                host.cancel(**arguments)
            assert caught.value.code is code
        rests = host.submit(buys)
        assert not rests.wait(timeout=60).final
        monkeypatch.setenv("HOSTLER_PRINCIPAL", "bot")
        with pytest.raises(HostlerError, match="may not cancel"):
            rests.cancel()
    with reader() as store:
        assert store.requests(run.run_id) == store.requests(rests.run_id) == ()


def test_a_subscriber_that_raises_keeps_nothing_from_the_others_and_hears_no_more():
    """Field case 84: one that is broken never stops the delivery to the rest."""
    heard: dict[str, list[Any]] = {"before": [], "broken": [], "after": []}

    def breaks(report: Any) -> None:
        heard["broken"].append(report)
        raise RuntimeError("a broken subscriber")

    with Host() as host:
        run = host.submit(long)
        until(lambda: sleepers(run.run_id))
        run.subscribe(heard["before"].append)
        run._listeners.append(breaks)
        run.subscribe(heard["after"].append)
        known = len(heard["before"])
        run.cancel()
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        until(lambda: any(hasattr(report, "drained") for report in heard["after"]))
    assert heard["after"] == heard["before"]
    assert len(heard["after"]) > known + 1
    assert heard["broken"] == heard["after"][known : known + 1]


def test_who_subscribes_to_a_run_that_has_left_already_hears_that_last():
    """The service waited for ever for a run that had left before it began to listen."""
    heard: list[Any] = []
    with Host() as host:
        run = host.submit(chain, length=1)
        assert run.wait(timeout=60).final
        until(lambda: run.left)
        run.subscribe(heard.append)
    assert isinstance(heard[-1], RunLeft)
    assert sum(isinstance(report, RunLeft) for report in heard) == 1


def test_a_listener_that_leaves_the_program_ends_nothing_but_itself(caplog):
    """`sys.exit` in a listener ended the actors, and with them every run of the host."""

    def leaves(_report: Any) -> None:
        raise SystemExit(3)

    with Host() as host:
        run = host.submit(long)
        until(lambda: sleepers(run.run_id))
        run._listeners.append(leaves)
        run.cancel()
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        assert host.submit(chain, length=1).wait(timeout=60).status is RunStatus.COMPLETED
        assert host.gave_up is None
    assert "a subscriber of" in caplog.text


def test_a_listener_is_refused_at_once_what_would_wait_for_its_own_host(caplog):
    """Submitting there stopped the whole host for a minute, closing it there for ever."""
    told = []

    with Host() as host, Host() as another:
        endless = host.submit(long)

        def asks(_report: Any) -> None:
            for ask in (
                lambda: host.submit(chain, length=1),
                endless.wait,
                lambda: host.responds(within_s=30),
                lambda: host.lost_files(within_s=30),
                host.close,
            ):
                with pytest.raises(HostlerError, match="a listener cannot") as caught:
                    ask()
                assert caught.value.code is Code.CONFLICT
            told.append(threading.current_thread().name)

        run = host.submit(long)
        until(lambda: sleepers(run.run_id))
        run.subscribe(asks)
        run.cancel()
        assert run.wait(timeout=60).status is RunStatus.CANCELLED
        until(lambda: run.left)
        assert set(told) > {threading.current_thread().name}
        assert not [record for record in caplog.records if "a subscriber of" in record.message], caplog.text

        def may(report: Any) -> None:
            if isinstance(report, RunLeft):
                endless.cancel()
                told.append(another.submit(chain, length=1).wait(timeout=60).status)

        again = host.submit(chain, length=1)
        again.subscribe(may)
        assert endless.wait(timeout=60).status is RunStatus.CANCELLED
        until(lambda: RunStatus.COMPLETED in told)
        assert host.responds(within_s=30)


def test_who_waits_for_what_a_closed_host_did_not_come_to_is_told_so(monkeypatch):
    """A run that was begun just then never left; a thread that waited for it kept its program from ending."""
    told: dict[str, HostlerError] = {}
    over = threading.Event()

    def asks(name: str, ask: Any) -> threading.Thread:
        def body() -> None:
            with pytest.raises(HostlerError) as caught:
                ask()
            told[name] = caught.value

        thread = threading.Thread(target=body, daemon=True)
        thread.start()
        return thread

    @operation("test.hangs", policy=Policy())
    def hangs(ctx, input: Number) -> Number:
        over.wait(60)
        return input

    @workflow("hanging")
    def hanging(build):
        build.call(hangs, key="hangs", input={})
        return {}

    monkeypatch.setattr("hostler.host.CLOSE_S", 0.1)
    host = Host()
    run = host.submit(hanging)
    until(lambda: node_status(run.run_id, "hangs") == "running")
    waits = asks("wait", run.wait)
    tell = host._tell
    monkeypatch.setattr(host, "_tell", lambda message: isinstance(message, CreateRun) or tell(message))
    submits = asks("submit", lambda: host.submit(chain, length=1))  # its message comes behind the end of the actors
    until(lambda: host._asked)
    host.close()
    for thread in (waits, submits):
        thread.join(10)
    over.set()
    assert {(name, error.code, error.what) for name, error in told.items()} == {
        (name, Code.CONFLICT, "this host was closed meanwhile") for name in ("wait", "submit")
    }
    with pytest.raises(HostlerError, match="this host is closed"):
        host.resume(run.run_id)


def test_cancelling_a_run_that_has_just_ended_is_refused_no_more_than_later(monkeypatch):
    """Between its end in the store and the report of that it was a conflict."""
    with Host() as host:
        run = host.submit(chain, length=1)
        assert run.wait(timeout=60).status is RunStatus.COMPLETED
        monkeypatch.setattr(run, "_outcome", None)  # as before the report
        run.cancel("too late")
