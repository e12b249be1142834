"""The whole examination: every setting, and every finding."""

import os
import platform
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hostler import __version__
from hostler.config import Config
from hostler.diagnosis.disk import look_at_disk
from hostler.diagnosis.findings import Finding, guarded, origin, refusal, wrong
from hostler.diagnosis.in_force import Setting, settings_in_force
from hostler.diagnosis.machine import MACHINE, look_at_machine
from hostler.diagnosis.runs import look_at_runs, look_at_service
from hostler.diagnosis.surroundings import look_at_surroundings
from hostler.diagnosis.tools import look_at_tools
from hostler.state_folder import HOME, state_folder
from hostler.views.terminal import shown_path
from hostres.claims import default_capacity
from hostres.folders import machine_folder

CONFIG: Final = "HOSTLER_CONFIG"
NOWHERE: Final = "/nonexistent/hostler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What was found.

    Attributes:
        settings: What is in force; empty where the configuration cannot be read.
        findings: What was looked at.

    """

    settings: Sequence[Setting]
    findings: Sequence[Finding]

    @property
    def exit_code(self) -> int:
        """0, or the largest exit code of what is wrong."""
        return max((finding.exit_code for finding in self.findings), default=0)

    def to_json(self) -> dict[str, Any]:
        """Return it for `doctor --json`."""
        return {
            "ok": self.exit_code == 0,
            "settings": [setting.to_json() for setting in self.settings],
            "findings": [finding.to_json() for finding in self.findings],
        }


def examine(environ: Mapping[str, str] | None = None) -> Examination:
    """Look at everything.

    Args:
        environ: The environment; this process's by default.

    """
    given = dict(os.environ if environ is None else environ)
    findings = [
        Finding(name="hostler", said=f"{__version__} in {Path(__file__).parent.parent}"),
        Finding(
            name="python",
            said=f"{platform.python_version()} at {sys.executable}, SQLite {sqlite3.sqlite_version},"
            f" {platform.system()} {platform.release()}",
        ),
    ]
    settings: list[Setting] = []
    lost = _lost_places(given)
    findings += lost.values()
    config = _configured(findings, settings, given, dict.fromkeys(lost, NOWHERE))
    capacity = _capacity(settings) or default_capacity()
    for name, place, look in (
        ("home", HOME, lambda: look_at_disk(config, given)),
        ("machine", MACHINE, lambda: look_at_machine(config, given)),
        ("runs", HOME, lambda: look_at_runs(config)),
        ("service", HOME, lambda: look_at_service(config)),
        ("surroundings", "", lambda: look_at_surroundings(capacity, given)),
        ("tools", "", lambda: look_at_tools(given)),
    ):
        if place not in lost:
            findings += guarded(name, look)
    return Examination(settings=tuple(one for one in settings if one.key not in lost), findings=_each_once(findings))


def _lost_places(environ: Mapping[str, str]) -> dict[str, Finding]:
    """Return the variables whose folder cannot even be named, each with what is wrong with it."""
    lost = {}
    for variable, name, place in ((HOME, "home", state_folder), (MACHINE, "machine", machine_folder)):
        try:
            place(environ)
        except Exception as error:  # noqa: BLE001  as in `guarded`
            lost[variable] = wrong(name, refusal(error))
    return lost


def _configured(
    findings: list[Finding], settings: list[Setting], environ: Mapping[str, str], instead: Mapping[str, str]
) -> Config:
    """Return the configuration, or that of an empty file if it is wrong; add what is found and is in force."""
    read: list[Config] = []

    def look() -> Iterator[Finding]:
        read.append(Config.load({**environ, **instead}))
        yield _configuration(read[0], environ)
        settings.extend(settings_in_force(read[0], environ))

    findings += guarded("configuration", look)
    return read[0] if read else Config.load({**environ, **instead, CONFIG: NOWHERE})


def _each_once(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings without those that say of another part what is said already."""
    seen: dict[str, Finding] = {}
    for finding in findings:
        seen.setdefault(finding.said, finding)
    return tuple(seen.values())


def _capacity(settings: Sequence[Setting]) -> dict[str, int]:
    start = "machine.capacity."
    return {one.key.removeprefix(start): int(one.value) for one in settings if one.key.startswith(start)}


def _configuration(config: Config, environ: Mapping[str, str]) -> Finding:
    there = "read" if config.exists else "not there, which counts as empty"
    return Finding(
        name="configuration", said=f"{shown_path(str(config.config_path))} ({origin(environ, CONFIG)}): {there}"
    )
