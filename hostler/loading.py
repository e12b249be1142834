"""From the text a person gives, to a workflow: a Python file, an importable module, or a graph file."""

import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from hostler.bundles import Bundle
from hostler.code_space import open_space
from hostler.places import Place, import_place, run_space
from hostler.refusals import invalid, listed, require_utf8
from hostler.run_code import code_for_run
from hostler.workflows import Workflow
from hostres import arguments
from hostres.suggestions import did_you_mean

__all__ = ["code_for_run", "load", "workflows_in"]

GRAPH_SUFFIXES: Final = (".json", ".toml", ".yaml", ".yml")
PYTHON_SUFFIX: Final = ".py"
PYTHON_FILE: Final = re.compile(r"(?P<file>.+\.py)(?::(?P<name>\w+))?")
MODULE: Final = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>\w+)")
FORMS: Final = "give FILE.py, FILE.py:NAME, PACKAGE.MODULE:NAME, or a graph file (.json, .toml, .yaml)"


def load(text: str, *, folder: Path | str) -> Workflow:
    """Load a workflow.

    Args:
        text: `file.py`, `file.py:name`, `package.module:name`, or a graph file.
        folder: What a relative path is relative to.

    Returns:
        The workflow, which knows where it came from.

    Raises:
        HostlerError: It is missing, broken or ambiguous (invalid-data, one line naming file and line).

    """
    given: Any = text
    if not isinstance(given, str):
        raise invalid(f"{given!r} names no workflow", FORMS)
    require_utf8(text, "the workflow")
    folder = arguments.folder(folder, name="folder") or Path()
    python = PYTHON_FILE.fullmatch(text)
    if python is not None:
        path = _existing(folder, python["file"])
        place = Place(root=path.parent, entry=path.name)
        bundle = place.bundle()
        space = open_space(bundle, entry=place.entry, root=place.root)
        return _chosen(run_space(space, str(path)), python["name"], text, str(path), bundle)
    if text.endswith(GRAPH_SUFFIXES):
        from hostler.graph_files import load_graph  # noqa: PLC0415 - its libraries only where it is one

        return load_graph(_existing(folder, text))
    module = MODULE.fullmatch(text)
    if module is not None:
        loaded, place = import_place(module["module"], folder)
        return _chosen(loaded, module["name"], text, module["module"], place.bundle())
    if (folder / text).is_file():
        raise invalid(f"{text} is neither a Python file nor a graph file", FORMS)
    missing = folder / text
    raise invalid(f"{text!r} names no workflow", did_you_mean(missing.name, _beside(missing), FORMS))


def _existing(folder: Path, text: str) -> Path:
    path = Path(os.path.abspath(folder / text))  # noqa: PTH100 - links stay as they are
    if path.is_dir():
        raise invalid(f"{text} is a folder", FORMS)
    if not path.is_file():
        raise invalid(f"there is no file {path}", did_you_mean(path.name, _beside(path), "check the path"))
    return path


def _beside(path: Path) -> list[str]:
    """Return the names of the workflow files in the folder of one that is not there."""
    try:
        return sorted(each.name for each in path.parent.iterdir() if each.suffix in (PYTHON_SUFFIX, *GRAPH_SUFFIXES))
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return []


def workflows_in(module: ModuleType) -> dict[str, Workflow]:
    """Return the workflows that a module defines, by the names it gives them."""
    found = {name: each for name, each in vars(module).items() if isinstance(each, Workflow)}
    own = {name: each for name, each in found.items() if _module_of(each) == module.__name__}
    return own or found


def _module_of(workflow: Workflow) -> str | None:
    return getattr(workflow.function, "__module__", None)


def _chosen(module: ModuleType, name: str | None, text: str, source: str, bundle: Bundle) -> Workflow:
    shown = text if name is None else text[: -len(name) - 1]
    found = workflows_in(module)
    if name is None and len(found) == 1:
        name = next(iter(found))
    if name is None:
        if not found:
            raise invalid(f"{shown} has no workflow", "decorate its function with @workflow")
        raise invalid(f"{shown} has several workflows", f"choose: {listed([f'{shown}:{each}' for each in found])}")
    chosen = vars(module).get(name)
    if not isinstance(chosen, Workflow):
        has = listed([f"{shown}:{each}" for each in found])
        todo = did_you_mean(name, found, f"it has: {has}") if found else "decorate it with @workflow"
        raise invalid(f"{shown} has no workflow {name}", todo)
    return chosen.coming_from(f"{source}:{name}", bundle)
