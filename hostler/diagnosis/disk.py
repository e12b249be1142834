"""The state folder and what its disk really does: whose it is, how full, and what a durable commit costs there."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from hostler.config import Config
from hostler.diagnosis.findings import Finding, origin, wrong
from hostler.retention_settings import GIGABYTE
from hostler.state_folder import HOME
from hostler.views.sizes import bytes_text
from hostler.views.terminal import shown_path
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import check_private_file, file_system_type, private_folder, refuse_network_file_system
from hostres.open_folders import reopening
from store.commit_floor import CommitFloor, measure
from store.home import FOLDERS, Home
from store.reader import Reader
from store.usage import usage

WAL: Final = "wal"
LEAST_FREE: Final = 1 << 30
"""With less than this a transcode may fill the disk."""
PASSING: Final[Mapping[str, str]] = {
    "tmpfs": "which is memory: nothing in it outlives a reboot",
    "ramfs": "which is memory: nothing in it outlives a reboot",
    "overlay": "which is a layer of a container: it goes with the container",
}
NO_FLUSH_S: Final = 10e-6
"""No disk is so quick: what flushes in less keeps it in memory."""
SLOW_S: Final = 0.05
"""Each step of a run waits for a few commits."""
SKEW_S: Final = 2.0
MS: Final = 1e3


def look_at_disk(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the state folder; what is made in it to measure is removed again.

    Args:
        config: Names it.
        environ: Whether a variable does.

    Raises:
        HostlerError: It cannot be used.

    """
    where = f"{shown_path(str(config.home))} ({origin(environ, HOME)})"
    unsafe = list(_unsafe(config.home))
    if unsafe:
        yield from unsafe
        return
    home = Home.open(config.home, create=False)
    if not home.exists:
        yield Finding(name="home", said=f"{where}: not there; the first run makes it")
        return
    kind = file_system_type(home.root)
    passing = PASSING.get(kind)
    said = f"{where}: private, on {kind or 'an unknown'} file system"
    if passing is None:
        yield Finding(name="home", said=said)
    else:
        yield Finding(
            name="home", said=f"{said}, {passing}", todo="set HOSTLER_HOME to a folder on a disk, unless that is meant"
        )
    yield _space(home, config.retention.most_gigabytes)
    yield from _journal(home)
    yield from told_floor(measure(home))


def _unsafe(root: Path) -> Iterator[Finding]:
    """Name everything in the state folder that is refused, not only the first."""
    if not os.path.lexists(root):
        return
    try:
        private_folder(root, create=False)
        refuse_network_file_system(root, file_system=file_system_type)
        entries = sorted(root.iterdir())
    except HostlerError as error:
        yield wrong("home", error)
        return
    except OSError as error:
        yield _closed(root, error)
        return
    for entry in entries:
        try:
            if entry.name in FOLDERS and not (entry.is_dir() or entry.is_symlink()):
                yield wrong("home", HostlerError(Code.UNSAFE_STATE, f"{entry} is not a folder", "move it away"))
            elif entry.is_dir() and not entry.is_symlink():
                private_folder(entry, create=False)
                _refuse_links(entry)
            else:
                check_private_file(entry)
        except FileNotFoundError:
            continue  # of a program that works meanwhile
        except HostlerError as error:
            yield wrong("home", error)
        except OSError as error:
            yield _closed(entry, error)


def _closed(path: Path, error: OSError) -> Finding:
    refused = unavailable(f"{path} cannot be looked into", error)
    return wrong("home", HostlerError(refused.code, refused.what, reopening(error) or refused.todo))


def _refuse_links(folder: Path) -> None:
    link = next((inner for inner in folder.iterdir() if inner.is_symlink()), None)
    if link is not None:
        raise HostlerError(Code.UNSAFE_STATE, f"{link} is a symbolic link", "remove it")


def _space(home: Home, most_gigabytes: float | None) -> Finding:
    used, disk = usage(home), shutil.disk_usage(home.root)
    parts = ", ".join(f"{name} {bytes_text(size)}" for name, size in used.items() if size)
    total = sum(used.values())
    said = f"{bytes_text(disk.free)} of {bytes_text(disk.total)} free; the state folder takes {bytes_text(total)}"
    todo = "make room: `hostler gc --older-than 7d` removes old runs" if disk.free < LEAST_FREE else ""
    kept = used["workspaces"] + used["logs"]
    if most_gigabytes is not None and kept > most_gigabytes * GIGABYTE:
        todo = f"`hostler gc` brings workspaces and logs below the {most_gigabytes:g} GB of retention.most_gigabytes"
    return Finding(
        name="space",
        said=f"{said} ({parts})" if parts else said,
        todo=todo,
        facts={"free_bytes": disk.free, "total_bytes": disk.total, "used_bytes": {**used, "all": total}},
    )


def _journal(home: Home) -> Iterator[Finding]:
    with Reader.open(home) as reader:
        mode = reader.journal_mode()
    if mode is not None and mode != WAL:
        what = f"{home.database} is written in journal mode {mode}, not {WAL}: readers and writers wait for each other"
        yield Finding(name="journal", said=what, todo="check that no other program opens it; the next run sets it")


def told_floor(floor: CommitFloor) -> Iterator[Finding]:
    """Tell what was measured, and what it means for runs.

    Args:
        floor: What was measured.

    """
    flushes = "an unknown number of flushes" if floor.flushes is None else _flushes(floor.flushes)
    yield Finding(
        name="journal",
        said=f"{floor.journal_mode}, synchronous full: a commit waits for {flushes}",
        todo="" if floor.journal_mode == WAL else "use a file system with shared memory and locks, as ext4 or xfs",
        facts={"journal_mode": floor.journal_mode, "flushes_per_commit": floor.flushes},
    )
    todo = ""
    if floor.flush_s < NO_FLUSH_S:
        todo = (
            "nothing reaches a disk so quickly: after a power cut what was acknowledged may be gone; use another disk"
        )
    elif floor.usual_commit_s > SLOW_S:
        todo = "each step of a run waits for several; use a faster disk, or one that fewer programs flush"
    yield Finding(
        name="commit floor",
        said=f"{floor.commit_s * MS:.2f} ms, usually {floor.usual_commit_s * MS:.2f} ms ({floor.commits} commits);"
        f" a page is written in {floor.write_s * MS:.3f} ms, and flushed in {floor.flush_s * MS:.3f} ms",
        todo=todo,
        facts={
            "commit_ms": round(floor.commit_s * MS, 4),
            "usual_commit_ms": round(floor.usual_commit_s * MS, 4),
            "flush_ms": round(floor.flush_s * MS, 4),
            "write_ms": round(floor.write_s * MS, 4),
            "commits": floor.commits,
        },
    )
    if abs(floor.clock_ahead_s) > SKEW_S:
        yield Finding(
            name="clock",
            said=f"the clock of the disk is {floor.clock_ahead_s:+.0f} s off that of this machine",
            todo="use a local disk, or synchronise both clocks",
        )


def _flushes(number: float) -> str:
    return f"{number:g} flush{'' if number == 1 else 'es'}"
