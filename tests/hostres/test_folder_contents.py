"""What is found in the machine folder: unsafe, damaged, strange, left by the dead, or no room for more."""

import contextlib
import errno
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostres.clock import boot_id
from hostres.coordinator import Coordinator
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.top import snapshot
from tests.hostres.support import children, coordinator, held, refused, rows


@pytest.fixture
def machine() -> Iterator[Coordinator]:
    with coordinator(cpu=2, x=1, local_io=2) as one:
        yield one


def test_an_unsafe_folder_is_refused_at_the_next_ask(machine: Coordinator) -> None:
    """A8."""
    folder = machine_folder(os.environ)
    folder.chmod(0o755)
    with refused(Code.UNSAFE_STATE, "mode 0755.*chmod 700"):
        machine.lease({})
    with refused(Code.UNSAFE_STATE):
        Coordinator(folder)
    folder.chmod(0o700)
    (folder / "t").chmod(0o750)
    with refused(Code.UNSAFE_STATE, "mode 0750"):
        machine.lease({})


def test_a_link_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A8."""
    (tmp_path / "real").mkdir(mode=0o700)
    machine_folder(os.environ).symlink_to(tmp_path / "real")
    with refused(Code.UNSAFE_STATE, "symbolic link"):
        coordinator()


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *((name, damage) for name in ("gate", "state.json", "record", "ticket") for damage in ("hard link", "open")),
        *((name, "link") for name in ("gate", "state.json", "record")),
        *((name, "oversized") for name in ("gate", "state.json", "record")),
    ],
)
def test_an_unsafe_file_is_refused(machine: Coordinator, name: str, damage: str) -> None:
    """A8."""
    lease = machine.lease({})
    if name == "ticket":
        name = f"t/{next(machine_folder(os.environ).glob('t/h.*')).name}"
    elif name == "record":
        name = f"t/{lease.ticket}.json"
    path = machine_folder(os.environ) / name
    if damage == "link":
        path.rename(path.with_name("elsewhere"))
        path.symlink_to("elsewhere")
    elif damage == "hard link":
        path.with_name("second").hardlink_to(path)
        path.with_name("third").hardlink_to(path)  # that of an heir may have two
    elif damage == "open":
        path.chmod(0o604)
    else:
        path.write_bytes(b" " * 70_000)
    with refused(Code.UNSAFE_STATE, name), children() as start:
        child = start("""
            try:
                Coordinator(FOLDER).lease({})
            except HostlerError as error:
                say(f"{error.code}|{error.what}")
        """)
        code, what = child.line().split("|")
        lease.release()
        raise HostlerError(Code(code), what, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")
def test_a_folder_of_somebody_else_is_refused() -> None:
    """A8."""
    folder = machine_folder(os.environ)
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    with refused(Code.UNSAFE_STATE, "user id 12345"):
        coordinator()


def test_harmless_strangers_are_ignored_and_named(machine: Coordinator) -> None:
    """A8."""
    machine.lease({}).release()
    folder = machine_folder(os.environ)
    for name in (".DS_Store", "notes.txt~", "w.txt", "x.1.abc", "h.1.2.3.4.5"):
        (folder / "t" / name).touch()
    machine.lease({"x": 1}, wait=0).release()
    assert set(snapshot(folder).strange) == {".DS_Store", "notes.txt~", "w.txt", "x.1.abc", "h.1.2.3.4.5"}
    assert (folder / "t" / ".DS_Store").exists()


@pytest.mark.parametrize("kind", ["folder", "socket"])
@pytest.mark.parametrize("name", ["gate", "state.json", "t/h.7.abcd", "t/.new.abcd", "t/7.json"])
def test_what_cannot_be_there_is_named_or_swept(machine: Coordinator, name: str, kind: str) -> None:
    """A8."""
    machine.lease({}).release()
    path = machine_folder(os.environ) / name
    path.unlink(missing_ok=True)
    if kind == "folder":
        path.mkdir(mode=0o700)
    else:
        with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(path.parent):
            listener.bind(path.name)
        path.chmod(0o600)
    if kind == "socket" and name in ("t/.new.abcd", "t/7.json"):
        machine.lease({"x": 1}, wait=0).release()
        machine.lease({"x": 1}, wait=0).release()
        assert not path.exists()
    else:
        with refused(Code.UNSAFE_STATE, re.escape(str(path))):
            for _ in range(2):
                coordinator().lease({"x": 1}, wait=0).release()


@pytest.mark.parametrize("number", ["9" * 200, "1" * 19, "٣", "0x7"])
def test_a_name_with_a_number_that_no_ticket_has_is_a_stranger(machine: Coordinator, number: str) -> None:
    lease = machine.lease({"x": 1})
    for name in (f"h.{number}.abcd", f"w.{number}.abcd", f"s.{number}.1.abcd", f"s.8.{number}.abcd", f"{number}.json"):
        (machine_folder(os.environ) / "t" / name).touch(mode=0o600)
        assert name in snapshot(machine_folder(os.environ)).strange
    with machine.lease({}, wait=0) as after:
        assert after.ticket == lease.ticket + 1
    lease.release()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("😀" * 5000, ["😀" * 5000]),
        ("\0" * 10_000, ["\0" * 10] * 10_000),
        ("a" * 1_000_000, ["b"] * 100_000),
        ("", [""] * 100_000),
        ("\udcff", ["\udcff", "\x1b[31m\n"]),
    ],
)
def test_however_long_name_and_command_are_others_can_read_them(
    machine: Coordinator, name: str, command: list[str]
) -> None:
    """Else nobody could be admitted as long as it lives."""
    with held(machine.lease({"x": 1}, name=name, command=command)), coordinator() as other:
        other.lease({"cpu": 1}, wait=0).release()
        (row,) = rows()
        assert name.startswith(row.name)
        assert len(row.name) >= min(len(name), 1024)


def many(resources: int) -> dict[str, int]:
    return {f"r{number:03}{'x' * 251}": 1 for number in range(resources)}


@pytest.mark.parametrize(("resources", "keys"), [(200, 64), (225, 64), (240, 0)])
def test_whatever_is_claimed_others_can_read_it(resources: int, keys: int) -> None:
    """Name and command were let take what the claims had taken already."""
    claims = many(resources)
    with coordinator(cpu=2, **claims) as one, coordinator() as other:
        lease = one.lease(claims, name="\0" * 5000, command=["\0" * 10] * 1000, keys=[str(key) for key in range(keys)])
        with held(lease):
            other.lease({"cpu": 1}, wait=0).release()
            (row,) = rows()
        assert row.claims == claims
        assert (machine_folder(os.environ) / "t" / f"{lease.ticket}.json").stat().st_size <= 64 * 1024


def test_claims_that_nobody_could_read_are_refused() -> None:
    claims = many(240)
    with coordinator(cpu=2, **claims) as one, refused(Code.INVALID_CLAIMS, "240 resources make a record of more than"):
        one.lease(claims, keys=[str(key) for key in range(64)])
    assert not [path.name for path in (machine_folder(os.environ) / "t").iterdir() if not path.name.startswith("h.")]


def test_a_damaged_record_of_a_live_ticket_is_never_guessed(machine: Coordinator) -> None:
    lease = machine.lease({"x": 1})
    record = machine_folder(os.environ) / "t" / f"{lease.ticket}.json"
    for damage in (b"", b"{", b"[]", b'{"format": 1}', record.read_bytes().replace(b'"x":1', b'"x":-1')):
        record.write_bytes(damage)
        with coordinator() as other, refused(Code.UNSAFE_STATE, record.name):
            other.lease({"cpu": 1})
    record.unlink()
    with coordinator() as other, refused(Code.UNSAFE_STATE, record.name):
        other.lease({"cpu": 1})
    lease.release()
    with coordinator() as other:
        other.lease({"x": 1}, wait=0).release()


def test_what_dead_tickets_left_behind_is_swept_whole_or_not(machine: Coordinator) -> None:
    folder = machine_folder(os.environ) / "t"
    machine.lease({}).release()
    os.mkfifo(folder / "h.7.dead", 0o600)
    (folder / "7.json").touch(mode=0o600)
    os.mkfifo(folder / "w.8.dead", 0o600)
    os.mkfifo(folder / ".new.half", 0o600)
    (folder / "5.json").touch(mode=0o600)
    with machine.lease({"x": 1}, wait=0) as lease:
        assert lease.ticket == 9
    machine.lease({}).release()
    left = {path.name for path in folder.iterdir()}
    assert not left & {"h.7.dead", "7.json", "w.8.dead", ".new.half", "5.json"}


def of_number(number: int) -> bytes:
    """A state whose next ticket is that."""
    state = {"format": 1, "boot": boot_id(), "next_ticket": number, "profile": {"capacity": {"x": 1}}}
    return json.dumps(state).encode()


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"null", b'{"format": 2}', None, of_number(10**18), of_number(10**30), of_number(10**400)],
    ids=["empty", "cut", "null", "format", "gone", "10**18", "10**30", "10**400"],
)
def test_a_damaged_state_is_rebuilt_on_an_idle_machine_only(machine: Coordinator, damage: bytes | None) -> None:
    lease = machine.lease({"x": 1})
    state = machine_folder(os.environ) / "state.json"
    if damage is None:
        state.unlink()
    else:
        state.write_bytes(damage)
    with coordinator() as other:
        with refused(Code.UNSAFE_STATE, "state.json"):
            other.lease({})
        lease.release()
        with other.lease({}) as after:
            assert after.ticket > lease.ticket


@pytest.mark.parametrize("place", ["state.json", "t"])
def test_after_the_last_number_nobody_is_admitted_uncounted(machine: Coordinator, place: str) -> None:
    """A name with one digit more would be nobody's, and what it held free for others."""
    machine.lease({}).release()
    folder = machine_folder(os.environ)
    if place == "t":
        os.mkfifo(folder / "t" / f"h.{10**18 - 1}.dead", 0o600)
        with refused(Code.UNSAFE_STATE, f"number {10**18 - 1}, and no ticket"):
            machine.lease({})
    else:
        (folder / "state.json").write_bytes(of_number(10**18 - 1))
        with coordinator() as other:
            lease = other.lease({"x": 1})
            assert lease.ticket == 10**18 - 1
            lease.release()
            with refused(Code.UNSAFE_STATE, f"number {10**18 - 1}, and no ticket"):
                other.lease({"x": 1})


