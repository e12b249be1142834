"""The state folder: private, local, without links."""

import os
import stat
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.home import Home
from store.run_store import RunStore
from tests.store.support import CLOCK, Setting, assert_refused, run_id

SHA = "ab" * 32


def refusal(root: Path, *, create: bool = True) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        Home.open(root, create=create)
    return caught.value


def test_everything_in_a_new_home_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        setting = Setting(tmp_path / "deep" / "home")
        setting.claimed()
        setting.home.workspace(run_id(), "a/b", SHA)
    finally:
        os.umask(before)
    seen = set()
    for path in [setting.home.root, *setting.home.root.rglob("*")]:
        mode = path.lstat().st_mode
        assert stat.S_IMODE(mode) == (0o700 if stat.S_ISDIR(mode) else 0o600), path
        seen.add(path.name)
    assert {"runs.db", "runs.db-wal", "runs.db-shm", setting.identity.host_id} <= seen
    setting.close()


def test_a_narrow_umask_does_not_lock_the_owner_out(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        setting = Setting(tmp_path / "home")
        setting.claimed()
        setting.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(setting.home.database.stat().st_mode) == 0o600


def test_a_home_open_to_others_is_refused_with_the_mend(setting: Setting) -> None:
    root = setting.home.root
    root.chmod(0o755)
    error = refusal(root)
    assert_refused(error, Code.UNSAFE_STATE, str(root))
    assert error.todo == f"chmod 700 {root}"
    assert_refused(refusal(root, create=False), Code.UNSAFE_STATE, str(root))


@pytest.mark.parametrize("name", ["staging", "logs", "hosts", "content"])
def test_a_folder_inside_that_is_open_to_others_is_refused(setting: Setting, name: str) -> None:
    (setting.home.root / name).chmod(0o750)
    assert_refused(refusal(setting.home.root), Code.UNSAFE_STATE, name)


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "runs.db-shm"])
def test_a_file_of_the_store_that_is_open_to_others_is_refused(setting: Setting, name: str) -> None:
    (setting.home.root / name).chmod(0o644)
    error = refusal(setting.home.root)
    assert_refused(error, Code.UNSAFE_STATE, name)
    assert error.todo == f"chmod 600 {setting.home.root / name}"


@pytest.mark.parametrize("place", ["link", "staging/link", "logs/link", "hosts/link", "content/link"])
def test_a_symbolic_link_inside_is_refused_naming_it(setting: Setting, tmp_path: Path, place: str) -> None:
    link = setting.home.root / place
    link.symlink_to(tmp_path)
    assert_refused(refusal(setting.home.root), Code.UNSAFE_STATE, str(link), "symbolic link")
    assert_refused(refusal(setting.home.root, create=False), Code.UNSAFE_STATE, str(link))


def test_a_home_that_is_itself_a_link_is_refused(setting: Setting, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(setting.home.root)
    assert_refused(refusal(link), Code.UNSAFE_STATE, str(link))


def test_a_database_that_is_a_link_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home", create=True)
    elsewhere = tmp_path / "elsewhere.db"
    elsewhere.touch(0o600)
    home.database.symlink_to(elsewhere)
    with pytest.raises(HostlerError) as caught:
        RunStore.open(home, clock=CLOCK)
    assert_refused(caught.value, Code.UNSAFE_STATE, "runs.db")
    assert elsewhere.stat().st_size == 0


def test_a_hard_linked_database_is_refused(setting: Setting, tmp_path: Path) -> None:
    (tmp_path / "other").hardlink_to(setting.home.database)
    assert_refused(refusal(setting.home.root), Code.UNSAFE_STATE, "runs.db")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("name", [".", "runs.db", "runs.db-wal", "logs"])
def test_what_belongs_to_another_user_is_refused_naming_it(setting: Setting, name: str) -> None:
    """Field case 52."""
    os.chown(setting.home.root / name, 4242, -1)
    assert_refused(refusal(setting.home.root), Code.UNSAFE_STATE, "4242")


def test_a_network_file_system_is_refused_naming_it(tmp_path: Path) -> None:
    with pytest.raises(HostlerError) as caught:
        Home.open(tmp_path / "home", create=True, file_system=lambda path: "nfs4")
    assert_refused(caught.value, Code.UNSAFE_STATE, "nfs4")


def test_a_missing_home_looks_empty_and_is_not_made(tmp_path: Path) -> None:
    home = Home.open(tmp_path / "home", create=False)
    assert not home.exists
    assert not (tmp_path / "home").exists()


def test_odd_runs_plans_and_streams_never_become_paths(setting: Setting) -> None:
    run = run_id()
    for action in (
        lambda: setting.home.workspace("run_../../x", "a", SHA),
        lambda: setting.home.workspace(f"{run}\n", "a", SHA),
        lambda: setting.home.workspace(run, "a", "../x"),
        lambda: setting.home.log_path(run, "a", 1, "../x"),
        lambda: setting.home.log_path(run, "a", -1, "stdout"),
        lambda: setting.home.logs_of(run, "../x", 1),
        lambda: setting.home.logs_of("../x", "a", 1),
    ):
        with pytest.raises(HostlerError) as caught:
            action()
        assert_refused(caught.value, Code.INVALID_DATA)


def test_each_node_and_exact_plan_has_a_private_workspace_of_its_own(setting: Setting) -> None:
    run, longest = run_id(), "a/" + "b" * 253
    places = {
        setting.home.workspace(run, node, sha)
        for node in ("a/b", "a", "b", "a.b", "a-b", longest)
        for sha in (SHA, "cd" * 32)
    }
    assert len(places) == 12
    assert all(stat.S_IMODE(place.stat().st_mode) == 0o700 for place in places)
    assert setting.home.workspace(run, "a/b", SHA) in places


def test_a_log_has_a_place_in_a_private_folder(setting: Setting) -> None:
    path = setting.home.log_path(run_id(), "a/b", 2, "stderr")
    assert path.name == "2.stderr"
    assert path.is_relative_to(setting.home.logs)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_logs_of_an_attempt_are_found_without_making_anything(setting: Setting) -> None:
    run = run_id()
    assert setting.home.logs_of(run, "a/b", 1) == {}
    assert not list(setting.home.logs.iterdir())
    for attempt, stream in ((1, "stdout"), (1, "stderr.2"), (1, "error"), (1, "stdout.at-12"), (12, "stdout")):
        path = setting.home.log_path(run, "a/b", 1, "stdout").with_name(f"{attempt}.{stream}")
        path.touch(0o600)
    found = setting.home.logs_of(run, "a/b", 1)
    assert found == {stream: setting.home.log_path(run, "a/b", 1, stream) for stream in ("stdout", "stderr.2", "error")}


def test_a_link_on_the_way_to_a_workspace_or_log_is_never_followed(setting: Setting, tmp_path: Path) -> None:
    run = run_id()
    for folder, action in (
        (setting.home.staging, lambda: setting.home.workspace(run, "a", SHA)),
        (setting.home.logs, lambda: setting.home.log_path(run, "a", 1, "stdout")),
    ):
        (folder / run).symlink_to(tmp_path)
        with pytest.raises(HostlerError) as caught:
            action()
        assert_refused(caught.value, Code.UNSAFE_STATE, "symbolic link")
    assert {path.name for path in tmp_path.iterdir()} == {"home"}
