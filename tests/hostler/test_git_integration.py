"""What a worktree holds goes into its branch, whole and once, or nothing moves and the reason is named."""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from actors.control import Control
from actors.outcomes import Integrated, NotIntegrated
from hostler import git_integration
from hostler.git import Git, GitError
from tests.hostler.git_support import Repository
from tests.hostler.test_git_worktrees import Scene


class Work(Scene):
    """A scene in which an attempt has its worktree.

    Attributes:
        path: The worktree.
        base: The commit it began with.

    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.repository.commit(src__a="a\n", src__b="b\n", docs__c="c\n")
        self.base = self.repository.tip("main")
        self.path = self.trees().open(self.tree, Control(), anew=True)

    def commit(self, **files: str) -> str:
        """Commit files in the worktree."""
        return self.repository.commit(at=self.path, **files)

    def integrate(self, *, begin: bool = True, paths: tuple[str, ...] | None = None) -> Integrated | NotIntegrated:
        return self.trees().integrate(replace(self.tree, paths=paths), begin=begin)

    def refused(self, **options: tuple[str, ...]) -> NotIntegrated:
        """Integrate, which must be refused and move nothing."""
        tip, status = self.repository.tip("main"), self.repository.status()
        answer = self.integrate(**options)  # type: ignore[arg-type]
        assert isinstance(answer, NotIntegrated), answer
        assert (self.repository.tip("main"), self.repository.status()) == (tip, status)
        assert answer.todo
        return answer


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    one = Work(tmp_path)
    yield one
    one.setting.close()


def test_a_branch_moves_forward_to_what_was_committed_and_its_checkout_follows(work: Work) -> None:
    (work.path / "src" / "b").unlink()
    (work.path / "link").symlink_to("readme")
    head = work.commit(src__a="A\n", new__deep__file="n\n", **{'odd "name"\n': "o"})
    assert work.integrate() == Integrated(commit=head)
    assert work.repository.tip("main") == head
    assert work.repository.status() == ""
    assert (work.repository.folder / "new" / "deep" / "file").read_text() == "n\n"
    assert not (work.repository.folder / "src" / "b").exists()
    assert os.readlink(work.repository.folder / "link") == "readme"
    assert work.integrate() == Integrated(commit=head), "asked again it is done already"
    assert work.repository.git("rev-list", "--count", f"{work.base}..main") == "1"


def test_an_attempt_that_committed_nothing_moves_nothing(work: Work) -> None:
    assert work.integrate() == Integrated(commit=None)
    assert work.repository.tip("main") == work.base
    assert work.trees().integrate(replace(work.tree, node="b"), begin=True) == Integrated(commit=None)


def _edit(path: Path) -> str:
    (path / "src" / "a").write_text("edited\n")
    return "src/a"


def _add(path: Path) -> str:
    (path / "été").write_text("new\n")
    return "été"


def _stage(path: Path) -> str:
    (path / "src" / "a").write_text("staged\n")
    Git(path, run_id="r", node="n").ask("add", "--all")
    return "src/a"


def _remove(path: Path) -> str:
    (path / "docs" / "c").unlink()
    return "docs/c"


@pytest.mark.parametrize("change", [_edit, _add, _stage, _remove])
def test_edits_that_are_not_committed_block_it_by_name(work: Work, change: Callable[[Path], str]) -> None:
    """G23: uncommitted edits."""
    name = change(work.path)
    answer = work.refused()
    assert (answer.reason, answer.paths) == ("uncommitted-edits", (name,)), "also where nothing was committed"
    assert answer.todo == f"commit or remove them in {work.path}"
    work.repository.git("stash", "--include-untracked", at=work.path)
    work.commit(src__b="B\n")
    work.repository.git("stash", "pop", at=work.path)
    assert work.refused().paths == (name,)


def test_edits_in_a_checkout_of_the_branch_block_it_and_stay(work: Work) -> None:
    """G23: a person's edits, and a file of theirs where a new one would come."""
    work.commit(src__a="A\n", new="theirs\n")
    (work.repository.folder / "docs" / "c").write_text("mine\n")
    assert work.refused().paths == ("docs/c",)
    work.repository.git("checkout", "--", "docs/c")
    (work.repository.folder / "new").write_text("mine\n")
    answer = work.refused()
    assert (answer.reason, answer.paths) == ("uncommitted-edits", ("new",))
    assert (work.repository.folder / "new").read_text() == "mine\n"
    (work.repository.folder / "new").unlink()
    (work.repository.folder / "unrelated").write_text("mine\n")
    assert isinstance(work.integrate(), Integrated), "a new file in nobody's way is no edit"
    assert (work.repository.folder / "unrelated").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("paths", "drifted"),
    [
        (("repository/src",), ("docs/c",)),
        (("repository/docs/c",), ("src/a",)),
        (("repository/sr", "repository/docs"), ("src/a",)),
        (("src", "docs"), ("docs/c", "src/a")),
        ((), ("docs/c", "src/a")),
        (("repository/src/../docs",), ("src/a",)),
    ],
)
def test_files_beyond_its_own_paths_block_it(work: Work, paths: tuple[str, ...], drifted: tuple[str, ...]) -> None:
    """G23: scope drift."""
    work.commit(src__a="A\n", docs__c="C\n")
    answer = work.refused(paths=paths)
    assert (answer.reason, answer.paths) == ("scope-drift", drifted)


