"""Names and places: no name becomes a path by accident, and two homes never mix."""

import shutil
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from hostler.config import Config
from hostres.errors import Code, HostlerError
from hostres.folders import NETWORK_FILE_SYSTEMS
from store.content import Content
from store.contracts import NodeRecord, RequestKind
from store.home import Home
from store.hosts import HostIdentity, host_alive, known_hosts, wake
from store.requests import post
from store.run_store import RunStore
from store.values import Domain
from tests.store.stores import copy_as_killed
from tests.store.support import CLOCK, NOTE, Setting, assert_refused, request_of, run_id

SHA = "ab" * 32
TWINS = (unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é"))
ODD = (
    "", ".", "..", "../up", "/etc", "a//b", "a/", "/a", "a/../b", "-rf", "--", "a b", " a", "a\n", "a\0b", "~", "~root",
    ".hidden", "A", "a/B", "x" * 256, "a\\b", "a:b", "CON", "a*", "$HOME", "\udcff", "\u202ea", *TWINS,
)  # fmt: skip


def refusal(operation: object) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        operation()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize("name", ODD, ids=ascii)
def test_an_odd_name_is_no_key_and_no_path(setting: Setting, name: str) -> None:
    """Case twins and twins of normalisation cannot be, since keys have one case and no accents."""
    with pytest.raises(ValidationError):
        NodeRecord(key=name)
    before = set(setting.home.root.rglob("*"))
    for operation in (
        lambda: setting.home.workspace(run_id(), name, SHA),
        lambda: setting.home.workspace(name, "a", SHA),
        lambda: setting.home.workspace(run_id(), "a", name),
        lambda: setting.home.log_path(run_id(), name, 1, "stdout"),
        lambda: setting.home.log_path(run_id(), "a", 1, name),
    ):
        assert_refused(refusal(operation), Code.INVALID_DATA)
    assert not host_alive(setting.home, name)
    assert not wake(setting.home, name)
    what = "output"
    assert_refused(refusal(lambda: setting.store._content.get(Domain.OUTPUT, name, None, what)), Code.INVALID_DATA)
    assert set(setting.home.root.rglob("*")) == before


keys = st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,20}(/[a-z0-9][a-z0-9._-]{0,20}){0,3}\Z")


@given(st.lists(keys, min_size=2, max_size=5, unique=True))
def test_two_keys_never_share_a_folder_and_none_leaves_its_place(names: list[str]) -> None:
    """Even on a file system that takes A for a: there is no upper case."""
    from store.home import node_folder  # noqa: PLC0415

    folders = [node_folder(name) for name in names]
    assert len({folder.casefold() for folder in folders}) == len(names)
    assert not any("/" in folder or folder in {".", ".."} or len(folder.encode()) > 255 for folder in folders)


def test_a_digest_in_a_damaged_row_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "content").mkdir(0o700)
    (tmp_path / "secret").write_bytes(b"x")
    content = Content(tmp_path / "content")
    error = refusal(lambda: content.get(Domain.OUTPUT, "../secret", None, "output of node a"))
    assert_refused(error, Code.INVALID_DATA, "output of node a")


@pytest.mark.parametrize("kind", sorted(NETWORK_FILE_SYSTEMS))
def test_every_network_file_system_is_refused_also_for_looking(tmp_path: Path, kind: str) -> None:
    """Field case 51: never used silently, and nothing is made there."""
    Home.open(tmp_path / "home", create=True)
    for create in (True, False):
        error = refusal(lambda create=create: Home.open(tmp_path / "home", create=create, file_system=lambda _: kind))
        assert_refused(error, Code.UNSAFE_STATE, kind)
        assert "local disk" in error.todo


def test_two_homes_share_neither_runs_nor_hosts_nor_wakes(setting: Setting, tmp_path: Path) -> None:
    """A host of one is nobody in the other; a request goes where it was posted."""
    other = Setting(tmp_path / "other")
    run = setting.claimed().fence.run_id
    assert known_hosts(other.home) == [other.identity.host_id]
    assert not host_alive(other.home, setting.identity.host_id)
    assert not wake(other.home, setting.identity.host_id)
    request = request_of(run, RequestKind.RETRY, node="a")
    assert_refused(refusal(lambda: post(other.home, request, clock=CLOCK)), Code.NOT_FOUND)
    assert_refused(refusal(lambda: other.store.claim(run, other.identity)), Code.NOT_FOUND)
    assert other.store.unowned() == []
    other.close()


