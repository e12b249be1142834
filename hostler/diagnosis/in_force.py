"""Which value of each setting is in force, and where it comes from. Looking changes nothing."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from hostler.config import Config
from hostler.configuration_keys import KEYS
from hostres.capacities import Resource, capacities
from hostres.configuration import read_configuration
from hostres.errors import HostlerError
from hostres.keys import ANY, EACH, Key, Step, name_of, written
from hostres.patience import Patience
from hostres.state import MachineState, StateFile
from hostres.toml_places import line_of
from store.rules import DEFAULT_RULES, Rule

FILE: Final = "file"
DEFAULT: Final = "default"
ENVIRONMENT: Final = "environment"
MACHINE: Final = "machine"
"""What the programs of the machine agree on, set by another one or by `hostler machine set`."""
_CAPACITY: Final = "machine.capacity.*"
_PATIENCE: Final = "machine.patience"
_MEMORY: Final = "machine.memory"

PLACES: Final = ("HOSTLER_CONFIG", "HOSTLER_HOME", "HOSTLER_MACHINE_DIR")
OTHERS: Final = ("HOSTLER_FFMPEG", "HOSTLER_FFPROBE", "HOSTLER_PRINCIPAL", "HOSTLER_SECRETS", "NO_COLOR")
"""Variables that say something else than a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting.

    Attributes:
        key: As it is written in the file, or the name of a variable.
        value: As it is written in the file.
        source: Where the value comes from: "file", "environment", "machine" or "default".
        line: Of the file.

    """

    key: str
    value: str
    source: str
    line: int | None = None

    @property
    def origin(self) -> str:
        """Where it comes from, for people."""
        match self.source:
            case "file" if self.line is not None:
                return f"line {self.line}"
            case "file":
                return "the file"
            case "environment":
                return "the environment"
            case "machine":
                return "the machine in use, not this file"
            case _:
                return "default"

    def to_json(self) -> dict[str, Any]:
        """Return it for `doctor --json`."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def settings_in_force(config: Config, environ: Mapping[str, str]) -> list[Setting]:
    """Return every place and setting, in the order of the documentation.

    What the programs of the machine agree on is left out where it cannot be read: whoever looks at the machine says so.

    Args:
        config: As it was read.
        environ: The environment that it was read from.

    """
    return [*_environment(config, environ), *_File(config, environ).rows()]


def _environment(config: Config, environ: Mapping[str, str]) -> Iterator[Setting]:
    places = (config.config_path, config.home, config.machine_folder)
    for name, place in zip(PLACES, places, strict=True):
        source = ENVIRONMENT if environ.get(name) else DEFAULT
        yield Setting(key=name, value=os.path.normpath(place), source=source)
    for name in OTHERS:
        if environ.get(name):
            yield Setting(key=name, value=environ[name], source=ENVIRONMENT)


class _File:
    """The configuration file, key by key."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self._config = config
        self._environ = environ
        self._settings = read_configuration(config.config_path).settings
        self._text = _text_of(config.config_path) if self._settings else ""

    def rows(self) -> Iterator[Setting]:
        state = None
        with contextlib.suppress(HostlerError, OSError):
            state = StateFile(str(self._config.machine_folder)).known()
        for key in KEYS:
            if key.path == _CAPACITY:
                yield from self._capacities()
            elif key.path.startswith("authority.rule"):
                continue
            elif key.path in (_PATIENCE, _MEMORY) and not self._given(key.steps):
                yield _agreed(key, state)
            elif not key.path.startswith(f"{_PATIENCE}."):
                yield from self._of(key)
        yield from self._rules()

    def _of(self, key: Key) -> Iterator[Setting]:
        found = [(place, value) for place, value in _matching(self._settings, key.steps)]
        for place, value in found:
            yield self._row(place, written(value))
        if not found and ANY not in key.steps:
            yield Setting(key=key.path, value=key.default or "none", source=DEFAULT)

    def _given(self, place: Sequence[Step]) -> bool:
        return bool(_matching(self._settings, place))

    def _row(self, place: Sequence[Step], value: str) -> Setting:
        return Setting(key=name_of(place), value=value, source=FILE, line=line_of(self._text, place))

    def _capacities(self) -> Iterator[Setting]:
        resources: Sequence[Resource] = ()
        with contextlib.suppress(HostlerError, OSError):
            resources = capacities(self._config.machine_folder, self._environ).resources
        for one in resources:
            place = ("machine", "capacity", one.name)
            if one.source == "configuration":
                yield self._row(place, str(one.units))
            else:
                source = DEFAULT if one.source == "default" else MACHINE
                yield Setting(key=name_of(place), value=str(one.units), source=source)

    def _rules(self) -> Iterator[Setting]:
        for number, rule in enumerate(self._config.own_rules):
            yield self._row(("authority", "rule", number), rule_text(rule))
        for rule in DEFAULT_RULES:
            yield Setting(key="authority.rule", value=rule_text(rule), source=DEFAULT)


def _agreed(key: Key, state: MachineState | None) -> Setting:
    """Return what the programs of the machine agree on where the file says nothing."""
    if key.path == _MEMORY and state is not None and state.real_memory:
        return Setting(key=key.path, value='"available"', source=MACHINE)
    patience: Patience | None = state.patience if state is not None and key.path == _PATIENCE else None
    if patience is not None:
        return Setting(key=key.path, value=written(patience.to_json()), source=MACHINE)
    return Setting(key=key.path, value=key.default, source=DEFAULT)


def rule_text(rule: Rule) -> str:
    """Return a rule in one line: what it says, of what, and its id."""
    about = [
        f"{name} {value}"
        for name, value in (
            ("principal", "the owner of the parent" if rule.parents_owner else rule.principal_kind),
            ("action", rule.action),
            ("effect", rule.effect),
            ("preparation", None if rule.preparation is None else "/".join(sorted(rule.preparation))),
            ("operation", rule.operation),
            ("resource", rule.resource),
            ("cost", rule.cost),
        )
        if value is not None
    ]
    return f"{rule.verdict} {', '.join(about) or 'everything'} ({rule.id})"


def _matching(value: Any, steps: Sequence[Step]) -> list[tuple[tuple[Step, ...], Any]]:
    """Return the places in a configuration that a path of the table is about, and what stands there."""
    if not steps:
        return [((), value)]
    if not isinstance(value, dict) or steps[0] == EACH:
        return []
    names = list(value) if steps[0] == ANY else [steps[0]] if steps[0] in value else []
    return [((name, *place), inner) for name in names for place, inner in _matching(value[name], steps[1:])]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):
        return ""
