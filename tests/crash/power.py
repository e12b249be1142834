"""What a disk holds after the power failed: the system calls of a real program, replayed with unsynced ones dropped.

strace records every write, sync, rename and removal of a child process. The model forgets what POSIX lets a disk
forget: bytes of a file until that file was synced, in sectors of 512 and in any order; a name (made, moved or
removed) until its folder was synced. SQLite's shared index (`-shm`) is memory and is never there after a failure.
"""

import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

SECTOR: Final = 512
CALLS: Final = "openat,pwrite64,write,fsync,fdatasync,ftruncate,rename,unlink,mkdir"
_LINE: Final = re.compile(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)")
_TEXT: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FD: Final = re.compile(r"^(\d+)<((?:\\x[0-9a-f]{2}|[^>\\])*)>")


@cache
def why_no_recording() -> str:
    """Return why nothing can be recorded here; "" if it can."""
    if shutil.which("strace") is None:
        return "there is no strace here"
    tried = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this system lets nobody trace a process"


def record(arguments: Sequence[str], log: Path) -> None:
    """Run a Python program to its end and write down its system calls."""
    traced = ["strace", "-f", "-y", "-xx", "-s", str(2 << 20), "-e", f"trace={CALLS}", "-o", str(log)]
    done = subprocess.run([*traced, sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(eq=False)
class Node:
    """A file or folder, whatever it is called."""

    folder: bool
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)
    """At an offset these bytes, or cut to that size."""

    def sync(self) -> None:
        for offset, data in self.pending:
            _put(self.durable, offset, data)
        self.pending.clear()

    def after_failure(self, kept: Callable[[], bool]) -> bytes:
        content = bytearray(self.durable)
        for offset, data in self.pending:
            if data is None:
                if kept():
                    _put(content, offset, None)
                continue
            for start in range(0, len(data), SECTOR):
                if kept():
                    _put(content, offset + start, data[start : start + SECTOR])
        return bytes(content)


def _put(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


class Disk:
    """Everything below one folder, which itself is there from the beginning."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names: dict[str, Node] = {}
        self._durable: dict[str, Node] = {}
        self._pending: dict[str, list[dict[str, Node | None]]] = {}
        self._at: dict[int, int] = {}
        self.said = ""

    @property
    def unsynced(self) -> bool:
        """Whether a failure now could lose anything."""
        return any(self._pending.values()) or any(node.pending for node in self._names.values())

    def take(self, line: str) -> None:
        """Take up one recorded call that succeeded."""
        found = _LINE.match(line)
        if found is None or int(found[3]) < 0:
            return
        call, arguments, answer = found[1], found[2], int(found[3])
        texts = [_bytes(text) for text in _TEXT.findall(arguments)]
        descriptor = _FD.match(arguments)
        if descriptor is not None and call != "openat":
            self._on_open_file(call, arguments, int(descriptor[1]), _path(descriptor[2]), texts)
            return
        paths = [text.decode("utf-8", "surrogateescape") for text in texts]
        if not all(self._is_ours(path) for path in paths):
            return
        match call:
            case "openat":
                self._at[answer] = 0
                if "O_CREAT" in arguments and paths[0] not in self._names:
                    self._name({paths[0]: Node(folder=False)})
            case "mkdir":
                self._name({paths[0]: Node(folder=True)})
            case "unlink":
                self._name({paths[0]: None})
            case "rename" if paths[0] in self._names:
                self._name({paths[0]: None, paths[1]: self._names[paths[0]]})

    def _on_open_file(self, call: str, arguments: str, fd: int, path: str, texts: list[bytes]) -> None:
        if call == "write" and fd == 1:
            self.said += texts[0].decode()
        if path == self._root and call in ("fsync", "fdatasync"):
            self._sync_names(path)
        node = self._names.get(path)
        if node is None:
            return
        numbers = [int(number) for number in re.findall(r", (\d+)(?=[,)]|$)", arguments)]
        match call:
            case "pwrite64":
                node.pending.append((numbers[-1], texts[0]))
            case "write":
                node.pending.append((self._at.get(fd, 0), texts[0]))
                self._at[fd] = self._at.get(fd, 0) + len(texts[0])
            case "ftruncate":
                node.pending.append((numbers[-1], None))
            case "fsync" | "fdatasync" if node.folder:
                self._sync_names(path)
            case "fsync" | "fdatasync":
                node.sync()

    def _is_ours(self, path: str) -> bool:
        inside = path.startswith(f"{self._root}/")
        return inside and not path.endswith("-shm") and "/hosts/" not in path

    def _name(self, change: dict[str, Node | None]) -> None:
        _apply(self._names, change)
        parent = next(iter(change)).rpartition("/")[0]
        self._pending.setdefault(parent, []).append(change)

    def _sync_names(self, folder: str) -> None:
        for change in self._pending.pop(folder, ()):
            _apply(self._durable, change)

    def after_failure(self, target: Path, kept: Callable[[], bool]) -> None:
        """Write what is left into *target*.

        Args:
            target: An empty folder.
            kept: Says of each thing that was not synced whether the disk has it all the same.

        """
        names = dict(self._durable)
        for changes in self._pending.values():
            for change in changes:
                if kept():
                    _apply(names, change)
        for path, node in sorted(names.items()):
            place = target / path.removeprefix(f"{self._root}/")
            if not place.parent.is_dir():
                continue  # the folder that it was in has never been there
            if node.folder:
                place.mkdir(mode=0o700)
            else:
                place.write_bytes(node.after_failure(kept))
                place.chmod(0o600)


def _apply(names: dict[str, Node], change: dict[str, Node | None]) -> None:
    for path, node in change.items():
        if node is None:
            names.pop(path, None)
        else:
            names[path] = node


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _path(text: str) -> str:
    return _bytes(text).decode("utf-8", "surrogateescape") if text.startswith("\\x") else text


def failures(log: Path, root: Path, images: Path, *, seed: int, number: int) -> Iterator[tuple[Path, str, str]]:
    """Yield what the disk holds after failures at seeded moments, where something was not synced.

    Yields:
        A folder with what is left, what the program had said until then, and what was kept of the unsynced.

    """
    rng = random.Random(seed)
    with log.open(encoding="ascii") as file:
        lines = file.readlines()
    moments = sorted(rng.sample(range(len(lines)), min(number, len(lines))))
    disk, done = Disk(str(root)), 0
    for index, moment in enumerate(moments):
        for line in lines[done : moment + 1]:
            disk.take(line)
        done = moment + 1
        how = ("nothing", "some", "most", "all")[index % 4]
        share = {"nothing": 0.0, "some": 0.3, "most": 0.9, "all": 1.0}[how]
        image = images / f"{index}"
        image.mkdir(parents=True)
        disk.after_failure(image, lambda share=share: rng.random() < share)  # type: ignore[misc]
        yield image, disk.said, how
