"""What claims take beside what they name: the configuration maps ffmpeg to CPUs (A10)."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel

from hostler import Host, Policy, operation, workflow
from hostler.config import Config
from hostres.capacities import set_capacities
from hostres.claim_policy import ClaimPolicy
from hostres.coordinator import Admitted, Coordinator, NotAdmitted
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.settings import machine_settings
from store.home import Home
from store.reader import Reader
from tests.hostres.support import LIMIT_S, children, eventually, held, rows, waiting

MINE = sorted(os.sched_getaffinity(0))
HOSTLER = (sys.executable, "-m", "hostler")
SEEN = "import os; print(sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'], os.environ['HOSTLER_CPUS'])"
ALL_OF_THEM = f"{MINE} {len(MINE)} {len(MINE)}\n"
ROOM = {"ffmpeg": 2, "whisper": 1, "cpu": 8, "memory-mb": 1000}


def configure(text: str) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text(text)


def all_cpus_for_ffmpeg() -> None:
    configure(f'[machine.capacity]\ncpu = {len(MINE)}\n\n[machine.claims]\nffmpeg = {{ cpu = "all" }}\n')


def configured() -> Coordinator:
    return Coordinator(machine_folder(os.environ), settings=machine_settings(os.environ))


@pytest.mark.parametrize(
    ("takes", "claims", "physical"),
    [
        ({"ffmpeg": {"cpu": "all"}}, {"ffmpeg": 1}, {"ffmpeg": 1, "cpu": 8}),
        ({"ffmpeg": {"cpu": "all"}}, {"ffmpeg": 2, "cpu": 3}, {"ffmpeg": 2, "cpu": 8}),
        ({"ffmpeg": {"cpu": "all"}}, {"whisper": 1, "cpu": 3}, {"whisper": 1, "cpu": 3}),
        ({"ffmpeg": {"cpu": 2}}, {"ffmpeg": 2}, {"ffmpeg": 2, "cpu": 4}),
        ({"ffmpeg": {"cpu": 2}}, {"ffmpeg": 2, "cpu": 1}, {"ffmpeg": 2, "cpu": 4}),
        ({"ffmpeg": {"cpu": 2}}, {"ffmpeg": 2, "cpu": 6}, {"ffmpeg": 2, "cpu": 6}),
        (
            {"ffmpeg": {"cpu": 2}, "whisper": {"cpu": 4, "memory-mb": 600}},
            {"ffmpeg": 1, "whisper": 1},
            {"ffmpeg": 1, "whisper": 1, "cpu": 6, "memory-mb": 600},
        ),
        ({"ffmpeg": {"cpu": "all"}, "whisper": {"cpu": 4}}, {"ffmpeg": 1, "whisper": 1}, {"cpu": 8}),
        ({"ffmpeg": {}}, {"ffmpeg": 1}, {"ffmpeg": 1}),
        ({"ffmpeg": {"cpu": 2}}, {}, {}),
    ],
)
def test_what_claims_take_adds_up_and_what_is_claimed_anyway_is_within_it(
    takes: Mapping[str, Mapping[str, int | str]], claims: dict[str, int], physical: dict[str, int]
) -> None:
    found = ClaimPolicy(takes=takes, path=Path("x.toml")).physical(claims, ROOM)
    assert found == {**claims, **physical}


def test_who_takes_more_than_there_is_is_told_by_which_line() -> None:
    configure("# a comment\n[machine.claims]\nwhisper = { cpu = 1 }\nffmpeg = { cpu = 5 }\n")
    policy = machine_settings(os.environ).claims
    assert policy is not None
    with pytest.raises(HostlerError) as refused:
        policy.physical({"ffmpeg": 2}, ROOM)
    assert refused.value.code is Code.INVALID_CLAIMS
    assert refused.value.what == f"ffmpeg takes cpu=10 by {os.environ['HOSTLER_CONFIG']} line 4, and there are 8"


@pytest.mark.parametrize(
    ("text", "line", "said", "todo"),
    [
        ("[machine]\nclaims = 3", 2, "is not a table", "ffmpeg"),
        ('[machine.claims]\n\nffmpeg = "cpu"', 3, "machine.claims.ffmpeg is not a table", 'ffmpeg = { cpu = "all" }'),
        ('[machine.claims]\n"FF mpeg" = { cpu = 2 }', 2, 'machine.claims."FF mpeg" is no such name', "lower-case"),
        ("[machine.claims.ffmpeg]\ncpu = 0", 2, "machine.claims.ffmpeg.cpu = 0 is not right", "at least 1"),
        ("[machine.claims]\nffmpeg.cpu = -1", 2, "machine.claims.ffmpeg.cpu = -1 is not right", "at least 1"),
        ('[machine.claims]\nffmpeg = { cpu = "most" }', 2, 'machine.claims.ffmpeg.cpu = "most" is not right', '"all"'),
        ("[machine.claims]\nffmpeg = { cpu = true }", 2, "machine.claims.ffmpeg.cpu = true is not right", "at least 1"),
        ("[machine.claims]\nffmpeg = { ffmpeg = 2 }", 2, "takes itself", "cpu"),
        ("[machine.claims]\nwhisper={cpu=1}\nffmpeg={whisper=1}", 3, "takes whisper, which takes", "cpu"),
        ('[machine.claims]\nffmpeg = { cpus = "all" }', 2, "names cpus, which this machine does not have", "is cpu,"),
        ("[machine.claims]\nfmpeg = { cpu = 1 }", 2, "names fmpeg, which this machine does not have", "is ffmpeg,"),
        ("[machine.claims]\nwhisper={cpu=1}\n[machine.claims.ffmpeg]\ncpu=1\ngpu=1", 5, "names gpu", "add it to"),
    ],
)
def test_a_wrong_mapping_is_named_with_its_line_and_what_to_write(text: str, line: int, said: str, todo: str) -> None:
    configure(text)
    with pytest.raises(HostlerError) as refused, configured() as machine:
        machine.lease({})
    assert refused.value.code is Code.INVALID_PROFILE
    assert refused.value.what.startswith(f"{os.environ['HOSTLER_CONFIG']} line {line}: machine.claims")
    assert said in refused.value.what
    assert todo in refused.value.todo
    assert rows() == []


@pytest.mark.parametrize("arguments", [("exec", "--", "true"), ("machine", "show"), ("doctor",)])
def test_every_command_that_looks_at_the_machine_tells_of_a_wrong_mapping(arguments: tuple[str, ...]) -> None:
    configure("[machine.claims]\nfmpeg = { cpu = 1 }\n")
    done = subprocess.run([*HOSTLER, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 2
    assert f"{os.environ['HOSTLER_CONFIG']} line 2: machine.claims.fmpeg names fmpeg" in done.stdout + done.stderr


def test_a_command_under_ffmpeg_gets_all_cpus_and_their_number() -> None:
    all_cpus_for_ffmpeg()
    command = [*HOSTLER, "exec", "--claim", "ffmpeg=1", "--", sys.executable, "-c", SEEN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert (done.stdout, done.stderr) == (ALL_OF_THEM, "")


def test_a_lease_of_a_host_takes_them_too_and_top_shows_what_it_takes(capfd: pytest.CaptureFixture[str]) -> None:
    all_cpus_for_ffmpeg()
    with Host() as host, held(host.lease({"ffmpeg": 1})) as lease:
        assert lease.claims == {"ffmpeg": 1, "cpu": len(MINE)}
        assert lease.cpus == tuple(MINE)
        assert [row.claims for row in rows("admitted")] == [lease.claims]
        with pytest.raises(HostlerError) as late:
            host.lease({"cpu": 1}, wait=0)
        assert late.value.code is Code.WAIT_TIMEOUT
        lease.run([sys.executable, "-c", SEEN])
        assert capfd.readouterr().out == ALL_OF_THEM


def test_inside_such_a_lease_the_same_is_a_part_of_it() -> None:
    all_cpus_for_ffmpeg()
    inner = [*HOSTLER, "exec", "--claim", "ffmpeg=1", "--", sys.executable, "-c", SEEN]
    done = subprocess.run(
        [*HOSTLER, "exec", "--claim", "ffmpeg=1", "--", *inner],
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (ALL_OF_THEM, "")


BEHIND = """
from hostres.settings import machine_settings
coordinator = Coordinator(FOLDER, settings=machine_settings(os.environ))
lease = coordinator.lease({"ffmpeg": 1, "network": 1})
say(lease.ticket, lease.claims["cpu"], coordinator.safety_net_progress)
hear()
"""


def set_cpus(units: int) -> None:
    set_capacities(machine_folder(os.environ), os.environ, {"cpu": units})


@pytest.mark.parametrize("later", [1, 4])
def test_who_waits_for_all_gets_all_that_there_is_when_it_is_admitted(later: int) -> None:
    """However the capacity has changed since it asked, and in its turn."""
    configure('[machine.capacity]\ncpu = 2\nffmpeg = 9\n\n[machine.claims]\nffmpeg = { cpu = "all" }\n')
    answers: list[Admitted | NotAdmitted] = []
    with configured() as machine, children() as start:
        holder = machine.lease({"cpu": 1})
        machine.ask({"ffmpeg": 1}, notify=answers.append)
        waiting(1)
        behind = [start(BEHIND)]
        waiting(2)
        behind.append(start(BEHIND))
        waiting(3)
        first = [row.ticket for row in rows("waiting")]
        set_cpus(3)
        set_cpus(later)
        eventually(lambda: [row.claims["cpu"] for row in rows("waiting")][:1] == [later])
        # A look that takes no turn can miss a ticket while it is renamed, so it is looked for again.
        eventually(lambda: [row.ticket for row in rows("waiting")] == first)
        assert answers == []
        holder.release()
        eventually(lambda: answers)
        (admitted,) = answers
        assert isinstance(admitted, Admitted)
        assert admitted.lease.claims == {"ffmpeg": 1, "cpu": later}
        admitted.lease.release()
        for child, ticket in zip(behind, first[1:], strict=True):
            assert child.line() == f"{ticket} {later} 0"
            child.kill()
        assert machine.safety_net_progress == 0
    assert not [path.name for path in machine_folder(os.environ).glob("t/*") if path.name.startswith((".", "w.", "n."))]


def test_a_wait_for_all_that_is_given_up_after_a_change_leaves_nothing() -> None:
    configure('[machine.capacity]\ncpu = 2\n\n[machine.claims]\nffmpeg = { cpu = "all" }\n')
    answers: list[Admitted | NotAdmitted] = []
    with configured() as machine:
        holder = machine.lease({"cpu": 2})
        ask = machine.ask({"ffmpeg": 1}, notify=answers.append)
        waiting(1)
        set_cpus(1)
        eventually(lambda: [row.claims["cpu"] for row in rows("waiting")] == [1])
        ask.withdraw()
        waiting(0)
        holder.release()
        machine.lease({"cpu": 1}, wait=0).release()
    assert answers == []


class Nothing(BaseModel):
    pass


class Said(BaseModel):
    text: str


@operation("test.encodes", version=1, policy=Policy(effect="local-read", claims={"ffmpeg": 1}))
def encodes(ctx, input: Nothing) -> Said:
    return Said(text=ctx.run([sys.executable, "-c", SEEN]).stdout.decode())


@workflow("encoding", version=1)
def encoding(build):
    return {"text": build.call(encodes, key="a", input={})["text"]}


def test_a_node_takes_them_too_and_its_events_say_what_it_was_given() -> None:
    all_cpus_for_ffmpeg()
    with Host() as host:
        run = host.submit(encoding)
        assert run.wait(timeout=LIMIT_S).outputs == {"text": ALL_OF_THEM}
    with Reader.open(Home.open(Config.load().home, create=False)) as reader:
        (began,) = [event for event in reader.events(run.run_id) if event.kind == "node-running"]
        assert began.data["claims"] == {"ffmpeg": 1, "cpu": len(MINE)}


def test_machine_show_and_doctor_show_the_mapping() -> None:
    all_cpus_for_ffmpeg()
    for arguments in (("machine", "show"), ("doctor",)):
        done = subprocess.run([*HOSTLER, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert "a claim of ffmpeg takes cpu=all" in done.stdout
