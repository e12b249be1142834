"""The names of this program's packages, and whose module stands in the place of one of them.

Nothing is imported here but what Python has loaded: it is asked when an import of ours has failed.
"""

import os
import sys

TYPE_CHECKING = False  # as in the package

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

OWN_NAMES: "Final" = frozenset({"actors", "hostler", "hostres", "store"})
"""They always mean this program, also in a folder that has a file of such a name."""
RENAME: "Final" = "actors, hostler, hostres and store are Hostler's own names; give that module another one"
_HOME: "Final" = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - without pathlib


def stranger() -> str | None:
    """Return the file of a module that was found in the place of one of our packages; None if all are ours."""
    for name in sorted(OWN_NAMES):
        file: str | None = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and os.path.dirname(os.path.abspath(file)) != os.path.join(_HOME, name):  # noqa: PTH100, PTH118, PTH120
            return os.path.abspath(file)  # noqa: PTH100
    return None


def namesake(name: str, files: "Iterable[str]") -> str | None:
    """Return a module of somebody else's, beside one of *files*, that has the name of one of our packages.

    Args:
        name: The module that could not be imported, or from which something could not be.
        files: The author's files; of a package, what lies beside the whole of it.

    """
    top = name.partition(".")[0]
    if top not in OWN_NAMES:
        return None
    for folder in sorted({_searched(file) for file in files}):
        package = os.path.join(folder, top)  # noqa: PTH118 - without pathlib
        if os.path.isfile(f"{package}.py"):  # noqa: PTH113
            return f"{package}.py"
        if package != os.path.join(_HOME, top) and _has_modules(package):  # noqa: PTH118
            return package
    return None


def _searched(file: str) -> str:
    """Return the folder in which Python looks for what a file imports."""
    folder = os.path.dirname(os.path.abspath(file))  # noqa: PTH100, PTH120 - without pathlib
    while os.path.isfile(os.path.join(folder, "__init__.py")):  # noqa: PTH113, PTH118
        folder = os.path.dirname(folder)  # noqa: PTH120
    return folder


def _has_modules(folder: str) -> bool:
    try:
        return any(name.endswith(".py") for name in os.listdir(folder))  # noqa: PTH208 - without pathlib
    except OSError:
        return False
