"""Archives: the same run, the same bytes; back again as a record; and no hostile file gets in."""

import hashlib
import io
import random
import sqlite3
import tarfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.archive.container import ArchiveWriter
from store.archive.importing import Imported, bring_in
from store.archive.reading import opened
from store.contracts import EventKind, RequestKind
from store.home import Home
from store.hosts import HostIdentity
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from store.transactions import NewEvent
from store.verification.findings import Fault
from tests.store.keeping.conftest import Kept
from tests.store.keeping.support import archive_of, proved
from tests.store.support import CLOCK, Setting, assert_refused, request_of

Part = tuple[str, bytes]


@pytest.fixture(scope="session")
def archive(original: Kept) -> bytes:
    return archive_of(original.home, original.run_id)


@pytest.fixture
def other(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "other", create=True)


def brought(home: Home, data: bytes) -> Imported:
    return bring_in(home, io.BytesIO(data), "x.tar", clock=CLOCK)


def refused(home: Home, data: bytes, *codes: Code) -> str:
    """An archive is refused in one line, offline and on its way in, and leaves nothing."""
    with pytest.raises(HostlerError) as caught:
        brought(home, data)
    assert_refused(caught.value, caught.value.code)
    assert caught.value.code in (codes or (Code.INVALID_DATA,)), caught.value
    with Reader.open(home) as reader:
        assert reader.runs() == []
    for folder in (home.logs, home.content, home.staging):
        assert [*folder.iterdir()] == []
    return caught.value.what


def parts(data: bytes) -> list[Part]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return [(member.name, tar.extractfile(member).read()) for member in tar]  # type: ignore[union-attr]


def sealed(members: list[Part]) -> bytes:
    """An archive of those parts with a digest that matches."""
    file = io.BytesIO()
    writer = ArchiveWriter(file)
    for name, data in members:
        writer.add(name, data)
    writer.finish()
    return file.getvalue()


def resealed(body: bytes) -> bytes:
    return body + hashlib.sha256(body).hexdigest().encode()


