"""Modules of a workflow, apart from all others of the process.

Two files of the same name, two versions of one file, or two folders that each have a `helper.py` never meet:
every bundle is a package of its own with a name that nobody else uses, and an import inside it looks there first.
`sys.path` stays as it is. What runs is the bundle's bytes, whatever lies on the disk by now.
"""

import builtins
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import Any, Final

from hostler.being_loaded import being_loaded
from hostler.bundles import Bundle
from hostler.refusals import OTHER_FOLDER, require_utf8
from store.values import Domain, digest

PREFIX: Final = "hostler_code_"
ENTRY: Final = "__workflow__"

_lock: Final = threading.RLock()
_spaces: Final[dict[str, "CodeSpace"]] = {}


class CodeSpace:
    """The modules of one bundle.

    Attributes:
        prefix: Name of the package that holds them.
        bundle: Where their code comes from.
        entry: The workflow's file in it.
        root: Where the code says that it lies.

    """

    def __init__(self, prefix: str, bundle: Bundle, *, entry: str, root: Path, shown: Path) -> None:
        self.prefix = prefix
        self.bundle = bundle
        self.entry: Final = entry
        self.root: Final = root
        self._shown = shown
        self._tops = {name.partition("/")[0].removesuffix(".py") for name in bundle.files}
        self._builtins = {**vars(builtins), "__import__": self._import}

    @property
    def filenames(self) -> frozenset[str]:
        """The names under which tracebacks know these modules."""
        return frozenset(str(self._shown / name) for name in self.bundle.files)

    def load(self) -> ModuleType:
        """Run the workflow's file, unless that was done, and return its module.

        Whatever the file raises comes out; then nothing of it stays loaded.
        """
        with _lock:
            try:
                with being_loaded():
                    return import_module(f"{self.prefix}.{self._entry_module()}")
            except BaseException:
                self.forget()
                raise

    def forget(self) -> None:
        """Take the modules out of the process."""
        for name in [each for each in tuple(sys.modules) if each.partition(".")[0] == self.prefix]:
            del sys.modules[name]
        _spaces.pop(self.prefix, None)

    def modules(self) -> list[ModuleType]:
        """Return the modules that are loaded, the workflow's own file first."""
        first = f"{self.prefix}.{self._entry_module()}"
        names = sorted(each for each in tuple(sys.modules) if each.startswith(f"{self.prefix}."))
        return [sys.modules[name] for name in sorted(names, key=lambda name: name != first)]

    def names(self) -> list[str]:
        """Return the names of all modules that the bundle has, loaded or not, besides the workflow's own file."""
        paths = [PurePosixPath(name).with_suffix("") for name in sorted(self.bundle.files) if name != self.entry]
        parts = [path.parts[:-1] if path.name == "__init__" else path.parts for path in paths]
        return [".".join(each) for each in parts if each and all(part.isidentifier() for part in each)]

    def locate(self, name: str) -> tuple[str | None, bool] | None:
        """Return the file of a module, None for a mere folder, and whether it is a package; None for no module."""
        if name == ENTRY:
            return self.entry, False
        path = name.replace(".", "/")
        if f"{path}/__init__.py" in self.bundle.files:
            return f"{path}/__init__.py", True
        if f"{path}.py" in self.bundle.files:
            return f"{path}.py", False
        inside = any(each.startswith(f"{path}/") for each in self.bundle.files)
        return (None, True) if inside else None

    def run(self, file: str, module: ModuleType) -> None:
        """Run a file in a module."""
        code = compile(self.bundle.files[file], str(self._shown / file), "exec", dont_inherit=True)
        module.__dict__["__builtins__"] = self._builtins
        exec(code, module.__dict__)  # noqa: S102 - running the author's code is what loading it means

    def path_of(self, file: str) -> str:
        """Return the `__file__` of a module."""
        return str(self.root / file)

    def _entry_module(self) -> str:
        """Return the entry's module name; one that no import statement can name has a name of ours."""
        path = PurePosixPath(self.entry)
        parts = [*path.parent.parts, path.stem]
        if parts[-1] == "__init__" and len(parts) > 1:
            parts.pop()
        return ".".join(parts) if all(part.isidentifier() for part in parts) else ENTRY

    def _import(
        self, name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] = (), level: int = 0
    ) -> ModuleType:
        """Import as the import statement does, but look into the bundle first."""
        top = name.partition(".")[0]
        if level or top not in self._tops:
            return builtins.__import__(name, globals, locals, fromlist, level)
        if fromlist:
            return builtins.__import__(f"{self.prefix}.{name}", globals, locals, fromlist, 0)
        import_module(f"{self.prefix}.{name}")
        return sys.modules[f"{self.prefix}.{top}"]


class _Importer:
    """Finder and loader of all code spaces."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG004
        prefix, _, inner = name.partition(".")
        space = _spaces.get(prefix)
        if space is None:
            return None
        located = space.locate(inner) if inner else (None, True)
        if located is None:
            return None
        file, package = located
        origin = space.path_of(file) if file else None
        spec = ModuleSpec(name, _Loader(space, file), origin=origin, is_package=package)
        spec.has_location = file is not None
        return spec


class _Loader(Loader):
    """Loader of one module."""

    def __init__(self, space: CodeSpace, file: str | None) -> None:
        self._space = space
        self._file = file

    def create_module(self, spec: ModuleSpec) -> None:
        """Let the interpreter make it."""

    def exec_module(self, module: ModuleType) -> None:
        """Run its file, if it has one."""
        if self._file is not None:
            self._space.run(self._file, module)

    def get_source(self, name: str) -> str | None:  # noqa: ARG002 - the protocol of the import system
        """Return its text, for tracebacks."""
        return None if self._file is None else decode_source(self._space.bundle.files[self._file])


def space_of(module: str) -> CodeSpace:
    """Return the code space of a module that was loaded in one, by the module's full name."""
    return _spaces[module.partition(".")[0]]


def entry_of(where: str, bundle: Bundle) -> str:
    """Return a workflow's own file in its bundle.

    Args:
        where: The path of its file, or the dotted name of its module.
        bundle: The code.

    """
    if where.endswith(".py"):
        return PurePosixPath(where).name
    module = where.replace(".", "/")
    return f"{module}.py" if f"{module}.py" in bundle.files else f"{module}/__init__.py"


def open_space(bundle: Bundle, *, entry: str, root: Path, shown: Path | None = None) -> CodeSpace:
    """Return the code space of a bundle; the same one for the same code at the same place.

    Args:
        bundle: The code.
        entry: The workflow's file in it.
        root: Where the code says that it lies: the folder of `__file__`.
        shown: Where tracebacks find its lines; the root by default.

    Raises:
        HostlerError: invalid-data: the name of the root is not UTF-8.

    """
    require_utf8(str(root), "the folder of the code", OTHER_FOLDER)
    identity = digest(Domain.RECORD, [bundle.sha256, entry, str(root)])
    prefix = PREFIX + identity[:24]
    with _lock:
        if not any(isinstance(each, type) and each is _Importer for each in sys.meta_path):
            sys.meta_path.append(_Importer)
        if prefix not in _spaces:
            _spaces[prefix] = CodeSpace(prefix, bundle, entry=entry, root=root, shown=shown or root)
        return _spaces[prefix]
