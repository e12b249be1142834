"""Writers of several processes take turns; who is next dies with its process, and no turn is worth waiting for ever."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hostres.errors import Code, HostlerError
from store.home import Home
from store.run_store import RunStore
from store.turns import FILE, Turns
from tests.store.support import CLOCK, NOTE, Setting, assert_refused

NEXT_IN_LINE = """
import sys
from pathlib import Path
from store.turns import Turns
with Turns(Path(sys.argv[1])).next(5):
    print("next", flush=True)
    sys.stdin.read()
"""


def next_in_line(setting: Setting) -> subprocess.Popen[str]:
    """Start a process that stays the next writer until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", NEXT_IN_LINE, str(setting.home.database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "next\n"
    return process


@pytest.mark.parametrize("how", ["it gives its turn up", "it is killed"])
def test_nobody_writes_before_the_one_that_is_next(setting: Setting, how: str) -> None:
    claimed = setting.claimed()
    process = next_in_line(setting)
    answers: list[HostlerError | None] = []
    writing = threading.Thread(target=lambda: answers.append(setting.write(claimed, events=(NOTE,))))
    writing.start()
    writing.join(timeout=0.2)
    assert answers == []
    if how == "it gives its turn up":
        process.communicate()
    else:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    writing.join(timeout=60)
    assert answers == [None]


def test_a_turn_is_given_up_after_a_while(setting: Setting) -> None:
    process = next_in_line(setting)
    began = time.monotonic()
    with Turns(setting.home.database).next(0.05):
        assert time.monotonic() - began >= 0.05
    process.communicate()


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_a_line_that_is_no_file_of_ours_is_refused(tmp_path: Path, kind: str) -> None:
    home = Home.open(tmp_path / "home", create=True)
    (tmp_path / "other").write_text("")
    if kind == "link":
        os.symlink(tmp_path / "other", home.root / FILE)
    else:
        (home.root / FILE).mkdir(mode=0o700)
    with pytest.raises(HostlerError) as caught:
        RunStore.open(home, clock=CLOCK)
    assert_refused(caught.value, Code.UNSAFE_STATE, FILE)