def changed(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    found = parts(data)
    assert name in dict(found)
    return sealed([(each, change(content) if each == name else content) for each, content in found])


def test_a_finished_run_gives_the_same_bytes_each_time_and_they_end_with_their_digest(kept: Kept) -> None:
    data = archive_of(kept.home, kept.run_id)
    assert data == archive_of(kept.home, kept.run_id)
    assert hashlib.sha256(data[:-64]).hexdigest().encode() == data[-64:]
    names = [name for name, _ in parts(data)]
    assert names[:3] == ["run.json", "plan.json", "bundle.zip"]
    assert {name.partition("/")[0] for name in names[3:]} == {
        "nodes", "node-plans", "outputs", "summary", "events", "grants", "requests", "receipts", "logs",
    }  # fmt: skip
    assert sealed(parts(data)) == data


def test_an_archive_is_proved_without_any_home(archive: bytes, original: Kept) -> None:
    with opened(io.BytesIO(archive), "x.tar") as one:
        assert (one.verdict.problems, one.run_id) == ((), original.run_id)
        assert one.digest.encode() == archive[-64:]


def test_a_run_comes_back_whole_as_a_record_and_leaves_again_as_the_same_bytes(
    archive: bytes, other: Home, original: Kept
) -> None:
    run_id = original.run_id
    assert brought(other, archive).new
    assert not brought(other, archive).new
    assert archive_of(other, run_id) == archive
    assert proved(other, run_id).problems == ()
    with Reader.open(other) as reader, Reader.open(original.home) as before:
        assert reader.run(run_id).imported
        assert reader.nodes(run_id) == before.nodes(run_id)
        assert list(reader.events(run_id)) == list(before.events(run_id))
        assert reader.output(run_id, "large") == before.output(run_id, "large")
        assert reader.bundle(reader.run(run_id).record.bundle_sha256 or "")
    assert other.logs_of(run_id, "made", 1)["stdout"].read_bytes() == b"said\n"
    assert len([*other.content.iterdir()]) == 2
    for path in other.root.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_importing_where_the_run_was_made_changes_nothing(archive: bytes, kept: Kept) -> None:
    assert not brought(kept.home, archive).new
    with Reader.open(kept.home) as reader:
        assert not reader.run(kept.run_id).imported


def test_a_run_of_that_id_with_other_content_is_a_conflict(archive: bytes, kept: Kept, other: Home) -> None:
    log = kept.home.log_path(kept.run_id, "made", 1, "stdout")
    log.write_bytes(b"something else")
    with pytest.raises(HostlerError) as caught:
        brought(kept.home, archive)
    assert_refused(caught.value, Code.CONFLICT, kept.run_id)
    brought(other, archive)
    with pytest.raises(HostlerError) as caught:
        brought(other, archive_of(kept.home, kept.run_id))
    assert_refused(caught.value, Code.CONFLICT, kept.run_id)
    assert proved(other, kept.run_id).problems == ()


def test_a_changed_byte_in_a_log_of_an_imported_run_and_in_its_digest_is_found(
    archive: bytes, other: Home, original: Kept
) -> None:
    brought(other, archive)
    log = other.log_path(original.run_id, "made", 1, "stdout")
    log.write_bytes(b"Said\n")
    assert [problem.fault for problem in proved(other, original.run_id).problems] == [Fault.ARCHIVE]
    log.write_bytes(b"said\n")
    store = RunStore.open(other, clock=CLOCK)
    store._connection.execute("UPDATE runs SET imported_sha256 = CAST(x'ff00' AS TEXT)")
    store.close()
    assert [problem.fault for problem in proved(other, original.run_id).problems] == [Fault.ARCHIVE]


def test_an_imported_run_is_never_taken_up_and_nothing_can_be_asked_of_it(setting: Setting, other: Home) -> None:
    run_id = setting.claimed().fence.run_id
    brought(other, archive_of(setting.home, run_id))
    assert proved(other, run_id).problems == ()
    store, identity = RunStore.open(other, clock=CLOCK), HostIdentity.register(other)
    try:
        assert store.unowned() == []
        with pytest.raises(HostlerError) as caught:
            store.claim(run_id, identity)
        assert_refused(caught.value, Code.CONFLICT, run_id, "imported")
        for kind in RequestKind:
            with pytest.raises(HostlerError) as caught:
                post(other, request_of(run_id, kind), clock=CLOCK)
            assert_refused(caught.value, Code.CONFLICT, run_id, "imported")
        assert proved(other, run_id).problems == ()
    finally:
        store.close()
        identity.close()


def test_an_archive_that_is_cut_short_anywhere_is_refused(archive: bytes, other: Home) -> None:
    rng = random.Random(1)
    ends = [0, 1, 511, 512, len(archive) - 1, len(archive) - 64, len(archive) - 65, len(archive) - 1088]
    for end in ends + [rng.randrange(len(archive)) for _ in range(12)]:
        assert "not a sound archive" in refused(other, archive[:end])


def test_an_archive_with_anything_after_its_digest_is_refused(archive: bytes, other: Home) -> None:
    for more in (b"\0", b"\n", bytes(512), archive):
        assert "after its digest" in refused(other, archive + more)
    body = archive[:-64]
    assert "is not one" in refused(other, resealed(body[:-512] + b"x" * 512))


def test_an_archive_with_a_changed_byte_is_refused(archive: bytes, other: Home) -> None:
    rng = random.Random(2)
    for _ in range(15):
        data = bytearray(archive)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        refused(other, bytes(data), Code.INVALID_DATA, Code.NEWER_SCHEMA)


def test_a_changed_byte_under_a_digest_made_anew_is_refused_for_what_it_says(archive: bytes, other: Home) -> None:
    """Only a log may say anything: no record speaks of what is in it."""
    rng = random.Random(3)
    found = parts(archive)
    for index, (name, content) in enumerate(found):
        for _ in range(2 if content and not name.startswith("logs/") else 0):
            data = bytearray(content)
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            bad = sealed([*found[:index], (name, bytes(data)), *found[index + 1 :]])
            refused(other, bad, Code.INVALID_DATA, Code.NEWER_SCHEMA)


def odd_headers() -> Iterator[tarfile.TarInfo]:
    for name in (
        "../x",
        "/etc/x",
        "logs/../../x",
        "logs/000001/../1.stdout",
        "a//b",
        "run.json/",
        "\x7f",
        "LOGS",
        "-x",
    ):
        yield tarfile.TarInfo(name)
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE,
                 tarfile.GNUTYPE_SPARSE, tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.AREGTYPE):  # fmt: skip
        member = tarfile.TarInfo("logs/000007/1.stdout")
        member.mode = 0o600
        member.type, member.linkname = kind, "/etc/passwd"
        yield member
    for field, value in {"mode": 0o777, "uid": 1, "mtime": 1, "uname": "root"}.items():
        member = tarfile.TarInfo("logs/000007/1.stdout")
        member.mode = 0o600
        setattr(member, field, value)
        yield member


def test_headers_that_no_export_writes_are_refused(archive: bytes, other: Home) -> None:
    end = archive[:-64].rindex(b"logs/000006/1.stdout")
    for member in odd_headers():
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT):
            bad = archive[:end] + member.tobuf(form) + bytes(1024)
            said = refused(other, resealed(bad))
            assert "that no archive of a run has" in said or "a header cannot be read" in said, (member, said)


def test_a_part_that_claims_to_be_huge_is_refused_before_it_is_read(other: Home, archive: bytes) -> None:
    class Endless(io.BytesIO):
        """Fails the test that goes on reading."""

        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert 0 <= size <= 1 << 20
            self.taken += size
            assert self.taken < 1 << 20, "it reads what it was told is there"
            return super().read(size) or bytes(size)

    for name in ("run.json", "plan.json", "nodes/000001.jsonl", "logs/000000/1.stdout"):
        member = tarfile.TarInfo(name)
        member.mode, member.size = 0o600, (1 << 33) - 1
        file = Endless(member.tobuf(tarfile.USTAR_FORMAT))
        with pytest.raises(HostlerError) as caught, opened(file, "x.tar"):
            pass
        assert_refused(caught.value, Code.INVALID_DATA, "bytes")
    compressed = io.BytesIO()
    with tarfile.open(fileobj=compressed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("run.json"))
    refused(other, compressed.getvalue())