def test_in_the_copy_of_a_home_the_hosts_of_the_original_are_dead_and_never_woken(
    setting: Setting, tmp_path: Path
) -> None:
    """Both go on, each by itself."""
    claimed = setting.claimed()
    run = claimed.fence.run_id
    copy_as_killed(setting.home.root, tmp_path / "copy")
    copy = Setting(tmp_path / "copy")
    taken = copy.store.claim(run, copy.identity)
    assert taken.fence.generation == claimed.fence.generation + 1
    post(copy.home, request_of(run, RequestKind.RETRY, node="a"), clock=CLOCK)
    setting.identity.drain()  # nothing there, or it would not come back
    setting.accept(claimed, events=(NOTE,))
    copy.accept(taken, events=(NOTE,))
    assert setting.store.requests([run]) == []
    assert len(copy.store.requests([run])) == 1
    copy.close()


def test_the_hosts_of_a_home_that_was_moved_still_live_there_and_stop_by_themselves(
    setting: Setting, tmp_path: Path
) -> None:
    """The lock is on the file, whatever it is called: nobody can take over what may still be worked on."""
    claimed = setting.claimed()
    setting.home.root.rename(tmp_path / "moved")
    moved = Setting(tmp_path / "moved")
    error = refusal(lambda: moved.store.claim(claimed.fence.run_id, moved.identity))
    assert_refused(error, Code.CONFLICT, setting.identity.host_id)
    assert not setting.store.still_there()
    assert not setting.identity.still_there()
    assert_refused(refusal(lambda: setting.store.claim(claimed.fence.run_id, setting.identity)), Code.OWNERSHIP_LOST)
    setting.identity.close()
    assert moved.store.claim(claimed.fence.run_id, moved.identity).fence.generation == 2
    moved.close()
    shutil.rmtree(tmp_path / "moved")


def test_one_home_by_two_names_is_one_store(setting: Setting, tmp_path: Path) -> None:
    """A parent folder that is a link leads to the same files and the same locks."""
    (tmp_path / "link").symlink_to(tmp_path)
    again = Home.open(tmp_path / "link" / "home", create=True)
    store = RunStore.open(again, clock=CLOCK)
    claimed = setting.claimed()
    assert_refused(refusal(lambda: store.claim(claimed.fence.run_id, setting.identity)), Code.CONFLICT)
    assert host_alive(again, setting.identity.host_id)
    store.close()
    setting.accept(claimed, events=(NOTE,))


def test_where_the_home_lies_is_decided_once_and_does_not_move_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative, with ~, of nobody, or not given at all and without HOME."""

    def home_of(**environ: str) -> Path:
        return Config.load({"HOSTLER_CONFIG": str(tmp_path / "none.toml"), **environ}).home

    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    home = home_of(HOSTLER_HOME="state")
    monkeypatch.chdir(tmp_path)
    assert home == tmp_path / "a" / "state"
    assert home_of(HOSTLER_HOME="state") == tmp_path / "state"
    assert home_of(HOSTLER_HOME="~/state") == Path.home() / "state"
    assert_refused(refusal(lambda: home_of(HOSTLER_HOME="~nobody-of-that-name/x")), Code.INVALID_DATA, "HOSTLER_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert home_of().is_absolute()
    assert home_of() == home_of(HOSTLER_HOME="")


def test_a_file_system_whose_locks_lie_is_refused(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field case 51: a second lock that is also given would let two hosts work on one run."""
    monkeypatch.setattr("store.hosts.is_held", lambda path: False)
    assert_refused(refusal(lambda: HostIdentity.register(setting.home)), Code.UNSAFE_STATE, "locks")
    assert known_hosts(setting.home) == [setting.identity.host_id]