def test_a_file_that_was_moved_out_of_its_paths_has_drifted_at_both_ends(work: Work) -> None:
    work.repository.git("mv", "docs/c", "src/c", at=work.path)
    work.commit()
    answer = work.refused(paths=("repository/src",))
    assert answer.paths == ("docs/c",)


def test_what_lies_within_its_paths_is_integrated(work: Work, tmp_path: Path) -> None:
    work.commit(src__a="A\n", docs__c="C\n")
    paths = ("repository/src", str(tmp_path / "repository" / "docs" / "c"))
    assert isinstance(work.integrate(paths=paths), Integrated)


def test_a_branch_that_has_moved_blocks_it_until_the_worktree_has_merged_that(work: Work) -> None:
    """G23: a moved branch."""
    work.commit(src__a="A\n")
    moved = work.repository.commit(docs__c="C\n")
    answer = work.refused()
    assert (answer.reason, answer.paths) == ("moved-branch", ("docs/c",))
    assert answer.todo == f"merge main in {work.path} and commit that"
    work.repository.git("merge", "--quiet", "--no-edit", moved, at=work.path)
    assert work.integrate(paths=("repository/src",)) == Integrated(commit=work.repository.tip(at=work.path)), (
        "what others changed is no drift of its own"
    )
    assert work.repository.status() == ""
    assert (work.repository.folder / "src" / "a").read_text() == "A\n"


def test_a_branch_that_was_set_back_or_removed_blocks_it(work: Work) -> None:
    work.commit(src__a="A\n")
    work.repository.git("reset", "--quiet", "--hard", "HEAD~1")
    assert work.refused().reason == "moved-branch"
    work.repository.git("switch", "--quiet", "--create", "other")
    work.repository.git("branch", "--quiet", "-D", "main")
    answer = work.integrate()
    assert isinstance(answer, NotIntegrated)
    assert answer.reason == "moved-branch"
    assert work.repository.git("branch", "--list", "main") == ""


def test_a_conflict_names_the_files_that_both_changed(work: Work) -> None:
    """G23: a conflict."""
    work.commit(src__a="ours\n", src__b="B\n")
    work.repository.commit(src__a="theirs\n", docs__c="C\n")
    answer = work.refused()
    assert (answer.reason, answer.paths) == ("conflict", ("src/a",))


def test_a_merge_that_nobody_resolved_is_a_conflict(work: Work) -> None:
    work.commit(src__a="ours\n")
    theirs = work.repository.commit(src__a="theirs\n")
    Git(work.path, run_id="r", node="n").ask(
        "-c", "user.name=a", "-c", "user.email=a@b", "merge", theirs, codes=(0, 1)
    )  # fmt: skip
    answer = work.refused()
    assert (answer.reason, answer.paths) == ("conflict", ("src/a",))


