"""A host and a worker process that is broken, lying, deaf or dead: the node gets one right outcome, the host goes on."""

import os
import signal
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from actors.assignment import Assignment
from actors.context import Context, OperationFailed
from actors.control import Control
from actors.operations import Entry
from actors.outcomes import Aborted, Failed, Value
from actors.remote_host import stop_by_signal
from actors.worker import perform_in_worker
from hostres.logs import Cut
from hostres.procfs import read_process
from store.amounts import Usage
from store.plans import NodePlan, OperationExecutor
from store.policy import FailureCode, Policy
from tests.actors.support import RUN_ID
from tests.support import until

PRELUDE = """
import json, os, signal, socket, struct, sys, time
end = socket.socket(fileno=int(sys.argv[-1]))
def take(count):
    data = b""
    while len(data) < count:
        piece = end.recv(count - len(data))
        if not piece:
            sys.exit("the host is gone")
        data += piece
    return data
def receive():
    words, blob = struct.unpack("!II", take(8))
    return json.loads(take(words)), take(blob)
def raw(words, blob=b""):
    end.sendall(struct.pack("!II", len(words), len(blob)) + words + blob)
def send(kind, blob=b"", **fields):
    raw(json.dumps({"kind": kind, **fields}).encode(), blob)
def ask(what, number=0):
    send("asked", id=number, what=what)
    while True:
        words, _ = receive()
        if words["kind"] == "answer":
            return words
start, given = receive()
"""
"""What a worker's side of the channel takes; a worker of another make could be written from it."""


