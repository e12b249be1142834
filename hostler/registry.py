"""Which operations there are: the built-in ones, and those that installed packages bring.

Nothing is imported before somebody asks for a kind. Packages come in through the entry-point group
`hostler.operations`; an entry point names an operation, or a module whose operations are all meant.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from actors.operations import Operation
from hostler.refusals import invalid, listed, one_line
from hostres.errors import HostlerError
from hostres.suggestions import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "hostler.operations"

BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "files": "hostler.operations.files",
        "media": "hostler.operations.media",
        "speech": "hostler.operations.speech",
    }
)
"""First word of a kind → the module that has its operations."""

Name = tuple[str, int]


def parse_name(text: str) -> Name:
    """Return kind and version of `kind@version`.

    Raises:
        HostlerError: The text has another form (invalid-data).

    """
    kind, at, version = text.partition("@")
    if not at or not kind or not version.isdecimal():
        raise invalid(f"{text!r} does not name an operation", "write it as kind@version, for example media.probe@1")
    return kind, int(version)


def operations_of(names: Mapping[str, Any]) -> dict[Name, Operation]:
    """Return the operations among the names of a module."""
    return {(each.kind, each.version): each for each in names.values() if isinstance(each, Operation)}


def _entry_points() -> "Iterable[EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 (slow, and seldom needed)

    return entry_points(group=GROUP)


class Registry:
    """Operations by kind and version, found when they are asked for; safe to share between threads."""

    def __init__(
        self,
        *,
        built_in: Mapping[str, str] = BUILT_IN,
        installed: "Callable[[], Iterable[EntryPoint]] | None" = None,
    ) -> None:
        self._built_in = built_in
        self._installed = installed or _entry_points
        self._lock = threading.RLock()
        self._modules: dict[str, Mapping[Name, Operation]] = {}
        self._packaged: dict[Name, Operation] | None = None
        self._broken: list[str] = []

    def find(self, kind: str, version: int) -> Operation | None:
        """Return the operation of that kind and version, None where there is none."""
        with self._lock:
            found = self._of_module(kind.partition(".")[0]).get((kind, version))
            return found or self._of_packages().get((kind, version))

    def named(self, text: str) -> Operation:
        """Return the operation `kind@version`.

        Raises:
            HostlerError: There is none, or the text has another form (invalid-data, with the nearest names).

        """
        kind, version = parse_name(text)
        found = self.find(kind, version)
        if found is not None:
            return found
        names = [f"{each.kind}@{each.version}" for each in self.every()]
        todo = did_you_mean(text, names, f"use one of: {listed(names)}" if names else "install the package that has it")
        broken = f" (could not be loaded: {'; '.join(self._broken)})" if self._broken else ""
        raise invalid(f"there is no operation {text}{broken}", todo)

    def every(self) -> list[Operation]:
        """Return all operations, by kind and version; imports them all."""
        with self._lock:
            found = dict(self._of_packages())
            for prefix in self._built_in:
                found.update(self._of_module(prefix))
        return [found[name] for name in sorted(found)]

    def broken(self) -> list[str]:
        """Return, one line each, which installed packages could not give their operations, and why."""
        with self._lock:
            self._of_packages()
            return list(self._broken)

    def _of_module(self, prefix: str) -> Mapping[Name, Operation]:
        if prefix not in self._modules:
            module = self._built_in.get(prefix)
            self._modules[prefix] = operations_of(vars(import_module(module))) if module else {}
        return self._modules[prefix]

    def _of_packages(self) -> Mapping[Name, Operation]:
        if self._packaged is None:
            self._packaged = {}
            for entry in sorted(self._installed(), key=lambda each: (each.name, each.value)):
                for name, each in self._of_entry(entry).items():
                    if self._packaged.setdefault(name, each) is not each:
                        self._broken.append(f"{entry.value} brings {name[0]}@{name[1]} a second time")
        return self._packaged

    def _of_entry(self, entry: "EntryPoint") -> Mapping[Name, Operation]:
        try:
            loaded = entry.load()
            if isinstance(loaded, ModuleType):
                return operations_of(vars(loaded))
            if isinstance(loaded, Operation):
                return operations_of({entry.name: loaded})
        except HostlerError as error:
            self._broken.append(f"{entry.value}: {error.what}")
        except Exception as error:  # noqa: BLE001 - one broken package must not take the others away
            self._broken.append(one_line(f"{entry.value}: {type(error).__name__}: {error}"))
        else:
            self._broken.append(f"{entry.value} is neither an operation nor a module")
        return {}


@cache
def default_registry() -> Registry:
    """Return the registry of this process."""
    return Registry()
