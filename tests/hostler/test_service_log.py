"""The log of the service is bounded wherever nobody else bounds it."""

import sys
from pathlib import Path

import pytest

from hostler.service_log import service_log


def test_standard_error_of_its_own_stays_below_its_bound_however_much_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is torn; what is gone from it is in the file that is kept beside it."""
    (tmp_path / "logs").mkdir(mode=0o700)
    errors = tmp_path / "errors"
    with errors.open("a") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        with service_log(tmp_path / "logs", max_bytes=10_000, files=2, own_errors=True) as log:
            for number in range(1000):
                log.say("event", number=number)
                assert errors.stat().st_size < 10_200
    lines = errors.read_text().splitlines()
    assert all(line.startswith('{"at":') and line.endswith("}") for line in lines)
    assert '"number":999' in lines[-1]
    assert sum(file.stat().st_size for file in (tmp_path / "logs").iterdir()) < 31_000
