"""Power loss: what was acknowledged before it is there after it, and nothing is half there.

The first test replays what a real program did, as strace saw it. The second needs no strace: it tears the bytes that
each commit has changed between two images of the files.
"""

import random
import shutil
from pathlib import Path

import pytest

from store.clock import SystemClock
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import Status
from store.reader import Reader
from store.run_store import RunStore
from tests.crash.power import SECTOR, failures, record, why_no_recording
from tests.crash.test_store_crash import ROOT, WRITER, check_acknowledged
from tests.store.support import NOTE, Setting

# Short logs, so that checkpoints and restarts of the log are among what is cut short; then an orderly end.
SCRIPT = WRITER.replace("while True:", "while number < 7:").replace(
    'print("ready", flush=True)',
    'setting.store._connection.execute("PRAGMA wal_autocheckpoint = 40")\nprint("ready", flush=True)',
) + "setting.close()\nprint('closed', flush=True)\n"  # fmt: skip


def check(image: Path, said: str) -> None:
    """Look at what is left, then go on with it as the next program does."""
    acknowledged = [line.split() for line in said.splitlines(keepends=True) if line.endswith("\n")]
    acknowledged = [words for words in acknowledged if words[0] not in ("ready", "closed")]
    home = Home.open(image / "home", create=not acknowledged)
    if not home.exists and not acknowledged:
        return
    check_acknowledged(home, acknowledged)
    home = Home.open(image / "home", create=True)
    identity = HostIdentity.register(home)
    store = RunStore.open(home, clock=SystemClock())
    with Reader.open(home) as reader:
        runs = [row.run_id for row in reader.runs()]
    for run in runs:
        claimed = store.claim(run, identity)
        for node in claimed.nodes:
            assert (node.status is Status.COMPLETED) == (node.key in claimed.outputs)
    assert store._connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store.close()
    identity.close()


def recorded(folder: Path) -> tuple[Path, Path]:
    """Return the log of a program that did what a store does, and the folder that it did it in."""
    if why_no_recording():
        pytest.skip(why_no_recording())
    root = folder / "disk"
    root.mkdir()
    record(["-c", SCRIPT, str(root / "home"), ROOT, "1"], folder / "log")
    return folder / "log", root


def test_what_was_acknowledged_is_there_after_the_power_failed_at_any_moment(tmp_path: Path) -> None:
    log, root = recorded(tmp_path)
    reached = set()
    for image, said, how in failures(log, root, tmp_path / "images", seed=5, number=24):
        check(image, said)
        reached.add(how if "wrote" in said else "early")
        shutil.rmtree(image)
    assert reached >= {"nothing", "some", "most", "all"}


def test_a_commit_that_is_torn_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    """Between two acknowledged commits without a checkpoint every changed sector of the log may or may not be there."""
    rng, known, torn_apart = random.Random(9), 2, 0
    setting = Setting(tmp_path / "disk" / "home")
    claimed = setting.claimed()
    run = claimed.fence.run_id
    for number in range(25):
        before = log_of(setting.home)
        added = rng.randrange(1, 40)
        setting.accept(claimed, events=(NOTE,) * added)
        image = Home.open(tmp_path / f"image{number}", create=True)
        shutil.copy(setting.home.database, image.database)
        place = image.root / "runs.db-wal"
        place.write_bytes(torn(before, log_of(setting.home), rng))
        place.chmod(0o600)
        with Reader.open(image) as reader:
            seen = len(list(reader.events(run)))
        assert seen in (known, known + added)
        torn_apart += seen == known
        known += added
    setting.close()
    assert 5 < torn_apart < 25


def log_of(home: Home) -> bytes:
    return (home.root / "runs.db-wal").read_bytes()


def torn(before: bytes, after: bytes, rng: random.Random) -> bytes:
    """Return *before* with some of the sectors in which *after* differs."""
    share = rng.choice((0.2, 0.7, 1.0))
    mixed = bytearray(before.ljust(len(after), b"\0"))
    for start in range(0, len(after), SECTOR):
        if rng.random() < share:
            mixed[start : start + SECTOR] = after[start : start + SECTOR]
    return bytes(mixed)
