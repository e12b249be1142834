"""The logger of this package, which loads `logging` once there is something to say.

That import is a tenth of what `hostler exec` takes to start, and next to none of its processes has anything to say.
"""

import sys
from types import ModuleType
from typing import Any, Final

WARNING: Final = 30
"""What is shown where nobody has set logging up; see `logging.lastResort`."""


class DeferredLogger:
    """Stands for a `logging.Logger`, which is looked up when it is used.

    Attributes:
        name: Its name.

    """

    def __init__(self, name: str) -> None:
        self.name = name

    def log(self, level: int, message: str, *args: object, **details: Any) -> None:
        """Say it, if anybody could hear: who has not loaded `logging` has not asked for less than warnings."""
        if level >= WARNING or "logging" in sys.modules:
            self._logger().log(level, message, *args, **details)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._logger(), attribute)

    def _logger(self) -> Any:
        import logging  # noqa: PLC0415  see above

        return logging.getLogger(self.name)


LOG: Final = DeferredLogger("hostres")


def import_fasteners() -> None:
    """Load fasteners without `logging`, of which it wants two loggers at its import and nothing else.

    For a process of one thread: another one that imports `logging` meanwhile would get what stands for it.
    """
    if "logging" in sys.modules or "fasteners" in sys.modules:
        return
    stand_in: Any = ModuleType("logging")
    stand_in.getLogger = stand_in.Logger = DeferredLogger
    sys.modules["logging"] = stand_in
    try:
        import fasteners  # noqa: F401, PLC0415
    finally:
        del sys.modules["logging"]