class Surroundings:
    """The host around one attempt, in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[Any] = []
        self.processes = 0
        self.beats = 0
        self.gate: list[str] = []
        self.spent: list[Usage] = []
        self.cuts: list[Cut] = []
        self.refusal: OperationFailed | None = None

    def allow_publication(self) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.gate.append("passed")

    def progress(self, *said: Any) -> None:
        self.told.append(said)

    def beat(self) -> None:
        self.beats += 1

    def spend(self, usage: Usage) -> None:
        self.spent.append(usage)

    def next_logs(self) -> tuple[Path, Path]:
        self.processes += 1
        return self.folder / f"{self.processes}.out", self.folder / f"{self.processes}.err"

    def log_cut(self, cut: Cut) -> None:
        self.cuts.append(cut)

    def open_workspace(self) -> Path:
        return self.folder


class Attempt:
    """An attempt whose worker is a few lines of Python."""

    def __init__(self, folder: Path, body: str, **policy: Any) -> None:
        self.host = Surroundings(folder)
        self.control = Control()
        self.entry = Entry(argv=(sys.executable, "-I", "-S", "-c", PRELUDE + body), code={})
        self.plan = NodePlan(
            run_id=RUN_ID,
            node="a",
            executor=OperationExecutor(operation="test.f", version=1),
            input={"n": 1},
            input_sha256="0" * 64,
            dependencies={},
            policy=Policy(**policy),
        )

    def perform(self) -> Any:
        assignment = Assignment(run_id=RUN_ID, node="a", attempt=1, folder=self.host.folder)
        context = Context(assignment, control=self.control, host=self.host, lease=None)
        self.outcome, self.trace = perform_in_worker(
            self.plan, self.entry, context=context, host=self.host, control=self.control
        )
        return self.outcome


@pytest.fixture
def attempt(tmp_path):
    return lambda body, **policy: Attempt(tmp_path, body, **policy)


def test_a_worker_that_calls_and_gives_completes_its_node(attempt):
    """The whole conversation at its shortest."""
    outcome = attempt("send('calling'); send('gave', given)").perform()
    assert isinstance(outcome, Value)
    assert outcome.data == b'{"n":1}'
    assert outcome.value == {"n": 1}


def test_what_a_worker_spends_is_recorded_before_it_goes_on(attempt):
    made = attempt(
        "send('calling'); send('asked', id=1, what='spending', tokens=3, cost='0.10'); receive(); send('gave', given)"
    )
    assert isinstance(made.perform(), Value)
    assert made.host.spent == [Usage(tokens=3, cost=Decimal("0.1"))]


def test_what_the_disk_did_not_take_of_its_processes_logs_reaches_the_host(attempt):
    """A worker runs programs of its own, whose logs the host never sees."""
    made = attempt("send('calling'); send('unlogged', stream='1.stderr.2', missing=7, why='full'); send('gave', given)")
    assert isinstance(made.perform(), Value)
    assert made.host.cuts == [Cut("1.stderr.2", 7, "full")]


LIES = {
    "a cut log of no stream": "send('unlogged', stream='../x', missing=1, why='')",
    "a cut log that lacks nothing": "send('unlogged', stream='1.stdout', missing=0, why='')",
    "spending less than nothing": "send('calling'); send('asked', id=1, what='spending', tokens=-1)",
    "spending no number": "send('calling'); send('asked', id=1, what='spending', cost='1e3')",
    "noise": "end.sendall(os.urandom(8) + b'noise' * 100)",
    "a length without end": "end.sendall(b'\\xff' * 8)",
    "no JSON": "raw(b'{')",
    "an unknown kind": "send('rm', path='/')",
    "a host's word": "send('answer', id=1, paths=[], refusal=None, aborted=False)",
    "a field too many": "send('calling', more=1)",
    "a result of nothing": "send('gave', b'1')",
    "a result that is no JSON": "send('calling'); send('gave', b'{1}')",
    "a result that is not canonical": "send('calling'); send('gave', b'{\"b\":1,\"a\":2}')",
    "a number that is none": "send('calling'); send('gave', b'NaN')",
    "a result over the limit": "send('calling'); send('gave', b'\"' + b'x' * 2000 + b'\"')",
    "a second answer": "raw_two = struct.pack('!II', 15, 1) + b'{\"kind\":\"gave\"}1'; send('calling'); end.sendall(raw_two * 2)",
    "a traceback without end": "send('broke', b'x' * 300000, code='internal', message='', todo='', retryable=False)",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_worker_that_breaks_the_rules_fails_its_node_alone(lie, attempt):
    """It is ended too: whoever lies once is not asked to finish."""
    outcome = attempt(f"{lie}\ntime.sleep(600)", max_output_bytes=1000).perform()
    assert isinstance(outcome, Failed)
    assert outcome.code is FailureCode.MALFORMED_OUTPUT
    assert outcome.dispatched
    assert outcome.message.startswith("its worker process sent ")
    assert outcome.todo


ENDS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", "was killed from outside by signal 9", True),
    "crashed": ("os.kill(os.getpid(), signal.SIGSEGV)", "crashed with SIGSEGV", False),
    "left": ("print('no room', file=sys.stderr); os._exit(3)", "exit code 3 before it gave a result: no room", False),
    "left as if well": ("os._exit(0)", "exit code 0 before it gave a result", False),
}


@pytest.mark.parametrize(("end", "said", "retryable"), ENDS.values(), ids=ENDS)
@pytest.mark.parametrize("called", [True, False], ids=["after the call", "before the call"])
def test_a_worker_that_ends_without_an_answer_tells_by_how_it_ended(end, said, retryable, called, attempt):
    """Before its code was reached nothing can have happened, so nothing about it is ambiguous."""
    start = "send('calling'); " if called else ""
    outcome = attempt(start + end).perform()
    assert isinstance(outcome, Failed)
    assert outcome.code is FailureCode.SUBPROCESS
    assert said in outcome.message
    assert outcome.retryable is retryable
    assert outcome.dispatched is called


def test_an_answer_counts_however_its_worker_ends(attempt):
    """A library that crashes when the interpreter takes it apart has done its work."""
    outcome = attempt("send('calling'); send('gave', b'1'); os.kill(os.getpid(), signal.SIGSEGV)").perform()
    assert isinstance(outcome, Value)


def test_a_child_that_holds_the_channel_open_is_not_waited_for_and_ends_with_its_worker(attempt, tmp_path):
    """The end of the channel would never come; the end of the process does."""
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child == 0:
    time.sleep(600)
with open("child", "w") as file:
    file.write(str(child))
send("calling")
os._exit(5)
"""
    outcome = attempt(body).perform()
    assert isinstance(outcome, Failed)
    assert "exit code 5" in outcome.message
    process = read_process(int((tmp_path / "child").read_text()))
    assert process is None or process.gone


