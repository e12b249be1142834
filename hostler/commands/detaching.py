"""A run in the background: `hostler resume` in a session of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from hostler.commands.following import EVERY_S
from hostres.errors import Code, HostlerError
from hostres.folders import open_private
from store.home import Home
from store.lifecycle import RunStatus
from store.reader import Reader

BEGINS_WITHIN_S: Final = 30.0


def detach(home: Home, run_id: str, *, jobs: int | None) -> Path:
    """Start a process that goes on with a run and outlives this one.

    Args:
        home: Where the run is stored.
        run_id: The run.
        jobs: Its `--jobs`, None for the default.

    Returns:
        The file that its view and errors go to.

    Raises:
        HostlerError: unavailable, if that process ended before it took the run up.

    """
    log = home.logs / f"{run_id}.log"
    # -P: the current folder may hold modules that are called like ours.
    argv = [sys.executable, "-P", "-m", "hostler", "resume", run_id]
    if jobs is not None:
        argv += ["--jobs", str(jobs)]
    descriptor = open_private(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, start_new_session=True
        )
    finally:
        os.close(descriptor)
    _see_it_begin(home, run_id, process, log)
    return log


def _see_it_begin(home: Home, run_id: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    # Who reads the id next may look at the run at once; it should find somebody at work.
    deadline = time.monotonic() + BEGINS_WITHIN_S
    with Reader.open(home) as reader:
        while reader.run(run_id).status is RunStatus.PLANNED:
            if process.poll() is not None or time.monotonic() > deadline:
                raise HostlerError(
                    Code.UNAVAILABLE,
                    f"run {run_id} is stored, but its process did not begin with it",
                    f"read {log}, then: hostler resume {run_id}",
                )
            time.sleep(EVERY_S)
