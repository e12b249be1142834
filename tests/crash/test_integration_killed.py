"""SIGKILL of a whole host around a git workspace: while it is made, after the result, and inside each step of moving
the branch. Whatever was reached, the next host goes on from there, and the branch moves once.
"""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from hostler.config import Config
from store.home import Home
from store.proving import numbers, prove
from tests.end_to_end.support import command, finished, graph, hostler, shown, statuses
from tests.hostler.git_support import Repository

WRAPPER = """\
#!/bin/sh
# git, but for one moment: before or after the command that the file `point` names, its caller is killed
here="$(dirname "$0")"
when= what=
[ ! -e "$here/point" ] || read -r when what < "$here/point"
case " $* " in *" ${what:-none of its words} "*) rm "$here/point" ;; *) when= ;; esac
[ "$when" != before ] || { kill -9 "$PPID"; exit 1; }
%s "$@"
code=$?
[ "$when" != after ] || kill -9 "$PPID"
exit $code
"""

WORK = """\
echo ran >> "$0"
echo new > src/file
rm src/old
git add --all
git -c user.name=Ann -c user.email=ann@example.org commit --quiet --message work
"""

POINTS = (
    ("after worktree", "running"),
    ("before --git-common-dir", "verifying"),
    ("before update-ref", "verifying"),
    ("after update-ref", "verifying"),
    ("after restore", "verifying"),
)
"""Where the host is killed, one life after the other, and where the node stands then."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Give a PATH on which git is the one that kills."""
    real = shutil.which("git")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(WRAPPER % real)
    (folder / "git").chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def is_sound() -> None:
    home = Home.open(Config.load().home, create=False)
    assert prove(home, *numbers(home)).problems == ()


def test_a_host_that_is_killed_at_any_step_of_an_integration_has_moved_the_branch_once_in_the_end(
    tmp_path: Path, path: str
) -> None:
    """G23: kill -9 between result and integration, and in each step of it; the resume integrates once."""
    repository = Repository.made(tmp_path / "repository", src__old="old\n", readme="hello\n")
    began = repository.tip("main")
    counter = tmp_path / "counter"
    node: dict[str, Any] = command("fix", "sh", "-ec", WORK, str(counter), effect="project-mutation") | {
        "workspace": {"repository": str(repository.folder), "base": "main"},
        "evidence": [],
    }
    words = ["run", graph(tmp_path, node)]
    for point, status in POINTS:
        (tmp_path / "bin" / "point").write_text(f"{point}\n")
        assert finished(*words, PATH=path).returncode == -signal.SIGKILL, point
        assert statuses() == {"fix": status}, point
        is_sound()
        words = ["resume", "-"]
    hostler(*words, PATH=path)
    assert statuses() == {"fix": "completed"}
    (record,) = shown()["nodes"]
    assert (record["attempt"], counter.read_text()) == (2, "ran\n"), "the first life never got as far as its work"
    assert repository.git("rev-list", "--count", f"{began}..main") == "1"
    assert repository.status() == ""
    assert (repository.folder / "src" / "file").read_text() == "new\n"
    assert len(repository.git("worktree", "list").splitlines()) == 2, "a worktree of a dead host is left"
    is_sound()
    archive = tmp_path / "run.hostler"
    hostler("export", "-", str(archive))
    hostler("verify", str(archive))
