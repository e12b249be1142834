"""The names of this program's packages, and whose module stands in the place of one of them.

Nothing is imported here but what Python has loaded: it is asked when an import of ours has failed.
"""

import os
import sys

TYPE_CHECKING = False  # as in the package

if TYPE_CHECKING:
    from typing import Final

OWN_NAMES: "Final" = frozenset({"actors", "hostler", "hostres", "store"})
"""They always mean this program, also in a folder that has a file of such a name."""
RENAME: "Final" = "actors, hostler, hostres and store are Hostler's own names; give that module another one"


def stranger() -> str | None:
    """Return the file of a module that was found in the place of one of our packages; None if all are ours."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - without pathlib
    for name in sorted(OWN_NAMES):
        file: str | None = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and os.path.dirname(os.path.abspath(file)) != os.path.join(home, name):  # noqa: PTH100, PTH118, PTH120
            return os.path.abspath(file)  # noqa: PTH100
    return None