@pytest.mark.parametrize("deaf", [True, False])
@pytest.mark.parametrize("reason", ["cancel", "timeout", "drain"])
def test_a_worker_that_is_asked_to_stop_ends_also_if_it_will_not(reason, deaf, attempt, tmp_path):
    """First a word, then TERM, then KILL; whatever it does, the outcome is the stop."""
    body = f"""
if {deaf}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
send("calling")
open("there", "w")
words, _ = receive()
open("heard", "w").write(words["kind"] + " " + words["reason"])
time.sleep(600)
"""
    trial = attempt(body)
    thread = threading.Thread(target=trial.perform)
    thread.start()
    until((tmp_path / "there").exists, timeout=60.0)
    trial.control.abort(reason, grace_s=0.3)
    thread.join()
    assert trial.outcome == Aborted(reason=reason)
    if deaf:
        assert (tmp_path / "heard").read_text() == f"stop {reason}"


@pytest.mark.parametrize(("reason", "counts"), [("cancel", True), ("drain", True), ("timeout", False)])
def test_a_result_that_comes_after_the_deadline_is_none(reason, counts, attempt, tmp_path):
    """What was done although it was to stop was done; but a deadline that moves is none."""
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
send("calling")
open("there", "w")
receive()
send("gave", b"1")
"""
    trial = attempt(body)
    thread = threading.Thread(target=trial.perform)
    thread.start()
    until((tmp_path / "there").exists, timeout=60.0)
    trial.control.abort(reason, grace_s=30)
    thread.join()
    assert isinstance(trial.outcome, Value) is counts
    assert counts or trial.outcome == Aborted(reason=reason)


def test_a_worker_that_was_asked_to_stop_is_not_let_through_to_publish(attempt, tmp_path):
    """Not even one that asks the host itself, whatever its own side says."""
    body = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
send("calling")
open("there", "w")
receive()
send("gave", json.dumps(ask("publication")["aborted"]).encode())
"""
    trial = attempt(body)
    thread = threading.Thread(target=trial.perform)
    thread.start()
    until((tmp_path / "there").exists, timeout=60.0)
    trial.control.abort("cancel", grace_s=30)
    thread.join()
    assert trial.outcome.value is True
    assert trial.host.gate == []


def test_a_stop_before_the_code_was_reached_says_so(attempt, tmp_path):
    """Trusted code that was never called is cancelled, not ambiguous."""
    trial = attempt("open('there', 'w'); time.sleep(600)")
    thread = threading.Thread(target=trial.perform)
    thread.start()
    until((tmp_path / "there").exists, timeout=60.0)
    trial.control.abort("cancel", grace_s=5)
    thread.join()
    assert trial.outcome == Aborted(reason="cancel", dispatched=False)


def test_an_attempt_that_was_stopped_already_starts_nothing(attempt, tmp_path):
    """A cancel may overtake the dispatch."""
    trial = attempt("open('there', 'w')")
    trial.control.abort("cancel", grace_s=0)
    assert trial.perform() == Aborted(reason="cancel", dispatched=False)
    assert not (tmp_path / "there").exists()


def test_a_stopped_worker_that_is_in_the_middle_of_a_frame_is_stopped_and_no_liar(attempt, tmp_path):
    """TERM may cut a frame in two."""
    body = """
def cut(*_):
    end.sendall(struct.pack("!II", 100, 0) + b"{")
    os._exit(1)
signal.signal(signal.SIGTERM, cut)
send("calling")
open("there", "w")
time.sleep(600)
"""
    trial = attempt(body)
    thread = threading.Thread(target=trial.perform)
    thread.start()
    until((tmp_path / "there").exists, timeout=60.0)
    trial.control.abort("cancel", grace_s=5)
    thread.join()
    assert trial.outcome == Aborted(reason="cancel")


