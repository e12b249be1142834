"""Which files are the code of a workflow: its own, and the modules that it imports from its own folder.

They are found by reading import statements, not by watching what gets imported: that gives the same answer in
every process, whatever else it has loaded, sees imports inside functions too, and runs nothing.
"""

import ast
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from hostler.bundles import MAX_BYTES
from hostler.own_names import OWN_NAMES
from hostler.refusals import invalid, one_line

NEVER: Final = OWN_NAMES | frozenset(sys.builtin_module_names)
"""Names that always mean this program or the interpreter, even where a folder has a file of that name."""
TRIES: Final = 3


def own_files(root: Path, entry: str, *, top: str | None = None) -> dict[str, bytes]:
    """Return the code of a workflow.

    Args:
        root: The folder that its imports are looked up in.
        entry: Its file, relative to the folder, with "/".
        top: Only modules of this top-level package count; by default every module of the folder does.

    Returns:
        Relative path with "/" → content.

    Raises:
        HostlerError: A file cannot be read or is not Python, or there is too much of it (invalid-data).

    """
    files: dict[str, bytes] = {}
    waiting = [entry, *_packages_above(root, entry, top)]
    size = 0
    while waiting:
        name = waiting.pop()
        if name in files:
            continue
        files[name] = content = _read(root / name)
        size += len(content)
        if size > MAX_BYTES:
            break  # packing says how much is allowed
        for dotted in _imports(content, root / name, name):
            first = dotted.partition(".")[0]
            if first in NEVER or (top is not None and first != top):
                continue
            waiting.extend(each for each in _files_of(root, dotted) if each not in files)
    return files


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror}", "check the path and its permissions") from error


def _packages_above(root: Path, entry: str, top: str | None) -> list[str]:
    """Return the `__init__` files of the packages that hold the entry."""
    if top is None:
        return []
    parents = [parent / "__init__.py" for parent in PurePosixPath(entry).parents if parent.name]
    return [str(each) for each in parents if (root / each).is_file()]


def _parsed(content: bytes, path: Path) -> ast.Module:
    """Parse a file; where threads build trees at once, CPython 3.11 may lose count of how deep each is (gh-106905)."""
    for _ in range(TRIES):
        with contextlib.suppress(SystemError):
            return ast.parse(content, str(path))
    return ast.parse(content, str(path))


def _imports(content: bytes, path: Path, name: str) -> Iterator[str]:
    try:
        tree = _parsed(content, path)
    except (SyntaxError, ValueError) as error:
        line = f" line {error.lineno}" if isinstance(error, SyntaxError) else ""
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise invalid(f"{path}{line}: {type(error).__name__}: {one_line(said)}", "mend that line") from error
    package = list(PurePosixPath(name).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            module = [*above, *(node.module.split(".") if node.module else [])]
            if module:
                yield ".".join(module)
            yield from (".".join([*module, alias.name]) for alias in node.names if alias.name != "*")


def _files_of(root: Path, dotted: str) -> Iterator[str]:
    """Yield the files that importing a dotted name runs, as far as they lie in the folder."""
    place = ""
    for part in dotted.split("."):
        here = f"{place}{part}"
        if (root / here / "__init__.py").is_file():
            yield f"{here}/__init__.py"
        elif (root / f"{here}.py").is_file():
            yield f"{here}.py"
            return
        elif not (root / here).is_dir():
            return
        place = f"{here}/"