def test_of_two_many_tickets_the_last_is_refused(machine: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostres.machine.MAX_TICKETS", 3)
    monkeypatch.setattr("hostres.arrival.MAX_PLAIN", 2)
    leases = [machine.lease({}) for _ in range(3)]
    with refused(Code.UNAVAILABLE, "3 tickets"):
        machine.lease({})
    leases.pop().release()
    machine.lease({}).release()
    for lease in leases:
        lease.release()


def test_when_descriptors_run_out_the_error_is_clear_and_the_capacity_intact() -> None:
    with children() as start:
        child = start("""
            import resource
            coordinator = Coordinator(FOLDER, explicit={"x": 1})
            coordinator.lease({"x": 1}).release()
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            taken = []
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
            try:
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                pass
            codes = set()
            for _ in range(6):
                try:
                    coordinator.lease({"x": 1}).release()
                    codes.add("admitted")
                except HostlerError as error:
                    codes.add(f"{error.code.value}: {error.todo}")
                os.close(taken.pop())
            say(sorted(codes))
            hear()
        """)
        answer = child.line()
        assert "unavailable: raise the limit of open files" in answer
        assert "admitted" in answer
        with coordinator() as machine:
            machine.lease({"x": 1}, wait=0).release()


def test_a_full_disk_makes_no_ticket(machine: Coordinator, monkeypatch: pytest.MonkeyPatch) -> None:
    other = machine.lease({})  # beside which a new record is needed

    def full(path: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("hostres.tickets.write_new", full)
        with refused(Code.UNAVAILABLE, "no space left"):
            machine.lease({"x": 1})
    assert [row.ticket for row in rows()] == [other.ticket]
    other.release()
    machine.lease({"x": 1}, wait=0).release()
