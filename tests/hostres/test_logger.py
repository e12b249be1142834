"""`logging` comes in once there is something to say, and what is said is heard as ever."""

import subprocess
import sys
from pathlib import Path

import pytest

from hostres.logger import DeferredLogger

LIMIT_S = 60

FASTENERS = """
import sys
from hostres.logger import import_fasteners
import_fasteners()
import fasteners
assert "logging" not in sys.modules
lock = fasteners.InterProcessLock(sys.argv[1])
assert lock.acquire()
lock.release()
assert "logging" not in sys.modules, "what nobody could hear is not worth the import"
import logging
logging.basicConfig(level=1, format="%(name)s %(message).8s", stream=sys.stdout)
assert lock.acquire()
lock.logger.warning("heard")
"""

SAID = """
import sys
from hostres.logger import DeferredLogger
log = DeferredLogger("some.name")
log.log(10, "not heard")
assert "logging" not in sys.modules
log.log(30, "first %s", "word")
try:
    raise ValueError("why")
except ValueError:
    log.exception("second word")
"""


def answer(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


def test_fasteners_is_loaded_without_logging_and_says_all_it_would(tmp_path: Path) -> None:
    done = answer(FASTENERS, f"{tmp_path}/lock")
    assert done.stderr == ""
    assert done.stdout.splitlines()[-2:] == ["fasteners.process_lock Acquired", "fasteners.process_lock heard"]


def test_the_first_words_load_logging_and_are_heard() -> None:
    done = answer(SAID)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("first word\nsecond word\nTraceback ")


def test_it_is_the_logger_of_its_name(caplog: pytest.LogCaptureFixture) -> None:
    DeferredLogger("some.name").warning("heard")
    assert caplog.record_tuples == [("some.name", 30, "heard")]


def test_where_logging_is_there_fasteners_has_its_own() -> None:
    program = """
import logging
from hostres.logger import import_fasteners
import_fasteners()
import sys
assert sys.modules["logging"] is logging
import fasteners.process_lock
assert isinstance(fasteners.process_lock.LOG, logging.Logger)
"""
    assert answer(program).stderr == ""
