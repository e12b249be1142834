"""What is left of a run whose host is gone: found, ended, and never mixed up with anything else."""

import os
from pathlib import Path

from hostres.folders import machine_folder
from hostres.leftovers import end_leftovers, find_leftovers
from tests.hostres.started import TREE, alive
from tests.hostres.support import LIMIT_S, children, eventually, pid_written


def test_the_processes_of_a_killed_host_are_found_by_their_run_and_ended_whole(tmp_path: Path) -> None:
    host = f"""
        from hostres.process import Supervised
        environ = {{**os.environ, "HOSTLER_RUN": "run_a", "HOSTLER_NODE": "film/encode"}}
        Supervised.start(["sh", "-c", {TREE.format(tmp_path)!r}], env=environ, stdout_log=None, stderr_log=None)
        say("started")
        hear()
    """
    with children() as begin:
        child = begin(host)
        child.line()
        pids = {pid_written(tmp_path / "child"), pid_written(tmp_path / "session")}
        child.kill()
        found = find_leftovers("run_a")
        assert pids < {one.pid for one in found}
        assert {one.node for one in found} == {"film/encode"}
        assert ("sleep", "600") in {one.command for one in found}
        assert find_leftovers("run_b") == []
        assert end_leftovers(found, grace_s=LIMIT_S) == []
        assert not any(alive(pid) for pid in pids)
        assert find_leftovers("run_a") == []
    assert end_leftovers([], grace_s=0) == []


def test_what_threw_its_environment_away_is_found_by_the_ticket_that_it_inherited_and_its_host_is_not() -> None:
    host = """
        from hostres.coordinator import Coordinator
        from hostres.folders import machine_folder
        from hostres.process import Supervised
        machine = Coordinator(machine_folder(os.environ), explicit={"x": 1})
        lease = machine.lease({"x": 1}, name="run_a film/encode")
        child = Supervised.start(["sh", "-c", "exec env -i sleep 600"], env={**os.environ}, lease_fds=[lease.fd])
        say(child.pid)
        hear()
    """
    folder = machine_folder(os.environ)
    with children() as begin:
        child = begin(host)
        pid = int(child.line())
        eventually(lambda: [one.command for one in find_leftovers("run_a", folder)] == [("sleep", "600")])
        assert find_leftovers("run_a") == []
        assert find_leftovers("run_b", folder) == []
        (found,) = find_leftovers("run_a", folder)
        assert (found.pid, found.node) == (pid, "film/encode")
        child.kill()
        assert end_leftovers([found], grace_s=LIMIT_S, machine_folder=folder) == []
        assert not alive(pid)


def test_neither_we_nor_those_we_descend_from_are_leftovers() -> None:
    code = """
        from hostres.leftovers import find_leftovers
        say([one.pid for one in find_leftovers("run_a")])
        inner = subprocess.run([sys.executable, "-c",
            "from hostres.leftovers import find_leftovers; print([one.pid for one in find_leftovers('run_a')])"],
            capture_output=True, text=True, check=True)
        say(inner.stdout.strip())
    """
    with children() as begin:
        child = begin(code, environ={"HOSTLER_RUN": "run_a"})
        assert child.line() == "[]"
        assert child.line() == "[]"
