"""The background service, in real processes."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hostler.service_units import ServiceManager
from hostler.stored_runs import reading
from tests.end_to_end.support import (
    Terminal,
    command,
    gate,
    graph,
    held,
    hostler,
    let_go,
    shown,
    started,
    statuses,
    told,
)
from tests.support import until

LONG_S = 60.0


def said(process: "subprocess.Popen[str]", event: str) -> dict[str, Any]:
    """Read what a service logs until it says *event*."""
    assert process.stderr is not None
    for line in process.stderr:
        entry: dict[str, Any] = json.loads(line)
        if entry["event"] == event:
            return entry
    raise AssertionError(f"it ended without {event}")


@contextmanager
def serving(*arguments: str, **environ: str) -> "Iterator[subprocess.Popen[str]]":
    with started("serve", *arguments, **environ) as process:
        said(process, "started")
        yield process


def status_of(run: str) -> str:
    with reading() as (_, reader):
        return reader.run(run).status.value


def submitted(path: str) -> str:
    run: str = told("submit", path)["run_id"]
    return run


def runs_again(run: str) -> bool:
    """Say whether the second attempt of the only node runs; what the first one left has been ended before."""
    (node,) = shown(run)["nodes"]
    return (node["status"], node["attempt"]) == ("running", 2)


def test_what_is_submitted_is_taken_up_at_once_and_an_approval_moves_it_on(tmp_path: Path) -> None:
    """Each by a byte from the other process; nothing is looked at by the clock."""
    path = graph(tmp_path, command("a", "true"), gate("b", after=("a",)), command("c", "true", after=("b",)))
    with serving() as service:
        run = submitted(path)
        assert said(service, "run-taken-up")["run_id"] == run
        said(service, "run-rests")
        plan = shown(run)["waiting_on"][0]["plan_sha256"]
        assert "the background service goes on with it" in hostler("approve", run, "b", "--plan", plan)
        assert said(service, "run-ended")["status"] == "completed"
    assert statuses(run) == {"a": "completed", "b": "completed", "c": "completed"}


def test_what_was_submitted_before_it_starts_is_found(tmp_path: Path) -> None:
    """It waits in the store."""
    told_so = told("submit", graph(tmp_path, command("a", "true")))
    assert told_so["command"].startswith("hostler resume")
    with serving() as service:
        assert said(service, "run-ended")["run_id"] == told_so["run_id"]


def test_a_run_whose_host_is_killed_is_gone_on_with_at_once(tmp_path: Path) -> None:
    """The kernel tells of the death, whether that host began before the service or after it."""
    fifo = tmp_path / "fifo"
    path = graph(tmp_path, held("a", fifo))
    with serving() as service, started("run", path) as host:
        assert host.stdout is not None
        run = host.stdout.readline().strip()
        until(lambda: statuses(run) == {"a": "running"}, timeout=LONG_S)
        host.kill()
        taken_up = said(service, "run-taken-up")
        assert taken_up["run_id"] == run
        assert taken_up["dead_host"].startswith("host_")
        until(lambda: runs_again(run), timeout=LONG_S)
        let_go(fifo)
        assert said(service, "run-ended")["status"] == "completed"


def test_a_run_that_somebody_stopped_in_the_foreground_stays_stopped(tmp_path: Path) -> None:
    """Ctrl-C means that they go on with it when they want to."""
    fifo = tmp_path / "fifo"
    with serving() as service:
        with Terminal("run", graph(tmp_path, held("a", fifo))) as terminal:
            terminal.expect("running")
            terminal.write("\x03\x03\x03")
            assert terminal.wait() == 130
        run = told("runs", "--limit", "1")["runs"][0]["run_id"]
        after = submitted(graph(tmp_path, command("b", "true"), name="after"))
        assert said(service, "run-taken-up")["run_id"] == after
        assert status_of(run) == "running"


def test_a_second_service_says_that_there_is_one_and_a_waiting_one_takes_over(tmp_path: Path) -> None:
    """Field case 58: the first start counts; one that waits is told by the kernel when that has died."""
    with serving() as first:
        assert f"(pid {first.pid})" in hostler("serve")
        shape = told("service", "status", "--manager", "supervisord")
        assert (shape["running"], shape["pid"]) == (True, first.pid)
        with started("serve", "--wait") as second:
            assert second.stdout is not None
            assert "already" in second.stdout.readline()
            first.kill()
            said(second, "started")
            run = submitted(graph(tmp_path, command("a", "true")))
            assert said(second, "run-ended")["run_id"] == run
    assert told("service", "status", "--manager", "supervisord", code=3)["running"] is False


def test_sigterm_drains_within_the_grace_and_the_next_service_goes_on(tmp_path: Path) -> None:
    """Field case 76: what ran goes back; nobody is asked, and the exit code is 0."""
    config = tmp_path / "config.toml"
    config.write_text("[service]\ngrace_seconds = 0.2\n")
    environ = {"HOSTLER_CONFIG": str(config)}
    fifo = tmp_path / "fifo"
    path = graph(tmp_path, held("a", fifo))
    with serving(**environ) as first:
        run = submitted(path)
        until(lambda: statuses(run) == {"a": "running"}, timeout=LONG_S)
        first.send_signal(signal.SIGTERM)
        assert said(first, "run-handed-back")["run_id"] == run
        assert first.wait(LONG_S) == 0
    assert statuses(run) == {"a": "ready"}
    with serving(**environ) as second:
        until(lambda: statuses(run) == {"a": "running"}, timeout=LONG_S)
        let_go(fifo)
        assert said(second, "run-ended")["status"] == "completed"


def test_a_supervisor_hears_that_it_is_ready_alive_and_stopping(tmp_path: Path) -> None:
    """At a real socket, with a watchdog."""
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address)
        listener.settimeout(LONG_S)
        with started("serve", NOTIFY_SOCKET=address, WATCHDOG_USEC="600000") as service:
            heard: list[str] = []
            while not {"READY=1", "STATUS=idle"} <= set(heard) or heard.count("WATCHDOG=1") < 2:
                heard += listener.recv(4096).decode().splitlines()
            assert heard.index("READY=1") < heard.index("WATCHDOG=1")
            service.send_signal(signal.SIGTERM)
            while "STOPPING=1" not in heard:
                heard += listener.recv(4096).decode().splitlines()
            assert service.wait(LONG_S) == 0


def test_sighup_reads_the_configuration_anew_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    """A running node is not interrupted by either."""
    config = tmp_path / "config.toml"
    config.write_text("")
    fifo = tmp_path / "fifo"
    with serving(HOSTLER_CONFIG=str(config)) as service:
        run = submitted(graph(tmp_path, held("a", fifo)))
        until(lambda: statuses(run) == {"a": "running"}, timeout=LONG_S)
        config.write_text("[servcie]\n")
        service.send_signal(signal.SIGHUP)
        assert "servcie" in said(service, "not-reloaded")["message"]
        config.write_text("[service]\ngrace_seconds = 1\n")
        service.send_signal(signal.SIGHUP)
        said(service, "reloaded")
        other = submitted(graph(tmp_path, command("b", "true"), name="other"))
        assert said(service, "run-ended")["run_id"] == other
        let_go(fifo)
        assert said(service, "run-ended")["run_id"] == run
        assert shown(run)["nodes"][0]["attempt"] == 1


FLOW = """
import os

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Number(BaseModel):
    n: int


