"""What `hostler doctor` looks at. Looking makes nothing and changes nothing."""

import importlib.util
import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from actors.context import OperationFailed
from hostler import __version__
from hostler.config import Config
from hostler.operations.ffmpeg import find_ffmpeg, find_ffprobe
from hostler.operations.whisper_model import DEFAULT_MODEL, find_model
from hostler.service_record import ServiceRecord
from hostler.views.machine_rules import rules_text
from hostler.views.naming import claims_text
from hostler.views.terminal import shown_path
from hostres.errors import EXIT_CODES, Code, HostlerError
from hostres.folders import file_system_type
from hostres.inspection import inspect
from hostres.leftovers import find_leftovers
from hostres.memory import available_mb
from hostres.settings import MachineSettings
from hostres.top import snapshot
from store.home import Home
from store.lazy_dataclass import dataclass
from store.lifecycle import RUN_FINAL
from store.reader import Reader
from store.service import service_alive

HOME: Final = "HOSTLER_HOME"
CONFIG: Final = "HOSTLER_CONFIG"
MACHINE: Final = "HOSTLER_MACHINE_DIR"
NOWHERE: Final = "/nonexistent/hostler.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        said: What is the case, one line.
        todo: What to do about it, if it is not right.
        exit_code: 0 unless it keeps Hostler from working.

    """

    name: str
    said: str
    todo: str = ""
    exit_code: int = 0

    @property
    def mark(self) -> str:
        """How it stands, in a word."""
        if self.exit_code:
            return "WRONG"
        return "note" if self.todo else "ok"

    def to_json(self) -> dict[str, Any]:
        """Return it for `doctor --json`."""
        shape = {"name": self.name, "state": self.mark.lower(), "said": self.said}
        return {**shape, "todo": self.todo} if self.todo else shape


def examine(environ: Mapping[str, str] | None = None) -> list[Finding]:
    """Look at everything.

    Args:
        environ: The environment; this process's by default.

    """
    given = os.environ if environ is None else environ
    findings = [
        Finding(name="hostler", said=f"{__version__} in {Path(__file__).parent}"),
        Finding(
            name="python",
            said=f"{platform.python_version()} at {sys.executable}, SQLite {sqlite3.sqlite_version},"
            f" {platform.system()} {platform.release()}",
        ),
    ]
    try:
        config = Config.load(given)
    except HostlerError as error:
        findings.append(_wrong("configuration", error))
        config = Config.load({**given, CONFIG: NOWHERE})
    else:
        findings.append(_configuration(config, given))
    for name, look in (
        ("home", lambda: _home(config, given)),
        ("machine", lambda: _machine(config, given)),
        ("runs", lambda: _runs(config)),
        ("service", lambda: _service(config)),
        ("media", lambda: _media(given)),
    ):
        findings += _guarded(name, look)
    return findings


def _service(config: Config) -> Iterator[Finding]:
    home = Home.open(config.home, create=False)
    record = ServiceRecord.read(home) if service_alive(home) else None
    said = "none runs; none is needed" if record is None else f"runs, pid {record.pid}, since {record.since}"
    yield Finding(name="service", said=said)


def _guarded(name: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(look())
    except HostlerError as error:
        found.append(_wrong(name, error))
    return found


def _wrong(name: str, error: HostlerError) -> Finding:
    return Finding(name=name, said=f"{error.code}: {error.what}", todo=error.todo, exit_code=EXIT_CODES[error.code])


def _from(environ: Mapping[str, str], name: str) -> str:
    return f"from {name}" if environ.get(name) else "the default"


def _configuration(config: Config, environ: Mapping[str, str]) -> Finding:
    there = "read" if config.exists else "not there, which counts as empty"
    return Finding(
        name="configuration", said=f"{shown_path(str(config.config_path))} ({_from(environ, CONFIG)}): {there}"
    )


def _home(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    home = Home.open(config.home, create=False)
    where = f"{shown_path(str(config.home))} ({_from(environ, HOME)})"
    if not home.exists:
        yield Finding(name="home", said=f"{where}: not there; the first run makes it")
        return
    yield Finding(name="home", said=f"{where}: private, on {file_system_type(home.root) or 'an unknown'} file system")


def _machine(config: Config, environ: Mapping[str, str]) -> Iterator[Finding]:
    folder = config.machine_folder
    top = snapshot(folder)
    where = f"{shown_path(str(folder))} ({_from(environ, MACHINE)})"
    if folder.exists():
        where += f": private, on {file_system_type(folder) or 'an unknown'} file system"
    else:
        where += ": not there; the first admission makes it"
    yield Finding(name="machine", said=where)
    for found in inspect(folder):
        if found.code is None:
            yield Finding(name="machine", said=found.what, todo=found.todo)
        else:
            yield _wrong("machine", HostlerError(found.code, found.what, found.todo))
    different = {name: units for name, units in config.capacity.items() if top.capacity.get(name) != units}
    if different and top.tickets:
        error = HostlerError(
            Code.PROFILE_MISMATCH,
            f"the configuration says {claims_text(different)}, the machine in use says otherwise",
            "wait until nothing is admitted, or set equal capacities in [machine.capacity]",
        )
        yield _wrong("capacity", error)
    capacity = {**top.capacity, **config.capacity} if not top.tickets else top.capacity
    yield from _rules(config.machine, capacity, real_memory=top.real_memory)
    explicit = f"; set in the configuration: {', '.join(sorted(config.capacity))}" if config.capacity else ""
    yield Finding(name="capacity", said=f"{claims_text(capacity)}{explicit}")
    used = {name: units for name, units in top.used.items() if units}
    waiting = sum(row.state == "waiting" for row in top.tickets)
    yield Finding(name="in use", said=f"{claims_text(used)}, {waiting} waiting")


def _rules(settings: MachineSettings, capacity: Mapping[str, int], *, real_memory: bool) -> Iterator[Finding]:
    if settings.claims is not None:
        try:
            settings.claims.check(capacity)
        except HostlerError as error:
            yield _wrong("claims", error)
    by_memory = real_memory if settings.real_memory is None else settings.real_memory
    for line in rules_text(settings, available_mb() if by_memory else None):
        yield Finding(name="rule", said=line)


def _runs(config: Config) -> Iterator[Finding]:
    home = Home.open(config.home, create=False)
    if not home.exists:
        return
    with Reader.open(home) as reader:
        rows = reader.runs()
        problem = reader.damage or reader.examine()
    if problem is not None:
        yield _wrong("store", problem)
    unfinished = [row for row in rows if row.status not in RUN_FINAL and not row.imported]
    yield Finding(name="runs", said=f"{len(rows)} stored, {len(unfinished)} not finished")
    for row in unfinished:
        if row.alive:
            continue
        for leftover in find_leftovers(row.run_id):
            yield Finding(
                name="leftover",
                said=f"pid {leftover.pid} of node {leftover.node} of {row.run_id}: {' '.join(leftover.command)}",
                todo=f"`hostler resume {row.run_id}` ends it and goes on",
            )


def _media(environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        yield Finding(name="ffmpeg", said=str(find_ffmpeg(environ)))
    except OperationFailed as failed:
        yield Finding(name="ffmpeg", said=failed.message, todo=failed.todo)
    ffprobe = find_ffprobe(environ)
    if ffprobe is not None:
        yield Finding(name="ffprobe", said=str(ffprobe))
    elif importlib.util.find_spec("av") is not None:
        yield Finding(name="ffprobe", said="not there; PyAV does its work")
    else:
        yield Finding(name="ffprobe", said="neither ffprobe nor PyAV is there", todo="pip install 'hostler[media]'")
    if importlib.util.find_spec("faster_whisper") is None:
        yield Finding(name="whisper", said="faster-whisper is not there", todo="pip install 'hostler[media]'")
        return
    try:
        yield Finding(name="whisper", said=f"faster-whisper, model {find_model(Path.cwd(), DEFAULT_MODEL)}")
    except OperationFailed as failed:
        yield Finding(name="whisper", said=failed.message, todo=failed.todo)
