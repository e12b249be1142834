"""The area `exec`: what `hostler exec` and a supervised start cost."""

from collections.abc import Callable
from typing import Final

from scripts.benchmarks import commands, starting
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Row

PARTS: Final[tuple[Callable[[Effort], list[Row]], ...]] = (commands.rows, starting.rows)