@operation("test.limited", version=1, policy=Policy(effect="local-read", max_seconds=float(os.environ["TEST_LIMIT_S"])))
def limited(ctx, input: Number) -> Number:
    return input


@workflow("flow", version=1)
def flow(build):
    build.call(limited, key="a", input={"n": 1})
    return {}
"""


def test_a_run_that_it_lacks_the_code_for_is_left_alone_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R17: it changes nothing, says so once, and goes on with the others."""
    file = tmp_path / "flow.py"
    file.write_text(FLOW)
    monkeypatch.setenv("TEST_LIMIT_S", "60")
    run = submitted(str(file))
    before = hostler("events", run, "--json")
    with serving(TEST_LIMIT_S="61") as service:
        assert said(service, "run-left-alone")["run_id"] == run
        other = submitted(graph(tmp_path, command("b", "true"), name="other"))
        assert said(service, "run-ended")["run_id"] == other
    assert hostler("events", run, "--json") == before
    log = (Path(os.environ["HOSTLER_HOME"]) / "logs" / "service.jsonl").read_text()
    assert log.count("run-left-alone") == 1


def test_what_people_want_of_a_run_that_is_left_alone_is_done_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lacks the code, and who lives here leaves the run to it; a cancel needs no code."""
    file = tmp_path / "flow.py"
    file.write_text(FLOW)
    monkeypatch.setenv("TEST_LIMIT_S", "60")
    run = submitted(str(file))
    with serving(TEST_LIMIT_S="61") as service:
        assert said(service, "run-left-alone")["run_id"] == run
        hostler("cancel", run)
        assert said(service, "requests-taken-up")["requests"] == 1
        assert said(service, "run-ended")["status"] == "cancelled"
    assert statuses(run) == {"a": "cancelled"}


def test_a_real_supervisord_keeps_it_stops_it_and_starts_it_again_when_it_is_killed(tmp_path: Path) -> None:
    """With the unit that `service install` wrote."""
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    installed = told_with(environ, "service", "install", "--manager", ServiceManager.SUPERVISORD)
    control, pid_file = tmp_path / "s.sock", tmp_path / "s.pid"
    settings = tmp_path / "supervisord.conf"
    settings.write_text(
        f"[unix_http_server]\nfile={control}\n"
        f"[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\npidfile={pid_file}\n"
        "[rpcinterface:supervisor]\nsupervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface\n"
        f"[supervisorctl]\nserverurl=unix://{control}\n[include]\nfiles={installed['path']}\n"
    )
    argv = [sys.executable, "-W", "ignore", "-m", "supervisor.supervisord", "-c", str(settings)]
    fifo = tmp_path / "fifo"
    with subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as supervisord:
        try:
            first = until(lambda: running(environ), timeout=LONG_S)
            run = submitted(graph(tmp_path, held("a", fifo)))
            until(lambda: statuses(run) == {"a": "running"}, timeout=LONG_S)
            os.kill(first, signal.SIGKILL)
            second = until(lambda: (pid := running(environ)) and pid != first and pid, timeout=LONG_S)
            assert second != first
            until(lambda: runs_again(run), timeout=LONG_S)
            let_go(fifo)
            until(lambda: status_of(run) == "completed", timeout=LONG_S)
            supervisord.send_signal(signal.SIGTERM)
            assert supervisord.wait(LONG_S) == 0
            assert not running(environ)
        finally:
            supervisord.kill()


@pytest.mark.parametrize("names", [("runs.db-wal", "runs.db-shm"), ("runs.db", "runs.db-wal", "runs.db-shm")])
def test_a_service_whose_files_are_gone_ends_when_it_is_asked_and_the_next_one_does_it(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """What it has open it writes no more; what it is woken for stands in other files, of which it sees nothing."""
    path = graph(tmp_path, command("a", "true"))
    with serving() as service:
        hostler("run", path)
        for name in names:
            (Path(os.environ["HOSTLER_HOME"]) / name).unlink()
        run = submitted(path)
        assert said(service, "gave-up")["code"] == "ownership-lost"
        assert service.wait(LONG_S) == 70
    with serving() as service:
        assert said(service, "run-ended")["run_id"] == run


def test_what_cannot_be_had_yet_is_waited_for_inside_and_said_once(tmp_path: Path) -> None:
    """Field case 77: a supervisor that started it anew each time would say so each time."""
    (tmp_path / "disk").symlink_to("disk")  # stands for one that is not there yet
    with started("serve", "--wait", HOSTLER_HOME=str(tmp_path / "disk" / "home")) as service:
        assert service.stderr is not None
        assert "error[unavailable]" in service.stderr.readline()
        service.send_signal(signal.SIGHUP)  # tries at once, and says nothing new
        (tmp_path / "disk").unlink()
        (tmp_path / "disk").mkdir()
        service.send_signal(signal.SIGHUP)
        assert json.loads(service.stderr.readline())["event"] == "started"
        service.send_signal(signal.SIGTERM)
        assert service.wait(LONG_S) == 0


def test_a_wait_for_what_cannot_be_had_ends_when_told_to(tmp_path: Path) -> None:
    """Not only once it can be had."""
    (tmp_path / "disk").symlink_to("disk")
    with started("serve", "--wait", HOSTLER_HOME=str(tmp_path / "disk" / "home")) as service:
        assert service.stderr is not None
        assert "error[unavailable]" in service.stderr.readline()
        service.send_signal(signal.SIGTERM)
        assert service.wait(LONG_S) == 0


@pytest.mark.parametrize(("arguments", "code"), [((), 2), (("--hopeless-is-0",), 0)])
def test_what_a_person_must_mend_ends_the_service_with_a_code_that_stops_restarting(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    """Also with --wait, and with its reason in one line."""
    (tmp_path / "wrong.toml").write_text("[servcie]\n")
    with started("serve", "--wait", *arguments, HOSTLER_CONFIG=str(tmp_path / "wrong.toml")) as service:
        assert service.stderr is not None
        assert service.stderr.read().count("did you mean service?") == 1
        assert service.wait(LONG_S) == code


def test_standard_error_of_its_own_is_begun_anew_at_its_size(tmp_path: Path) -> None:
    """Field case 82: under launchd nobody else bounds it; what a person leads to a file stays whole."""
    (tmp_path / "config.toml").write_text("[service]\nlog_megabytes = 0.1\n")
    errors = tmp_path / "errors"
    for arguments, bounded in (((), False), (("--own-errors",), True)):
        errors.write_bytes(b"x" * 200_000)
        with errors.open("ab") as file:
            argv = [sys.executable, "-m", "hostler", "serve", *arguments]
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=file) as service:
                until(lambda: b'"started"' in errors.read_bytes(), timeout=LONG_S)
                service.send_signal(signal.SIGTERM)
                assert service.wait(LONG_S) == 0
        assert (errors.stat().st_size < 100_000) is bounded


def told_with(environ: dict[str, str], *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "hostler", *arguments, "--json"],
        env=environ, capture_output=True, text=True, timeout=LONG_S, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def running(environ: dict[str, str]) -> int:
    """Return the service's process, 0 if there is none."""
    pid: int = told_with(environ, "service", "status", "--manager", ServiceManager.SUPERVISORD).get("pid", 0)
    return pid


@pytest.mark.parametrize("text", ["grace_seconds = -1", 'grace_seconds = "x"', "log_files = 1.5", "log_megabytes = 0"])
def test_a_wrong_setting_of_the_service_is_named(text: str, tmp_path: Path) -> None:
    """With its key and what it may be."""
    config = tmp_path / "config.toml"
    config.write_text(f"[service]\n{text}\n")
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "serve"],
        env={**os.environ, "HOSTLER_CONFIG": str(config)}, capture_output=True, text=True, timeout=LONG_S, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert f"service.{text.split(' ', maxsplit=1)[0]}" in done.stderr
