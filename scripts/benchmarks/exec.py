"""The area `exec`: what `hostler exec`, a supervised start and a worker process cost."""

from collections.abc import Callable
from typing import Final

from scripts.benchmarks import commands, starting, workers
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Row

PARTS: Final[tuple[Callable[[Effort], list[Row]], ...]] = (commands.rows, starting.rows, workers.rows)
