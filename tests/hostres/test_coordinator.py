"""Asking for capacity: what is admitted, what waits, what is refused."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from hostres.claims import default_capacity, usable_cpus
from hostres.coordinator import Admitted, Coordinator, NotAdmitted, Patience, current_lease
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.process import Supervised
from tests.hostres.support import LIMIT_S, children, coordinator, eventually, held, holder, refused, rows, waiting


@pytest.fixture
def machine() -> Iterator[Coordinator]:
    with coordinator(cpu=2, x=1, local_io=2) as one:
        yield one


class Answers:
    """Collects what `notify` is told."""

    def __init__(self) -> None:
        self.told: list[Admitted | NotAdmitted] = []
        self._news = threading.Condition()

    def __call__(self, answer: Admitted | NotAdmitted) -> None:
        with self._news:
            self.told.append(answer)
            self._news.notify_all()

    def wait(self, count: int = 1) -> None:
        with self._news:
            assert self._news.wait_for(lambda: len(self.told) >= count, LIMIT_S)


def test_a_claim_is_admitted_whole_and_given_back(machine: Coordinator) -> None:
    with machine.lease({"cpu": 2, "x": 1}, name="one", command=["true"]) as lease:
        (row,) = rows()
        assert (row.state, row.claims, row.name, row.ticket) == ("admitted", {"cpu": 2, "x": 1}, "one", lease.ticket)
        assert row.pid == row.processes[0].pid == os.getpid()
        lease.assert_owned()
    assert rows() == []


def test_what_fits_goes_at_once_and_the_rest_after_the_release(machine: Coordinator) -> None:
    """A1: cpu 2 in all, a holder of 1."""
    one = machine.lease({"cpu": 1})
    answers = Answers()
    machine.ask({"cpu": 2}, notify=answers)
    waiting(1)
    machine.lease({"local-io": 1}, wait=0).release()
    assert answers.told == []
    one.release()
    answers.wait()
    assert isinstance(answers.told[0], Admitted)
    answers.told[0].lease.release()
    assert machine.safety_net_progress == 0


def test_a_younger_claim_that_fits_is_not_held_up_by_an_older_one_that_does_not() -> None:
    """As long as the older one has patience."""
    endless, folder = Patience(factor=0, least_s=3600, most_s=3600), machine_folder(os.environ)
    with Coordinator(folder, explicit={"cpu": 2, "x": 1}, patience=endless) as machine:
        one = machine.lease({"cpu": 1})
        big = Answers()
        machine.ask({"cpu": 2, "x": 1}, notify=big)
        waiting(1)
        machine.lease({"cpu": 1, "x": 1}, wait=0).release()
        one.release()
        big.wait()
        assert isinstance(big.told[0], Admitted)
        big.told[0].lease.release()


def test_an_aborted_wait_is_told_so_and_leaves_no_ticket(machine: Coordinator) -> None:
    """A2, the blocking form."""
    one = machine.lease({"x": 1})
    abort = threading.Event()
    caught: list[HostlerError] = []

    def wait() -> None:
        try:
            machine.lease({"x": 1}, abort=abort).release()
        except HostlerError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    waiting(1)
    abort.set()
    thread.join(LIMIT_S)
    assert caught[0].code is Code.WAIT_ABORTED
    assert [row.ticket for row in rows()] == [one.ticket]
    one.release()


def test_a_withdrawn_ask_is_never_called_back_and_leaves_no_ticket(machine: Coordinator) -> None:
    """A2, the form that does not block."""
    one = machine.lease({"x": 1})
    withdrawn, next_one = Answers(), Answers()
    ask = machine.ask({"x": 1}, notify=withdrawn)
    machine.ask({"x": 1}, notify=next_one)
    waiting(2)
    ask.withdraw()
    ask.withdraw()
    waiting(1)
    one.release()
    next_one.wait()
    assert withdrawn.told == []
    assert isinstance(next_one.told[0], Admitted)
    next_one.told[0].lease.release()
    assert rows() == []


def test_an_ask_withdrawn_after_admission_stays_admitted(machine: Coordinator) -> None:
    answers = Answers()
    ask = machine.ask({"x": 1}, notify=answers)
    answers.wait()
    ask.withdraw()
    assert isinstance(answers.told[0], Admitted)
    answers.told[0].lease.assert_owned()
    answers.told[0].lease.release()


def test_a_ticket_that_holds_cannot_be_withdrawn(machine: Coordinator) -> None:
    lease = machine.lease({"x": 1})
    assert not lease._ticket.withdraw()
    lease.assert_owned()
    lease.release()


def test_a_wait_that_runs_out_of_time_says_why_and_leaves_no_ticket(machine: Coordinator) -> None:
    one = machine.lease({"x": 1})
    with refused(Code.WAIT_TIMEOUT, f"x: wants 1, 0 free, held by ticket {one.ticket}"):
        machine.lease({"x": 1}, wait=0.05)
    assert [row.ticket for row in rows()] == [one.ticket]
    one.release()


@pytest.mark.parametrize("wait", [-1, 86_401, float("nan")])
def test_a_wait_outside_its_bounds_is_refused(machine: Coordinator, wait: float) -> None:
    with refused(Code.INVALID_DATA):
        machine.lease({"x": 1}, wait=wait)


def test_no_claims_at_all_are_admitted_at_once_with_a_descriptor(machine: Coordinator) -> None:
    """A7."""
    with machine.lease({"cpu": 2, "x": 1, "local-io": 2}), machine.lease({}, wait=0) as lease:
        lease.assert_owned()
        assert os.fstat(lease.fd)


@pytest.mark.parametrize(
    "claims", [{"gpu": 1}, {"x": 0}, {"x": -1}, {"x": 2}, {"x": True}, {"X": 1}, {"": 1}, {"x": 2**60}, {"x": 1.0}]
)
def test_claims_that_can_never_be_admitted_are_refused_and_use_up_no_ticket(
    machine: Coordinator, claims: dict[str, int]
) -> None:
    """A7."""
    before = machine.lease({})
    with refused(Code.INVALID_CLAIMS):
        machine.lease(claims)
    answers = Answers()
    machine.ask(claims, notify=answers)
    answers.wait()
    assert isinstance(answers.told[0], NotAdmitted)
    assert answers.told[0].error.code is Code.INVALID_CLAIMS
    after = machine.lease({})
    assert after.ticket == before.ticket + 1
    before.release()
    after.release()


def test_exclusive_keys_have_one_holder_on_the_machine(machine: Coordinator) -> None:
    one = machine.lease({"cpu": 1}, keys=["out/film.mp4"])
    answers = Answers()
    machine.ask({}, keys=["out/film.mp4", "out/other"], notify=answers)
    waiting(1)
    assert rows("waiting")[0].blocked_by[0].resource == "exclusive key"
    assert b"film" not in b"".join(path.read_bytes() for path in machine_folder(os.environ).glob("t/*.json"))
    machine.lease({"cpu": 1}, keys=["elsewhere"], wait=0).release()
    one.release()
    answers.wait()
    assert isinstance(answers.told[0], Admitted)
    answers.told[0].lease.release()


def test_too_many_or_empty_keys_are_refused(machine: Coordinator) -> None:
    for keys in (["k"] * 65, [""], ["k" * 513]):
        with refused(Code.INVALID_CLAIMS):
            machine.lease({}, keys=keys)


def test_ticket_numbers_only_grow(machine: Coordinator) -> None:
    numbers = []
    for _ in range(30):
        with machine.lease({"x": 1}) as lease:
            numbers.append(lease.ticket)
    assert numbers == sorted(set(numbers))
    assert len(list(machine_folder(os.environ).glob("t/*"))) <= 3


def test_a_withdrawn_number_is_not_given_out_again(machine: Coordinator) -> None:
    one = machine.lease({"x": 1})
    with refused(Code.WAIT_TIMEOUT):
        machine.lease({"x": 1}, wait=0)
    for _ in range(2):
        with refused(Code.INVALID_CLAIMS):
            machine.lease({"x": 2})
    one.release()
    with machine.lease({"x": 1}) as lease:
        assert lease.ticket == one.ticket + 2


def test_a_replaced_ticket_means_that_ownership_is_lost(machine: Coordinator) -> None:
    """A6."""
    lease = machine.lease({"x": 1})
    (place,) = machine_folder(os.environ).glob("t/h.*")
    place.unlink()
    os.mkfifo(place, 0o600)
    with refused(Code.OWNERSHIP_LOST):
        lease.assert_owned()
    with refused(Code.OWNERSHIP_LOST):
        lease.run(["true"])
    lease.release()


def test_a_released_lease_is_owned_no_longer(machine: Coordinator) -> None:
    lease = machine.lease({"x": 1})
    assert lease.admitted_boot_ns <= lease.release() == lease.release()
    assert lease.fd == -1
    with refused(Code.OWNERSHIP_LOST, "was released"):
        lease.assert_owned()


def test_a_ticket_removed_while_it_waits_is_told_so(machine: Coordinator) -> None:
    one = machine.lease({"x": 1})
    answers = Answers()
    machine.ask({"x": 1}, notify=answers)
    waiting(1)
    next(machine_folder(os.environ).glob("t/[wn].*")).unlink()
    one.release()
    answers.wait()
    assert isinstance(answers.told[0], NotAdmitted)
    assert answers.told[0].error.code is Code.WAIT_ABORTED
    assert "was removed while it waited" in answers.told[0].error.what


def test_different_capacities_are_refused_while_leases_live_and_adopted_once_idle() -> None:
    """A5."""
    with children() as start:
        child = start(holder({"x": 1}, explicit={"x": 1}, name="first"))
        child.line()
        with coordinator(x=2) as other:
            with refused(Code.PROFILE_MISMATCH, rf"x=2.*x=1.*pid {child.pid} \(first\)"):
                other.lease({"x": 1})
            child.tell()
            child.line()
            with other.lease({"x": 2}, wait=0):
                assert other.capacity["x"] == 2


def test_who_sets_nothing_adopts_the_profile_in_force() -> None:
    with coordinator(cpu=1, x=3) as first, held(first.lease({"x": 1})), coordinator() as second:
        assert second.capacity["x"] == 3
        second.lease({"x": 2}, wait=0).release()
        with coordinator(x=3) as third:
            third.lease({}).release()


def test_an_unknown_explicit_key_is_a_mismatch_while_leases_live() -> None:
    with (
        coordinator() as first,
        first.lease({"ffmpeg": 1}),
        coordinator(gpu=1) as other,
        refused(Code.PROFILE_MISMATCH),
    ):
        other.lease({})


def test_the_capacity_may_be_read_before_anybody_asked() -> None:
    with coordinator(x=5) as machine:
        assert machine.capacity == {**default_capacity(), "x": 5}


@pytest.mark.parametrize("explicit", [{"X": 1}, {"x": -1}, {"x": True}, {"x": 1.5}])
def test_a_capacity_that_is_none_is_refused(explicit: dict[str, int]) -> None:
    with refused(Code.INVALID_PROFILE):
        Coordinator(machine_folder(os.environ), explicit=explicit)


def test_cpus_are_kept_back_for_the_person() -> None:
    assert [usable_cpus(n) for n in (1, 2, 3, 5, 6, 16)] == [1, 2, 2, 4, 4, 14]


@pytest.mark.parametrize("priority", [11, -11, 1.0, True])
def test_a_priority_out_of_bounds_is_refused(machine: Coordinator, priority: int) -> None:
    with refused(Code.INVALID_CLAIMS):
        machine.lease({}, priority=priority)
    with refused(Code.INVALID_CLAIMS):
        machine.ask({}, priority=priority, notify=Answers())


def test_a_closed_coordinator_withdraws_its_asks_and_takes_no_more(machine: Coordinator) -> None:
    one = machine.lease({"x": 1})
    with coordinator() as other:
        answers = Answers()
        other.ask({"x": 1}, notify=answers)
        waiting(1)
    eventually(lambda: not rows("waiting"))
    with refused(Code.CONFLICT):
        other.ask({"x": 1}, notify=answers)
    with refused(Code.CONFLICT):
        other.lease({"x": 1}, wait=0)
    one.release()
    assert answers.told == []
    with refused(Code.CONFLICT):
        other.lease({"x": 1}, wait=0)


def test_closing_a_coordinator_aborts_the_waits_of_all_threads_and_leaves_its_leases(machine: Coordinator) -> None:
    one = machine.lease({"x": 1})
    with ThreadPoolExecutor() as threads:
        with coordinator() as other:
            kept = other.lease({"cpu": 1})
            waits = [threads.submit(other.lease, {"x": 1}, wait=wait) for wait in (None, LIMIT_S, None)]
            waiting(3)
        for wait in waits:
            with refused(Code.WAIT_ABORTED):
                wait.result(LIMIT_S)
    assert not rows("waiting")
    kept.assert_owned()
    kept.release()
    one.release()
    machine.lease({"x": 1}, wait=0).release()


def test_an_ask_that_is_being_made_while_the_coordinator_closes_leaves_no_ticket(machine: Coordinator) -> None:
    one = machine.lease({"x": 1})
    other, answers = coordinator(), Answers()
    gate = machine.machine._gate
    gate.enter()
    other.ask({"x": 1}, notify=answers)
    eventually(lambda: not other._poller._new)  # its thread stands at the gate
    closing = threading.Thread(target=other.close)
    closing.start()
    eventually(lambda: other._poller._stopping)
    gate.leave()
    closing.join(LIMIT_S)
    assert not closing.is_alive()
    assert [row.ticket for row in rows()] == [one.ticket]
    assert answers.told == []
    one.release()


def test_a_callback_that_fails_does_not_stop_the_others(machine: Coordinator, caplog: pytest.LogCaptureFixture) -> None:
    def fail(answer: Admitted | NotAdmitted) -> None:
        assert isinstance(answer, Admitted)
        answer.lease.release()
        raise ValueError("mine")

    machine.ask({"x": 1}, notify=fail)
    answers = Answers()
    machine.ask({"x": 1}, notify=answers)
    answers.wait()
    assert isinstance(answers.told[0], Admitted)
    answers.told[0].lease.release()
    assert "mine" in caplog.text


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_callback_that_wants_to_end_the_program_does_not_end_the_thread_that_answers(
    machine: Coordinator, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    def leave(answer: Admitted | NotAdmitted) -> None:
        assert isinstance(answer, Admitted)
        answer.lease.release()
        raise error

    machine.ask({"x": 1}, notify=leave)
    eventually(lambda: rows() == [] and error.__name__ in caplog.text)
    answers = Answers()
    machine.ask({"x": 1}, notify=answers)
    answers.wait()
    assert isinstance(answers.told[0], Admitted)
    answers.told[0].lease.release()


FAILING = """
def fail(answer):
    say("admitted")
    raise ValueError("mine")
