"""Two programs that share nothing but the machine: an embedded coordinator and the command line."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.hostres.support import LIMIT_S, children, eventually, pid_written, rows

HOSTLER = (sys.executable, "-m", "hostler")

PROGRAM = """
coordinator = Coordinator(FOLDER)
lease = coordinator.lease({{"ffmpeg": 1, "whisper": 1}}, name="program")
process = lease.popen(["sh", "-c", "echo $$ > {folder}/pid; exec sleep 600"])
say("running")
hear()
"""


def test_a_program_killed_in_mid_work_keeps_its_place_until_its_tool_has_ended(tmp_path: Path) -> None:
    with children() as start:
        program = start(PROGRAM.format(folder=tmp_path))
        program.line()
        pid = pid_written(tmp_path / "pid")
        other = subprocess.Popen(
            [*HOSTLER, "exec", "--claim", "whisper=1", "--name", "other", "--", "echo", "mine"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        eventually(lambda: [row.state for row in rows()] == ["admitted", "waiting"])
        program.kill()
        shown = json.loads(subprocess.run([*HOSTLER, "top", "--json"], capture_output=True, check=True).stdout)
        held, waits = shown["tickets"]
        assert [process["pid"] for process in held["processes"]] == [pid]
        assert waits["blocked_by"][0]["resource"] == "whisper"
        beside = subprocess.run([*HOSTLER, "exec", "--claim", "ffmpeg=1", "--wait", "0", "--", "true"], check=False)
        assert beside.returncode == 0
        os.kill(pid, signal.SIGKILL)
        output, _ = other.communicate(timeout=LIMIT_S)
        assert (other.returncode, output) == (0, "mine\n")
        assert rows() == []


def test_many_programs_of_both_kinds_never_exceed_the_capacity(tmp_path: Path) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text("[machine.capacity]\nx = 2\n")
    inside = tmp_path / "inside"
    inside.mkdir()
    script = f"touch {inside}/$$; ls {inside} | wc -l; rm {inside}/$$"
    embedded = f"""
        from hostres.settings import machine_capacity
        coordinator = Coordinator(FOLDER, explicit=machine_capacity(os.environ))
        for _ in range(5):
            with coordinator.lease({{"x": 1}}) as lease:
                lease.run(["sh", "-c", {script!r}])
    """
    with children() as start:
        programs = [start(embedded) for _ in range(2)]
        commands = [
            subprocess.Popen([*HOSTLER, "exec", "--claim", "x=1", "--", "sh", "-c", script], stdout=subprocess.PIPE)
            for _ in range(8)
        ]
        counts = [int(command.communicate(timeout=LIMIT_S)[0]) for command in commands]
        for program in programs:
            assert program.process.stdout is not None
            counts += [int(program.line()) for _ in range(5)]
    assert len(counts) == 18
    assert max(counts) <= 2
    eventually(lambda: not rows())