def test_what_a_worker_asks_is_answered_by_the_attempt_of_the_host(attempt, tmp_path):
    """Leave to publish, the workspace, logs beside its own: each is the host's to give."""
    body = """
send("calling")
send("advanced", fraction=0.5, text="half", speed=2.0, left_s=None)
found = [ask("workspace", 1)["paths"], ask("logs", 2)["paths"], ask("publication", 3)["paths"]]
send("gave", json.dumps(found, separators=(",", ":")).encode())
"""
    trial = attempt(body)
    outcome = trial.perform()
    folder = str(tmp_path)
    assert outcome.value == [[folder], [f"{folder}/2.out", f"{folder}/2.err"], []]
    assert trial.host.told == [(0.5, "half", 2.0, None)]
    assert trial.host.gate == ["passed"]


def test_a_refusal_of_the_gate_reaches_the_worker_in_its_words(attempt):
    """It is the worker's code that has to know."""
    trial = attempt(
        'send("calling"); send("gave", json.dumps(ask("publication")["refusal"], separators=(",", ":")).encode())'
    )
    trial.host.refusal = OperationFailed(FailureCode.CANCELLED, "too late", "nothing was published")
    assert trial.perform().value == ["cancelled", "too late", "nothing was published"]


def test_what_a_worker_prints_is_in_its_logs_and_no_word_of_the_protocol(attempt, tmp_path):
    """Also what it writes to descriptor 1 itself."""
    body = """
os.write(1, b'{"kind":"gave"}')
os.write(2, b"careful")
send("calling")
send("gave", b"1")
"""
    assert attempt(body).perform().value == 1
    assert (tmp_path / "1.out").read_bytes() == b'{"kind":"gave"}'
    assert (tmp_path / "1.err").read_bytes() == b"careful"


def test_a_worker_ends_also_where_its_host_fails_in_between(attempt, tmp_path, monkeypatch):
    """Out of descriptors, say: the node fails, and its process must not go on unseen."""

    class Full:
        def poll(self):
            until((tmp_path / "there").exists, timeout=60.0)
            raise OSError(24, "Too many open files")

    trial = attempt("open('new', 'w').write(str(os.getpid())); os.rename('new', 'there'); time.sleep(600)")
    monkeypatch.setattr("actors.conversation.select", Full())
    with pytest.raises(OSError, match="Too many"):
        trial.perform()
    process = read_process(int((tmp_path / "there").read_text()))
    assert process is None or process.gone


def test_no_descriptor_is_left_over(attempt):
    """3,000 steps of a service would use them up."""
    attempt("send('calling'); send('gave', b'1')").perform()
    before = len(os.listdir("/proc/self/fd"))
    attempt("send('calling'); send('gave', b'1')").perform()
    attempt("os._exit(1)").perform()
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_a_worker_forks_off_is_ended_by_sigterm_as_any_process():
    """It had the handler of its worker, which raises: code that catches exceptions went on."""
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        stop_by_signal(Control())
        child = os.fork()
        if child == 0:
            try:
                os.write(writing, b"x")
                time.sleep(60)
            finally:
                os._exit(0)
        os.read(reading, 1)
        os.kill(child, signal.SIGTERM)
        os._exit(os.WTERMSIG(os.waitpid(child, 0)[1]))
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == signal.SIGTERM
    os.close(reading)
    os.close(writing)


def test_a_sigterm_that_comes_as_soon_as_it_is_forked_off_is_not_lost():
    """Python drops a signal with a handler of its own then; `multiprocessing.Pool` waited for its last child."""
    worker = os.fork()
    if worker == 0:
        os.register_at_fork(after_in_child=lambda: signal.raise_signal(signal.SIGTERM))  # before all that comes below
        stop_by_signal(Control())
        child = os.fork()
        if child == 0:
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        masked = signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        os._exit(1 if masked else os.WTERMSIG(status))
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == signal.SIGTERM