def test_work_that_does_not_follow_from_where_it_began_is_refused(work: Work) -> None:
    work.repository.git("checkout", "--quiet", "--orphan", "fresh", at=work.path)
    work.commit(src__a="A\n")
    assert work.refused().reason == "diverged"


def test_a_worktree_that_is_gone_or_another_folder_is_not_believed(work: Work) -> None:
    work.commit(src__a="A\n")
    aside = work.path.with_name("aside")
    work.path.rename(aside)
    assert work.refused().reason == "workspace-lost"
    shutil.copytree(aside, work.path)  # git would take it for the same
    assert work.refused().reason == "workspace-lost"
    shutil.rmtree(work.path)
    work.repository.git("clone", "--quiet", str(work.repository.folder), str(work.path))
    assert work.refused().reason == "workspace-lost"
    work.path.rename(work.path.with_name("clone"))
    aside.rename(work.path)
    (work.path / ".git").write_text(f"gitdir: {work.repository.folder}/.git\n")
    assert work.refused().reason == "workspace-lost"


def test_a_branch_of_a_bare_repository_and_one_that_is_not_checked_out_move_too(work: Work, tmp_path: Path) -> None:
    work.repository.git("switch", "--quiet", "--create", "other")
    head = work.commit(src__a="A\n")
    assert work.integrate() == Integrated(commit=head)
    assert (work.repository.folder / "src" / "a").read_text() == "a\n"
    bare = tmp_path / "bare.git"
    work.repository.git("clone", "--quiet", "--bare", str(work.repository.folder), str(bare))
    workspace = work.tree.workspace.model_copy(update={"repository": str(bare)})
    tree = replace(work.tree, workspace=workspace, attempt=2)
    path = work.trees().open(tree, Control(), anew=True)
    head = work.repository.commit(at=path, src__b="B\n")
    assert work.trees().integrate(tree, begin=True) == Integrated(commit=head)
    assert Repository(bare, bare=True).tip("main") == head


def test_who_may_not_begin_only_finds_out_whether_it_was_done(work: Work) -> None:
    head = work.commit(src__a="A\n")
    answer = work.integrate(begin=False)
    assert isinstance(answer, NotIntegrated)
    assert answer.reason == "cancelled"
    assert work.repository.tip("main") == work.base
    assert work.integrate() == Integrated(commit=head)
    assert work.integrate(begin=False) == Integrated(commit=head)


def test_a_branch_that_moves_under_its_hands_is_not_overwritten(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody commits between the look and the move: git compares before it swaps."""
    work.commit(src__a="A\n")
    ask, others = Git.ask, []

    def interfered(git: Git, *words: str, **more: object) -> bytes:
        if words[0] == "update-ref":
            others.append(work.repository.commit(docs__c="C\n"))
        return ask(git, *words, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Git, "ask", interfered)
    answer = work.integrate()
    assert isinstance(answer, NotIntegrated)
    assert answer.reason == "moved-branch"
    assert [work.repository.tip("main")] == others


def test_a_checkout_that_was_left_behind_follows_when_it_is_tried_again(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The branch has moved and the checkout has not, or in part: the next one finishes, and keeps a person's edit."""
    (work.path / "src" / "b").unlink()
    head = work.commit(src__a="A\n", docs__c="C\n", new="n\n")

    def dies(*_: object) -> None:
        raise GitError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(git_integration, "_bring_forward", dies)
        assert isinstance(work.integrate(), NotIntegrated)
    assert work.repository.tip("main") == head
    (work.repository.folder / "src" / "a").write_text("A\n")  # written, the index not yet
    (work.repository.folder / "docs" / "c").write_text("a person's\n")
    assert work.integrate() == Integrated(commit=head)
    assert work.repository.git("diff", "--name-only", "HEAD") == "docs/c"
    assert (work.repository.folder / "docs" / "c").read_text() == "a person's\n"
    assert (work.repository.folder / "new").read_text() == "n\n"
    assert not (work.repository.folder / "src" / "b").exists()
