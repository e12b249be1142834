"""A share of `scripts/soak` and of its counted proofs, and whether its checks see what they look for."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scripts.soaking.checks import check_bodies, check_code, check_failures, read_ledger
from store.contracts import NodeRecord
from store.lifecycle import Status

ROOT = Path(__file__).parents[2]


SHARES = {
    "soak": ("--seconds", "5"),
    "kills": ("--proof", "kills", "--times", "3"),
    "starts": ("--proof", "starts", "--times", "3"),
    "people": ("--proof", "people", "--times", "6"),
    "trees": ("--proof", "trees", "--times", "2"),
    "cancels": ("--proof", "cancels", "--times", "2"),
}


def test_hosts_keep_their_promises_whatever_is_done_to_them() -> None:
    """All at once: they have folders of their own, and mostly wait."""
    running = {
        name: subprocess.Popen(
            [sys.executable, "-m", "scripts.soaking", *arguments, "--seed", "5"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, arguments in SHARES.items()
    }
    said = {name: process.communicate(timeout=200)[0] for name, process in running.items()}
    for name, process in running.items():
        assert process.returncode == 0, said[name]
        found, verdict = said[name].splitlines()
        numbers = re.match(r"seed 5: (\d+) runs, (\d+) bodies reached; blows: .*\d", found)
        assert numbers is not None
        assert min(map(int, numbers.groups())) > 0
        assert verdict == f"{name}: everything held"


def record(key: str, status: Status, attempt: int = 1) -> NodeRecord:
    return NodeRecord(key=key, status=status, attempt=attempt)


@pytest.mark.parametrize(
    ("lines", "node", "said"),
    [
        ([("step", 1), ("step", 1)], record("step/00", Status.READY), "attempt 1 of step/00 of r ran 2 times"),
        ([("step", 1), ("step", 2)], record("step/00", Status.COMPLETED), "completed with attempt 1, ran again as 2"),
        ([("step", 1)], record("step/00", Status.COMPLETED, 2), "whose body was never reached"),
        ([("pay", 1), ("pay", 2)], record("pay/00", Status.AMBIGUOUS, 2), "the effect of pay/00 of r happened more"),
        ([("step", 1), ("step", 2)], record("step/00", Status.COMPLETED, 2), None),
        ([("pay", 2)], record("pay/00", Status.COMPLETED, 2), None),
    ],
)
def test_its_checks_see_what_ran_too_often_or_never(lines: Any, node: NodeRecord, said: str | None) -> None:
    ledger = [(kind, "r", node.key, attempt) for kind, attempt in lines]
    found = list(check_bodies("r", {node.key: node}, ledger))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


def test_its_checks_see_what_failed_for_want_of_something_though_it_was_tried_again() -> None:
    told: list[Any] = [("step/00", {"failure": {"code": code, "message": "why"}}) for code in ("timeout", "conflict")]
    assert list(check_failures("r", [(None, {}), *told])) == ["step/00 of r failed: conflict: why"]


def test_trusted_code_may_run_once_and_once_more_for_each_replay() -> None:
    ledger = [("code", "7", "code/00", 0)] * 2
    assert list(check_code(7, "r", Counter({"code/00": 1}), ledger)) == []
    assert len(list(check_code(7, "r", Counter(), ledger))) == 1


def test_a_ledger_is_read_in_order(tmp_path: Path) -> None:
    assert read_ledger(tmp_path) == []
    (tmp_path / "ledger").write_text("step r a 1\npay r b 2\n")
    assert read_ledger(tmp_path) == [("step", "r", "a", 1), ("pay", "r", "b", 2)]
