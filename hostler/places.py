"""Where the code of workflows lies, and how it is run from there."""

import inspect
import os
import sys
import sysconfig
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from hostler.being_loaded import being_loaded
from hostler.bundles import Bundle, pack
from hostler.code_space import PREFIX, CodeSpace, open_space, space_of
from hostler.faults import as_fault
from hostler.own_modules import own_files
from hostler.refusals import invalid
from hostler.workflows import Workflow
from store.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the code of a workflow lies.

    Attributes:
        root: The folder in which its imports are looked up.
        entry: Its file, relative to the root, with "/".
        top: Its top-level package, None for a file on its own.

    """

    root: Path
    entry: str
    top: str | None = None

    @property
    def shared(self) -> bool:
        """Whether the folder belongs to the interpreter, so that its other modules are not the workflow's own."""
        folders = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib", "platstdlib")}
        return self.top is None and str(self.root) in folders

    def bundle(self) -> Bundle:
        """Read the code.

        Raises:
            HostlerError: It cannot be read, is not Python, or is too much (invalid-data).

        """
        top = Path(self.entry).stem if self.shared else self.top
        return pack(own_files(self.root, self.entry, top=top))


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """What is known of where a workflow comes from.

    Attributes:
        source: `path`, `path:name` or `module:name`; None if it cannot be loaded again.
        bundle: Its code, None for a graph file or where it cannot be loaded again.

    """

    source: str | None = None
    bundle: Bundle | None = None


def run_space(space: CodeSpace, subject: str) -> ModuleType:
    """Load the code of a space.

    Raises:
        HostlerError: It raised something (its code or invalid-data, one line naming file and line).

    """
    try:
        return space.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        fault = as_fault(error, space.filenames, subject)
        raise type(fault)(fault.code, fault.what.replace(f"{space.prefix}.", ""), fault.todo) from error


def import_place(name: str, folder: Path) -> tuple[ModuleType, Place]:
    """Import a module by its dotted name, from the interpreter's path or else from a folder.

    Args:
        name: Its dotted name.
        folder: Where it is looked for if nothing of that name is installed.

    Returns:
        The module and where its code lies.

    Raises:
        HostlerError: It is not found or raised something (invalid-data).

    """
    try:
        with being_loaded():
            module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise as_fault(error, {str(error.path)}, f"module {name}") from error
        place = _place_in(folder, name)
        if place is None:
            raise invalid(f"there is no module {name}", "install it, or give its file") from error
        space = open_space(place.bundle(), entry=place.entry, root=place.root)
        return run_space(space, f"module {name}"), place
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise as_fault(error, _files_in(error, name), f"module {name}") from error
    return module, place_of(module, name)


def place_of(module: ModuleType, name: str) -> Place:
    """Return where the code of an imported module lies.

    Raises:
        HostlerError: It has no Python file (invalid-data).

    """
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        raise invalid(f"module {name} has no Python file", "give a module that is one file")
    path = Path(os.path.abspath(file))  # noqa: PTH100 - links stay as they are
    depth = name.count(".") + (path.name == "__init__.py")
    root = path.parents[depth]
    top = name.partition(".")[0] if depth else None
    return Place(root=root, entry=path.relative_to(root).as_posix(), top=top)


def _located_in(space: CodeSpace, inner: str, name: str) -> Located:
    """Return where a workflow comes from whose code was loaded in a space: an operation submits another workflow."""
    found = space.locate(inner)
    file = None if found is None else found[0]
    if file is None:
        return Located()
    where = inner if "/" in file else str(space.root / file)
    return Located(source=f"{where}:{name}", bundle=space.bundle)


def _place_in(folder: Path, name: str) -> Place | None:
    path = name.replace(".", "/")
    for entry in (f"{path}/__init__.py", f"{path}.py"):
        if (folder / entry).is_file():
            top = name.partition(".")[0] if "/" in entry else None
            return Place(root=folder.absolute(), entry=entry, top=top)
    return None


def _files_in(error: BaseException, name: str) -> set[str]:
    """Return the files on an error's way that belong to the package of a module."""
    found, trace = set(), error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] == name.partition(".")[0]:
            found.add(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return found | ({error.filename} if isinstance(error, SyntaxError) and error.filename else set())


def code_of(workflow: Workflow) -> Located:
    """Return where a workflow comes from, found by its function where it was not loaded by `load`.

    Raises:
        HostlerError: Its code cannot be read or is too much (invalid-data).

    """
    if workflow.source is not None or workflow.function is None:
        return Located(source=workflow.source, bundle=workflow.bundle)
    module = sys.modules.get(workflow.function.__module__)
    if module is None:
        return Located()
    names: Mapping[str, Any] = vars(module)
    name = next((each for each, value in names.items() if value is workflow), None)
    if name is not None and module.__name__.startswith(PREFIX):
        return _located_in(space_of(module.__name__), module.__name__.partition(".")[2], name)
    file = inspect.getsourcefile(workflow.function)
    if name is None or file is None or not file.endswith(".py") or not Path(file).is_file():
        return Located()
    spec = names.get("__spec__")
    dotted = spec.name if module.__name__ == "__main__" and spec is not None else module.__name__
    if "." in dotted:
        return Located(source=f"{dotted}:{name}", bundle=place_of(module, dotted).bundle())
    path = Path(os.path.abspath(file))  # noqa: PTH100 - links stay as they are
    return Located(source=f"{path}:{name}", bundle=Place(root=path.parent, entry=path.name).bundle())
