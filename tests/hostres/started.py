"""Supervised processes for tests: started with few words, brought to their end, looked at."""

import os
import sys
from pathlib import Path

from hostres.process import Supervised
from hostres.procfs import read_process
from tests.hostres.support import LIMIT_S

PYTHON = sys.executable
TREE = "sleep 600 & echo $! > {0}/child; setsid sh -c 'echo $$ > {0}/session; exec sleep 600' & wait"


def start(*argv: str | Path, env: dict[str, str] | None = None, **more: object) -> Supervised:
    return Supervised.start(argv, env={**os.environ, **(env or {})}, **{"stdout_log": None, "stderr_log": None, **more})  # type: ignore[arg-type]


def finished(process: Supervised) -> tuple[int | None, int | None, str | None]:
    done = process.wait(LIMIT_S)
    assert done is not None
    ended = process.end(grace_s=0.0, reason="cleanup")
    assert ended.exit == done
    assert ended.left == ()
    return done.code, done.signal, done.asked_by


def alive(pid: int) -> bool:
    process = read_process(pid)
    return process is not None and not process.gone
