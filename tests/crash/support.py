"""Hosts as processes of their own, to be killed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def hostler(*arguments: str, cwd: Path | None = None, timeout: float = 90.0) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "hostler", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@contextmanager
def hosting(*arguments: str, cwd: Path | None = None) -> Iterator["subprocess.Popen[str]"]:
    """Run a command in the background; it is gone afterwards, whatever the test did."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hostler", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def events(run: str = "-") -> list[Mapping[str, Any]]:
    """Return the log of a run."""
    done = hostler("events", run, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def show(run: str = "-") -> Mapping[str, Any]:
    """Return what `show` says of a run."""
    done = hostler("show", run, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def top() -> Mapping[str, Any]:
    """Return what `top` says of the machine."""
    done = hostler("top", "--once", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def processes_of(run_id: str) -> dict[int, str]:
    """Return the living processes of a run: pid → program."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOSTLER_RUN={run_id}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "comm").read_text().strip()
        except OSError:
            continue
    return found
