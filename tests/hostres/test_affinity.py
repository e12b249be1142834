"""CPUs of a lease's own, as its processes see them (A10)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostres import affinity
from hostres.process import Supervised
from tests.hostres.support import LIMIT_S, children, coordinator, held, rows, waiting

MINE = sorted(os.sched_getaffinity(0))
needs_two = pytest.mark.skipif(len(MINE) < 2, reason="needs two CPUs")

SEEN = "import os; print(sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'], os.environ['HOSTLER_CPUS'])"


def test_the_lowest_free_cpus_are_chosen_or_none_at_all() -> None:
    assert affinity.choose(2, allowed={7, 3, 5, 1}, taken={1}) == (3, 5)
    assert affinity.choose(4, allowed={7, 3, 5, 1}, taken={1}) == ()
    assert affinity.choose(0, allowed={1}, taken=()) == ()


def test_a_name_tells_its_cpus() -> None:
    assert affinity.of_name("h.12.abcd.a1") == (0, 5, 7)
    assert affinity.of_name("s.12.7-3.abcd.6") == (1, 2)
    for name in ("h.12.abcd", "w.12.abcd.a1", "h.12.abcd.what", "12.json", "h.1.2.3.4", "s.1.2.33"):
        assert affinity.of_name(name) == ()


def test_only_a_claim_of_cpu_within_the_machine_s_cpus_gets_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(affinity, "machine_cpus", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 2, 3})
    assert affinity.suffix({"cpu": 2}, ["h.1.a.1"], {"cpu": 4}) == ".6"
    assert affinity.suffix({"cpu": 2}, ["h.1.a.2", "h.2.b"], {"cpu": 4}) == ".c"
    assert affinity.suffix({"cpu": 2}, ["h.1.a.6"], {"cpu": 4}) == ""
    assert affinity.suffix({"cpu": 2}, [], {"cpu": 5}) == ""
    assert affinity.suffix({"cpu": 1}, ["s.2.1.a.2"], {"cpu": 4}, within=(1, 2)) == ".4"
    assert affinity.suffix({"ffmpeg": 2}, [], {"cpu": 4}) == ""


def test_a_supervised_process_has_exactly_the_granted_cpus_and_threads(capfd: pytest.CaptureFixture[str]) -> None:
    """Field case 34."""
    with coordinator(cpu=len(MINE)) as machine, machine.lease({"cpu": 1}) as lease:
        assert lease.cpus == (MINE[0],)
        lease.run([sys.executable, "-c", SEEN])
        assert capfd.readouterr().out == f"{[MINE[0]]} 1 1\n"
    assert sorted(os.sched_getaffinity(0)) == MINE  # our own is what it was


@needs_two
def test_two_leases_have_different_cpus_and_give_them_back(tmp_path: Path) -> None:
    with coordinator(cpu=len(MINE)) as machine:
        with held(machine.lease({"cpu": 1})) as one, held(machine.lease({"cpu": 1})) as other:
            assert {*one.cpus, *other.cpus} == set(MINE[:2])
            one.release()
            with held(machine.lease({"cpu": 1})) as third:
                assert third.cpus == one.cpus
        with held(machine.lease({"cpu": len(MINE)})) as all_of_them:
            assert list(all_of_them.cpus) == MINE


@needs_two
def test_they_are_chosen_from_what_the_asker_may_use() -> None:
    code = f"""
        os.sched_setaffinity(0, [{MINE[-1]}])
        machine = Coordinator(FOLDER, explicit={{"cpu": {len(MINE)}}})
        leases = [machine.lease({{"cpu": 1}}) for _ in range(2)]
        for lease in leases:
            say(lease.cpus)
        hear()
    """
    with children() as start:
        child = start(code)
        assert child.line() == f"({MINE[-1]},)"
        assert child.line() == "()"
        first, second = rows()
        assert (first.cpus, second.cpus) == ((MINE[-1],), ())
        assert first.to_json()["cpus"] == [MINE[-1]]


def test_a_waiter_gets_its_cpus_when_it_is_admitted() -> None:
    code = """
        with Coordinator(FOLDER).lease({"cpu": 1}) as lease:
            say(lease.cpus)
            lease.assert_owned()
            subprocess.run(["true"], pass_fds=[lease.fd])
    """
    with coordinator(cpu=1) as machine, children() as start:
        lease = machine.lease({"cpu": 1})
        child = start(code)
        waiting(1)
        lease.release()
        assert child.line() == str(lease.cpus)


def test_more_units_than_cpus_are_shared_and_nothing_is_pinned() -> None:
    with coordinator(cpu=affinity.machine_cpus() + 1) as machine, machine.lease({"cpu": 1}) as lease:
        assert lease.cpus == ()
        assert lease.environment["HOSTLER_CPUS"] == "1"
        (row,) = rows()
        assert row.cpus == ()
    with coordinator() as machine, machine.lease({"local-io": 1}):
        assert [row.cpus for row in rows()] == [None]


def test_cpus_that_were_taken_away_since_do_not_stop_the_start() -> None:
    process = Supervised.start(["true"], env=dict(os.environ), cpus=[4095])
    done = process.wait(LIMIT_S)
    process.end(grace_s=0, reason="cleanup")
    assert done is not None
    assert done.code == 0


@needs_two
def test_the_command_of_exec_has_exactly_the_granted_cpus() -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text(f"[machine.capacity]\ncpu = {len(MINE)}\n")
    with coordinator(cpu=len(MINE)) as machine, machine.lease({"cpu": 1}):
        command = [sys.executable, "-m", "hostler", "exec", "--claim", "cpu=1", "--", sys.executable, "-c", SEEN]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
        assert (done.stdout, done.stderr) == (f"{[MINE[1]]} 1 1\n", "")
