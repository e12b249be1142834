"""Worktrees of attempts: made once, by one; taken over from the dead and the slow; never where something else lies."""

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from actors.control import Control, OperationAborted
from actors.worktrees import Tree
from hostler.git import Git
from hostler.git_worktrees import GitWorktrees
from hostres.errors import Code, HostlerError
from store.clock import Stamp, instant
from store.home import Home
from store.proving import numbers, prove
from store.verification.findings import Fault
from store.workspace import GitWorkspace
from store.workspace_claims import Busy, Mine, Ready, WorkspaceClaims
from tests.hostler.git_support import Repository
from tests.store.support import Setting
from tests.support import until

PLAN = "a" * 64


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.unix_ms = 1_700_000_000_000

    def now(self) -> Stamp:
        return Stamp(at=instant(self.unix_ms), boot_ns=1)


class Scene:
    """A store with a run, a repository, and hosts that work on it.

    Attributes:
        alive: Which hosts live.

    """

    def __init__(self, folder: Path) -> None:
        self.setting = Setting(folder / "home")
        self.repository = Repository.made(folder / "repository")
        self.run_id = self.setting.created()
        self.clock = Clock()
        self.alive = {"host-a", "host-b"}
        self.tree = Tree(
            run_id=self.run_id, node="a", attempt=1, plan_sha256=PLAN, folder=folder,
            workspace=GitWorkspace(repository="repository", base="main"), paths=None,
        )  # fmt: skip

    def claims(self, host: str = "host-a", *, grace_ms: int = 10_000) -> WorkspaceClaims:
        def lives(_: Home, host_id: str) -> bool:
            return host_id in self.alive

        return WorkspaceClaims(self.setting.home, host, clock=self.clock, grace_ms=grace_ms, alive=lives)

    def trees(self, host: str = "host-a", **more: int) -> GitWorktrees:
        return GitWorktrees(self.setting.home, self.claims(host, **more))

    def worktrees(self) -> int:
        """Return how many worktrees git knows besides the repository itself."""
        return len(self.repository.git("worktree", "list").splitlines()) - 1


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    one = Scene(tmp_path)
    yield one
    one.setting.close()


def refused(scene: Scene, tree: Tree) -> HostlerError:
    with pytest.raises(HostlerError) as caught:
        scene.trees().open(tree, Control(), anew=True)
    assert scene.worktrees() == 0
    assert scene.claims().find(scene.run_id, "a") is None, "the claim stays though nothing was made"
    return caught.value


def test_an_attempt_works_in_a_fresh_worktree_of_the_newest_commit(scene: Scene) -> None:
    first = scene.trees().open(scene.tree, Control(), anew=True)
    assert (first / "readme").read_text() == "hello\n"
    assert first.is_relative_to(scene.setting.home.staging)
    assert scene.trees().open(scene.tree, Control(), anew=False) == first
    (first / "left").write_text("half-made")
    newest = scene.repository.commit(readme="later\n")
    second = scene.trees().open(replace(scene.tree, attempt=2), Control(), anew=True)
    assert second != first
    assert not first.exists()
    assert (second / "readme").read_text() == "later\n"
    assert not (second / "left").exists()
    assert scene.worktrees() == 1
    assert scene.repository.tip(at=second) == newest
    assert scene.repository.git("branch", "--list") == "* main", "a branch was made that nobody asked for"
    found = scene.claims().find(scene.run_id, "a")
    assert found is not None
    assert found.identity == f"{second.stat().st_dev}:{second.stat().st_ino}"


