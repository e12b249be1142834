"""Evidence as nodes report it: by `ctx.evidence` in a thread and in a process, by a file from a command."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from actors.evidence_file import MAX_BYTES, read_evidence
from actors.failures import OperationFailed
from hostler import Host
from store.lifecycle import Status
from store.policy import FailureCode
from store.terms import Evidence, EvidenceType
from tests.hostler.worker_support import WAIT_S, compiled, records

FLOW = """
class Given(BaseModel):
    brings: list[tuple[str, str]]


class Done(BaseModel):
    done: bool


THREAD = Policy(effect="local-derived-write")


def show(ctx, input):
    for name, kind in input.brings:
        ctx.evidence(name, kind)
    return Done(done=True)


@operation("test.thread", version=1, policy=THREAD)
def in_thread(ctx: Context, input: Given) -> Done:
    return show(ctx, input)


@operation("test.process", version=1, policy=WRITES)
def in_process(ctx: Context, input: Given) -> Done:
    return show(ctx, input)


TESTED = {"evidence": [{"id": "suite", "type": "test"}]}


@workflow("flow", version=1)
def flow(build):
    good, wrong = [["suite", "test"], ["suite", "test"]], [["notes", "report"]]
    for key, code in (("thread", in_thread), ("process", in_process)):
        build.call(code, key=f"{key}/good", input={"brings": good}, terms=TESTED)
        build.call(code, key=f"{key}/wrong", input={"brings": wrong}, terms=TESTED)
        build.call(code, key=f"{key}/odd", input={"brings": [["suite", "vibes"]]}, terms=TESTED)
    writes = 'printf "%s" "$1" > "$HOSTLER_EVIDENCE"'
    for key, text in (("good", '[{"id": "suite", "type": "test"}]'), ("wrong", "[]"), ("odd", "{}")):
        build.command(["sh", "-c", writes, "sh", text], key=f"command/{key}", terms=TESTED)
    build.command(["true"], key="command/silent", terms=TESTED)
"""


def test_each_kind_of_node_reports_evidence_in_its_own_way(tmp_path: Path) -> None:
    plan = compiled(tmp_path, FLOW)
    with Host() as host:
        run = host.start(plan)
        run.wait(timeout=WAIT_S)
        run_id = run.run_id
    found = records(run_id)
    by_status: dict[str, set[str]] = {}
    for key, record in found.items():
        by_status.setdefault(record.status.value, set()).add(key)
    assert by_status == {
        "completed": {"thread/good", "process/good", "command/good"},
        "blocked": {"thread/wrong", "process/wrong", "command/wrong", "command/silent"},
        "failed": {"thread/odd", "process/odd", "command/odd"},
    }
    suite = Evidence(id="suite", type=EvidenceType.TEST)
    assert all(found[key].evidence == (suite,) for key in by_status["completed"])
    for key in ("thread/wrong", "process/wrong"):
        failure = found[key].failure
        assert failure is not None
        assert failure.message == "evidence missing: suite (test); unexpected: notes (report)"
    odd = {key: failure.code for key in by_status["failed"] if (failure := found[key].failure) is not None}
    assert odd == {
        "thread/odd": FailureCode.INVALID_DATA,
        "process/odd": FailureCode.INVALID_DATA,
        "command/odd": FailureCode.MALFORMED_OUTPUT,
    }
    assert found["thread/odd"].status is Status.FAILED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        '"suite"',
        '{"id": "a", "type": "test"}',
        '[{"id": "a"}]',
        '[{"id": "a", "type": "vibes"}]',
        '[{"id": "a", "type": "test", "more": 1}]',
        '[{"id": "a", "id": "b", "type": "test"}]',
        '[{"id": 1, "type": "test"}]',
        "[" * 100_000,
        "x" * (MAX_BYTES + 1),
    ],
)
def test_a_file_that_is_no_list_of_evidence_is_malformed(tmp_path: Path, text: str) -> None:
    path = tmp_path / "evidence.json"
    path.write_text(text)
    with pytest.raises(OperationFailed) as refused:
        read_evidence(path)
    assert refused.value.code is FailureCode.MALFORMED_OUTPUT


def test_a_link_a_folder_and_a_pipe_are_no_evidence_and_nothing_waits_for_them(tmp_path: Path) -> None:
    good: Any = [{"id": "a", "type": "test"}]
    (tmp_path / "good").write_text(json.dumps(good))
    (tmp_path / "link").symlink_to(tmp_path / "good")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "folder", "pipe"):
        with pytest.raises(OperationFailed):
            read_evidence(tmp_path / name)
    assert read_evidence(tmp_path / "good") == [Evidence(id="a", type=EvidenceType.TEST)]
    assert read_evidence(tmp_path / "missing") == []
