"""A node in a git workspace by the command line: what it left, who says what is in the way, and how it goes on."""

from pathlib import Path
from typing import Any

from tests.end_to_end.support import command, graph, hostler, shown, statuses
from tests.hostler.git_support import Repository

WORK = """\
test "$(pwd)" = "$(git rev-parse --show-toplevel)"
test -f "$HOSTLER_INPUT"
echo new > src/file
git add --all
git -c user.name=Ann -c user.email=ann@example.org commit --quiet --message work
printf '[{"id": "work", "type": "commit"}]' > "$HOSTLER_EVIDENCE"
"""


AGENT = """\
test "$(pwd)" = "$(git rev-parse --show-toplevel)"
grep -q "\\"workspace\\":\\"$(pwd)\\""
echo new > src/file
git add --all
git -c user.name=Ann -c user.email=ann@example.org commit --quiet --message work
echo '{"status": "success", "evidence": [{"id": "work", "type": "commit"}]}'
"""


def test_what_an_agent_commits_goes_into_the_branch_as_well(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "code", src__old="old\n")
    node = {
        "key": "fix",
        "executor": {"agent": {"objective": "mend it", "argv": ["sh", "-ec", AGENT], "effect": "project-mutation"}},
        "workspace": {"repository": str(repository.folder), "base": "main"},
        "evidence": [{"id": "work", "type": "commit"}],
    }
    hostler("run", graph(tmp_path, node))
    assert (repository.folder / "src" / "file").read_text() == "new\n"
    assert repository.status() == ""


def test_what_a_command_commits_goes_into_the_branch_once_nothing_is_in_its_way(tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "code", src__old="old\n")
    (repository.folder / "src" / "old").write_text("a person's\n")
    node: dict[str, Any] = command("fix", "sh", "-ec", WORK, effect="project-mutation") | {
        "input": {"goal": "mend it"},
        "workspace": {"repository": str(repository.folder), "base": "main"},
        "evidence": [{"id": "work", "type": "commit"}],
    }
    begun = repository.tip("main")
    hostler("run", graph(tmp_path, node), code=3, GIT_DIR="/nowhere", GIT_INDEX_FILE="/nowhere")
    (waiting,) = shown()["waiting_on"]
    assert waiting["message"].startswith("not integrated, uncommitted-edits: ")
    assert waiting["message"].endswith(": src/old; commit them or put them aside")
    assert waiting["command"] in hostler("why", "-", "fix")
    assert repository.tip("main") == begun
    repository.git("checkout", "--", "src/old")
    hostler("retry", "-", "fix")
    assert statuses() == {"fix": "verifying"}, "who only settles requests integrates nothing"
    hostler("resume", "-")
    assert statuses() == {"fix": "completed"}
    assert shown()["nodes"][0]["attempt"] == 1
    assert repository.git("rev-list", "--count", f"{begun}..main") == "1"
    assert repository.status() == ""