coordinator = Coordinator(FOLDER)
ask = coordinator.ask({"x": 1}, notify=fail)
hear()
"""


def test_a_lease_that_a_failed_callback_has_not_kept_is_free_again(machine: Coordinator) -> None:
    """Nobody has it; the thread that answers keeps no name of it either, though nothing more is asked of it."""
    with children() as start:
        at_once = start(FAILING)
        assert at_once.line() == "admitted"
        eventually(lambda: rows() == [])
        lease = machine.lease({"x": 1})
        later = start(FAILING)
        waiting(1)
        lease.release()
        assert later.line() == "admitted"
        eventually(lambda: rows() == [])


def test_an_ask_without_anybody_to_tell_is_refused(machine: Coordinator) -> None:
    with refused(Code.INVALID_DATA, "notify is None"):
        machine.ask({"x": 1}, notify=None)  # type: ignore[arg-type]
    assert rows() == []


def test_a_released_lease_cannot_be_entered_again(machine: Coordinator) -> None:
    """Its body would run with nothing held."""
    lease = machine.lease({"x": 1})
    with lease:
        pass
    with refused(Code.OWNERSHIP_LOST, "was released"), lease:
        raise AssertionError
    assert current_lease.get() is None


def test_a_lease_cannot_be_entered_twice_at_once(machine: Coordinator) -> None:
    """Leaving it once would give it back under the other."""
    with machine.lease({"x": 1}) as lease:
        with refused(Code.CONFLICT, "is entered already"), lease:
            raise AssertionError
        lease.assert_owned()
        assert current_lease.get() is lease
    assert rows() == []


def test_importing_and_opening_start_no_thread(machine: Coordinator) -> None:
    machine.lease({"x": 1}).release()
    assert [thread for thread in threading.enumerate() if thread.name.startswith("hostres")] == []


def test_all_asks_of_a_process_share_one_thread(machine: Coordinator) -> None:
    one = machine.lease({"x": 1})
    answers = Answers()
    for _ in range(20):
        machine.ask({"x": 1}, notify=lambda answer: answers(_given_back(answer)))
    waiting(20)
    assert len([thread for thread in threading.enumerate() if thread.name.startswith("hostres")]) == 1
    one.release()
    answers.wait(20)
    tickets = [answer.lease.ticket for answer in answers.told if isinstance(answer, Admitted)]
    assert tickets == sorted(tickets)
    assert len(tickets) == 20
    assert machine.safety_net_progress == 0


def _given_back(answer: Admitted | NotAdmitted) -> Admitted | NotAdmitted:
    if isinstance(answer, Admitted):
        answer.lease.release()
    return answer


def test_the_thread_variables_follow_the_cpu_claim(machine: Coordinator) -> None:
    """Field case 34."""
    with machine.lease({"cpu": 2}) as lease:
        assert lease.environment["OMP_NUM_THREADS"] == lease.environment["HOSTLER_CPUS"] == "2"
        assert lease.environment["HOSTLER_LEASE"].startswith(f"{lease.ticket}.")
    with machine.lease({"x": 1}) as lease:
        assert set(lease.environment) == {"HOSTLER_LEASE"}


def test_a_lease_runs_programs_that_hold_it(machine: Coordinator) -> None:
    pieces: list[bytes] = []
    with machine.lease({"cpu": 1, "x": 1}) as lease:
        done = lease.run(["sh", "-c", "ls -l /proc/self/fd; echo $OMP_NUM_THREADS"], on_stdout=pieces.append)
    assert done.code == 0
    lines = b"".join(pieces).decode().splitlines()
    assert lines[-1] == "1"
    assert any(f"h.{lease.ticket}." in line for line in lines)


@pytest.mark.parametrize("reused", [False, True])
def test_a_descriptor_that_was_closed_by_its_number_means_that_ownership_is_lost(
    machine: Coordinator, tmp_path: Path, reused: bool
) -> None:
    """Nothing is started that nobody would see to, and whose number it is now is left alone."""
    lease = machine.lease({"x": 1})
    fd = lease.fd
    os.close(fd)
    if reused:
        other = os.open(tmp_path, os.O_RDONLY)
        if other != fd:
            os.dup2(other, fd)
            os.close(other)
    for start in (lease.run, lease.popen):
        with refused(Code.OWNERSHIP_LOST):
            start(["touch", str(tmp_path / "ran")])
    with refused(Code.OWNERSHIP_LOST):
        Supervised.start(["touch", str(tmp_path / "ran")], env=os.environ, lease_fds=(1 << 20,))
    assert psutil.Process().children() == []
    lease.release()
    assert not (tmp_path / "ran").exists()
    if reused:
        assert os.path.samestat(os.fstat(fd), tmp_path.stat())
        os.close(fd)
    machine.lease({"x": 1}, wait=0).release()


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"wait": "3"}, "wait is '3'"),
        ({"wait": True}, "wait is True"),
        ({"name": None}, "name is None"),
        ({"name": b"talk"}, "name is b'talk'"),
        ({"command": "echo hi"}, "command is 'echo hi'"),
        ({"command": [b"echo"]}, "command is b'echo'"),
        ({"keys": "film"}, "keys is 'film'"),
        ({"keys": [1]}, "keys is"),
        ({"claims": ["x"]}, "claims is"),
        ({"claims": {b"x": 1}}, "b'x' cannot name a resource"),
        ({"keys": 1}, "keys is 1"),
        ({"keys": iter(["film"])}, "keys is <list_iterator"),
        ({"wait": float("nan")}, "wait is nan"),
        ({"wait": 10**400}, "wait is 1000"),
        ({"wait": 10**5000}, "wait is of type int"),
        ({"parent": 1}, "parent is 1"),
        ({"abort": 1}, "abort is 1"),
    ],
)
def test_an_ask_with_an_argument_of_a_wrong_type_names_it(machine: Coordinator, asked: Any, named: str) -> None:
    code = Code.INVALID_CLAIMS if asked.keys() & {"keys", "claims"} else Code.INVALID_DATA
    with pytest.raises(HostlerError, match=named, check=lambda error: error.code is code):
        machine.lease(**{"claims": {"x": 1}, **asked})
    assert rows() == []


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"argv": "echo hi"}, "argv is 'echo hi'"),
        ({"argv": b"echo"}, "argv is b'echo'"),
        ({"argv": ["echo", b"\xff"]}, r"argv\[1\] is b'"),
        ({"argv": ["echo", 3]}, r"argv\[1\] is 3"),
        ({"argv": ["echo", "\ud800"]}, r"argv\[1\] is "),
        ({"env": {"A": 1}}, r"env\['A'\] is 1"),
        ({"env": {b"A": "1"}}, r"env\[b'A'\] is b'A'"),
        ({"env": "A=1"}, "env is 'A=1'"),
        ({"cwd": b"/"}, "cwd is b'/'"),
        ({"cwd": 3}, "cwd is 3"),
        ({"stdin": "text"}, "stdin is 'text'"),
        ({"timeout": "3"}, "timeout is '3'"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"timeout": 10**400}, "timeout is 1000"),
        ({"on_stdout": 1}, "on_stdout is 1"),
    ],
)
def test_a_program_with_an_argument_of_a_wrong_type_is_not_started_and_it_is_named(
    machine: Coordinator, given: Any, named: str
) -> None:
    arguments = {"argv": ["true"], **given}
    with machine.lease({"x": 1}) as lease:
        for start in (lease.run, lease.popen)[: 1 if "timeout" in given else 2]:
            with pytest.raises(HostlerError, match=named, check=lambda error: error.code is Code.INVALID_DATA):
                start(**arguments)


def test_a_log_is_named_by_a_path(machine: Coordinator) -> None:
    with machine.lease({"x": 1}) as lease, refused(Code.INVALID_DATA, "stdout_log is 'log'"):
        lease.popen(["true"], stdout_log="log")  # type: ignore[arg-type]


def test_a_program_or_folder_whose_name_is_too_long_for_the_system_is_not_there(machine: Coordinator) -> None:
    long = "x" * 300
    with machine.lease({"x": 1}) as lease:
        for given in ({"argv": [long]}, {"argv": [f"/{long}"]}, {"argv": ["true"], "cwd": f"/{long}"}):
            with refused(Code.NOT_FOUND, "there is no"):
                lease.run(**given)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"folder": None}, "folder is None"),
        ({"folder": b"x"}, "folder is b'x'"),
        ({"explicit": 1}, "explicit is 1"),
        ({"environ": 1}, "environ is 1"),
        ({"patience": 3}, "patience is 3"),
        ({"settings": {}}, "settings is {}"),
    ],
)
def test_a_coordinator_with_an_argument_of_a_wrong_type_names_it(given: Any, named: str) -> None:
    with refused(Code.INVALID_DATA, named):
        Coordinator(**{"folder": machine_folder(os.environ), **given})


def test_a_working_folder_may_be_text(machine: Coordinator, tmp_path: Path) -> None:
    with machine.lease({"x": 1}) as lease:
        lease.run(["touch", os.fsdecode(b"\xff")], cwd=str(tmp_path))
    assert os.listdir(os.fsencode(tmp_path / ".")).count(b"\xff") == 1
