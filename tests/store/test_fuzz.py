"""A share of `scripts/fuzz-store`: a changed document gives a clean error or the answer of before."""

import subprocess
import sys
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from scripts.fuzz_store import Fuzzer, fuzz
from scripts.fuzzing.damage import Change
from scripts.fuzzing.promises import FuzzError, check_clean
from scripts.fuzzing.template import build

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz_store.py"
CASES = 80


def test_damage_of_any_kind_gives_clean_errors_alone() -> None:
    outcomes = fuzz(CASES, seed=20)
    assert outcomes["refused"] > CASES / 2


def test_it_sees_another_answer_a_silence_and_what_is_no_clean_error(tmp_path: Path) -> None:
    """The judge itself: a fuzzer that finds nothing must be one that could."""
    build(tmp_path / "template")
    fuzzer = Fuzzer(tmp_path / "template", 1)
    truth = fuzzer.truth
    fuzzer._judge(Change("nothing", found=False, same=True), truth)
    with pytest.raises(FuzzError, match="another answer"):
        fuzzer._judge(Change("x", found=False, same=True), {**truth, "find": "another"})
    with pytest.raises(FuzzError, match="nobody noticed"):
        fuzzer._judge(Change("x", found=True, same=True), truth)
    for error in (HostlerError(Code.INTERNAL, "x", "y"), HostlerError(Code.CONFLICT, "a\nb", "y")):
        with pytest.raises(FuzzError, match="not a clean error"):
            check_clean(error)


def test_wrong_use_is_refused() -> None:
    command = [sys.executable, str(SCRIPT), "--cases", "0"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