def test_parts_that_are_twice_there_unknown_or_out_of_place_are_refused(archive: bytes, other: Home) -> None:
    found = parts(archive)
    for index, part in enumerate(found):
        refused(other, sealed([*found[: index + 1], part, *found[index + 1 :]]))
        if not part[0].startswith("logs/"):
            refused(other, sealed([*found[:index], *found[index + 1 :]]))
    assert "out of place" in refused(other, sealed([*found[:3], *found[4:5], *found[3:4], *found[5:]]))
    for name in ("staging/000001/x", "hosts/000001.jsonl", "events/1.jsonl", "events/000001.json", "logs/000001/x",
                 "logs/999999/1.stdout", "logs/000001/01.stdout", "logs/000001/1.stdout.0", "bundle.zip"):  # fmt: skip
        refused(other, sealed([*found, (name, b"")]))
    assert "begins with" in refused(other, sealed(found[1:]))
    refused(other, sealed([]))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("run.json", b'"format":1', b'"format":true'),
        ("run.json", b'"format":1', b'"format":"1"'),
        ("run.json", b'"status":"completed"', b'"status":null'),
        ("run.json", b'"status":"completed"', b'"status":["completed"]'),
        ("run.json", b'"event_seq":', b'"event_seq":-'),
        ("run.json", b'"generation":', b'"generation":1e'),
        ("run.json", b'"workflow":"everything"', b'"workflow":"everything","workflow":"x"'),
        ("run.json", b"{", b"["),
        ("nodes/000001.jsonl", b'"position":0', b'"position":7'),
        ("nodes/000001.jsonl", b'"position":0', b'"position":"0"'),
        ("nodes/000001.jsonl", b'"position":0', b'"position":18446744073709551616'),
        ("nodes/000001.jsonl", b'"position":0', b'"position":0.0'),
        ("nodes/000001.jsonl", b'"key":"a/upper"', b'"key":"../../upper"'),
        ("nodes/000001.jsonl", b"\n", b"\n\n"),
        ("nodes/000001.jsonl", b"\n", b""),
        ("events/000001.jsonl", b'"seq":2', b'"seq":1'),
        ("events/000001.jsonl", b'"seq":2', b'"more":1,"seq":2'),
        ("grants/000001.jsonl", b'"record":', b'"recorder":'),
        ("requests/000001.jsonl", b'"consumed_generation":', b'"consumed_generation":-'),
        ("outputs/000001.jsonl", b'"record":{', b'"record":' + b"[" * 100_000 + b"{"),
        ("plan.json", b"{", b"[" * 100_000),
        ("plan.json", b'"format":1', b'"format":NaN'),
    ],
)  # fmt: skip
def test_wrong_types_shapes_and_depths_are_refused(
    name: str, old: bytes, new: bytes, archive: bytes, other: Home
) -> None:
    refused(other, changed(archive, name, lambda data: data.replace(old, new, 1)))


def test_an_archive_of_a_newer_format_says_so(archive: bytes, other: Home) -> None:
    bad = changed(archive, "run.json", lambda data: data.replace(b'"format":1', b'"format":2'))
    assert "format 2" in refused(other, bad, Code.NEWER_SCHEMA)


def test_a_table_of_many_rows_is_written_in_parts_and_read_back(setting: Setting, other: Home) -> None:
    claimed = setting.claimed()
    run_id = claimed.fence.run_id
    note = NewEvent(kind=EventKind.LATE_RESULT, data={"text": "x" * 200_000})
    setting.accept(claimed, events=(note,) * 50)
    data = archive_of(setting.home, run_id)
    assert len([name for name, _ in parts(data) if name.startswith("events/")]) == 3
    assert brought(other, data).new
    assert archive_of(other, run_id) == data


def test_the_key_that_a_run_was_asked_for_under_stays_with_it_and_its_loss_is_found(
    setting: Setting, other: Home
) -> None:
    run = setting.created(submission="film 7")
    assert proved(setting.home, run).problems == ()
    data = archive_of(setting.home, run)
    with opened(io.BytesIO(data), "x.tar") as archive:
        assert archive.verdict.problems == ()
    brought(other, data)
    assert proved(other, run).problems == (), "a key asks for a run of this store, not for one of another"
    for home, change in ((setting.home, "NULL"), (setting.home, "'film 8'"), (other, "'film 7'")):
        with closing(sqlite3.connect(home.database, isolation_level=None)) as connection:
            connection.execute(f"UPDATE runs SET submission = {change}")
        (problem,) = proved(home, run).problems
        assert (problem.table, problem.fault) == ("runs", Fault.COLUMN)
        assert problem.what.startswith("its column submission says ")
