"""Workflows whose code runs in worker processes, and what is stored of their runs."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler import load
from hostler.compiler import Compiled, compile_workflow
from hostler.config import Config
from hostres.procfs import read_process
from store.contracts import NodeRecord
from store.home import Home
from store.reader import Reader

WAIT_S = 120.0
"""A bound, never a verdict: a busy machine takes seconds to start a process."""

HEAD = """
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hostler import Build, Context, FailureCode, OperationFailed, Policy, compute, operation, workflow

WRITES = Policy(effect="local-derived-write", isolation="process", max_seconds=60)
"""


def compiled(folder: Path, code: str, **inputs: Any) -> Compiled:
    (folder / "flow.py").write_text(HEAD + textwrap.dedent(code), encoding="utf-8")
    return compile_workflow(load("flow.py", folder=folder), inputs, folder=folder)


def home() -> Home:
    return Home.open(Config.load().home, create=False)


def records(run_id: str) -> Mapping[str, NodeRecord]:
    with Reader.open(home()) as reader:
        return {node.key: node for node in reader.nodes(run_id)}


def log_of(run_id: str, node: str, stream: str = "stdout") -> str:
    return home().logs_of(run_id, node, 1)[stream].read_text()


def is_gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.gone
