"""The machine that is measured, and the folders that a measurement may litter."""

import contextlib
import os
import platform
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from hostres.folders import file_system_type

PEERS = ("fasteners", "filelock", "portalocker", "unhinged", "dbos", "langgraph")


def machine() -> dict[str, Any]:
    """Describe this machine, as far as it moves figures."""
    return {
        "cpu": _processor(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_mb": psutil.virtual_memory().total >> 20,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "temporary_folder": file_system_type(Path(tempfile.gettempdir())),
        "load": round(os.getloadavg()[0], 2),
        "peers": {peer: _version(peer) for peer in PEERS},
    }


@contextlib.contextmanager
def scratch(*, on_disk: bool = False) -> Iterator[Path]:
    """Give a new private folder and remove it afterwards.

    Args:
        on_disk: In the system's temporary folder, where a peer that syncs its files pays for it; by default in
            memory where there is room for one, as that is the quieter place.

    """
    base = "/dev/shm" if not on_disk and os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hostler-bench.", dir=base, ignore_cleanup_errors=True) as name:
        yield Path(name)


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