def test_of_two_owners_that_race_one_makes_the_worktree_and_both_get_it(scene: Scene) -> None:
    """G16: two owners race; there is one preparation."""
    barrier, made = threading.Barrier(2), []

    def race(host: str) -> None:
        trees = scene.trees(host)
        barrier.wait(timeout=60)
        made.append(trees.open(scene.tree, Control(), anew=True))

    threads = [threading.Thread(target=race, args=(host,)) for host in ("host-a", "host-b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(made) == 2
    assert made[0] == made[1]
    assert scene.worktrees() == 1


def test_a_young_claim_is_respected_an_old_one_taken_over_and_its_holder_changes_nothing_any_more(scene: Scene) -> None:
    """G16: the grace, the take-over, and the late success and failure of the old owner."""
    old = scene.claims("host-a").claim(scene.run_id, "a", PLAN, 1)
    assert isinstance(old, Mine)
    scene.clock.unix_ms += 9_999
    assert scene.claims("host-b").claim(scene.run_id, "a", PLAN, 1) == Busy(left_ms=1)
    scene.clock.unix_ms += 1
    new = scene.claims("host-b").claim(scene.run_id, "a", PLAN, 1)
    assert isinstance(new, Mine)
    assert new.before == old.record
    late = old.record.model_copy(update={"ready": True, "path": "/late"})
    with pytest.raises(HostlerError) as caught:
        scene.claims("host-a").publish(scene.run_id, late)
    assert caught.value.code is Code.CONFLICT
    scene.claims("host-a").abandon(scene.run_id, old.record)
    assert scene.claims().find(scene.run_id, "a") == new.record
    made = new.record.model_copy(update={"ready": True, "path": "/made"})
    scene.claims("host-b").publish(scene.run_id, made)
    assert scene.claims("host-a").claim(scene.run_id, "a", PLAN, 1) == Ready(record=made)


def test_a_claim_of_a_dead_host_is_taken_over_at_once_and_a_clock_that_was_set_back_makes_nobody_wait_longer(
    scene: Scene,
) -> None:
    scene.claims("host-a").claim(scene.run_id, "a", PLAN, 1)
    scene.clock.unix_ms -= 3_600_000
    assert scene.claims("host-b").claim(scene.run_id, "a", PLAN, 1) == Busy(left_ms=10_000)
    scene.alive.remove("host-a")
    assert isinstance(scene.claims("host-b").claim(scene.run_id, "a", PLAN, 1), Mine)


def test_an_earlier_attempt_never_takes_the_place_of_a_later_one(scene: Scene) -> None:
    later = replace(scene.tree, attempt=2)
    path = scene.trees().open(later, Control(), anew=True)
    with pytest.raises(HostlerError) as caught:
        scene.trees("host-b").open(scene.tree, Control(), anew=True)
    assert caught.value.code is Code.CONFLICT
    assert path.is_dir()


def test_an_owner_that_lost_its_claim_while_it_made_the_worktree_takes_its_own_away(scene: Scene) -> None:
    def slow() -> None:
        scene.alive.remove("host-a")
        assert scene.trees("host-b").open(scene.tree, Control(), anew=True).is_dir()

    trees = GitWorktrees(scene.setting.home, scene.claims("host-a"), before_publish=slow)
    with pytest.raises(HostlerError):
        trees.open(scene.tree, Control(), anew=True)
    stands = scene.trees().open(scene.tree, Control(), anew=True)
    assert (stands / "readme").is_file()
    assert scene.worktrees() == 1


def test_who_waits_for_another_maker_can_be_stopped(scene: Scene) -> None:
    scene.claims("host-b").claim(scene.run_id, "a", PLAN, 1)
    control = Control()
    control.note("cancel")
    with pytest.raises(OperationAborted):
        scene.trees("host-a").open(scene.tree, control, anew=True)


def test_a_checkout_that_takes_long_is_ended_with_its_attempt_and_can_be_made_again(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that git started goes with it."""
    real, pid = shutil.which("git"), tmp_path / "pid"
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *"worktree add"*) sleep 600 & echo $! > {pid}; wait;; *) exec {real} "$@";; esac\n'
    )
    slow.chmod(0o700)
    control = Control()

    def stop() -> None:
        until(lambda: pid.exists() and pid.read_text().strip())
        control.abort("cancel", grace_s=60)

    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
        stopping = threading.Thread(target=stop)
        stopping.start()
        with pytest.raises(OperationAborted):
            scene.trees().open(scene.tree, control, anew=True)
        stopping.join(60)
    until(lambda: not runs(int(pid.read_text())))
    assert scene.trees().open(replace(scene.tree, attempt=2), Control(), anew=True).is_dir()


def runs(pid: int) -> bool:
    """Say whether a process still runs; one that only waits for its new parent to reap it does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    "base", ["gone", "-d", "--force", "main..main", "a b", "HEAD", "refs/heads/main", "@{-1}", "../main", "main^"]
)
def test_what_is_no_branch_is_refused_by_its_name(scene: Scene, base: str) -> None:
    tree = replace(scene.tree, workspace=GitWorkspace(repository="repository", base=base))
    error = refused(scene, tree)
    assert error.code is Code.NOT_FOUND
    assert repr(base) in error.what


def test_a_tag_of_the_same_name_is_not_the_branch(scene: Scene) -> None:
    tip = scene.repository.tip()
    scene.repository.commit(readme="tagged\n")
    scene.repository.git("tag", "main")
    scene.repository.git("reset", "--quiet", "--hard", tip)
    path = scene.trees().open(scene.tree, Control(), anew=True)
    assert (path / "readme").read_text() == "hello\n"


def test_a_folder_inside_a_repository_and_one_that_is_none_are_refused(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "repository" / "sub").mkdir()
    (tmp_path / "plain").mkdir()
    for name, code in (("repository/sub", Code.UNAVAILABLE), ("plain", Code.UNAVAILABLE), ("gone", Code.NOT_FOUND)):
        workspace = GitWorkspace(repository=name, base="main")
        assert refused(scene, replace(scene.tree, workspace=workspace)).code is code


def test_no_hook_no_variable_and_no_configuration_of_the_caller_counts(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = tmp_path / "ran"
    hook = scene.repository.folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {ran}\n")
    hook.chmod(0o755)
    other = Repository.made(tmp_path / "other", alien="x")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hook.parent))
    path = scene.trees().open(scene.tree, Control(), anew=True)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    assert (path / "readme").is_file()
    assert not ran.exists()


def test_a_machine_without_git_says_so_and_only_when_git_is_wanted(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = scene.trees()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostlerError) as caught:
        trees.open(scene.tree, Control(), anew=True)
    assert "no git" in caught.value.what
    with pytest.raises(HostlerError):
        Git(tmp_path, run_id=scene.run_id, node="a").ask("status")


def test_what_is_stored_of_a_worktree_is_proved_like_the_rest(scene: Scene) -> None:
    scene.trees().open(scene.tree, Control(), anew=True)
    home = scene.setting.home
    (problem,) = prove(home, *numbers(home)).problems
    assert (problem.fault, problem.table, problem.node) == (Fault.PLAN, "workspaces", "a"), "its plan has no worktree"
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("UPDATE workspaces SET sha256 = ?", ("0" * 64,))
    (problem,) = prove(home, *numbers(home)).problems
    assert (problem.fault, problem.table) == (Fault.DIGEST, "workspaces")
    with pytest.raises(HostlerError) as caught:
        scene.trees().open(scene.tree, Control(), anew=False)
    assert caught.value.code is Code.INVALID_DATA
