"""The area `store`: what it costs to make a step durable."""

from collections.abc import Callable
from typing import Final

from scripts.benchmarks import claiming, fresh, sharing, stepping, writers
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Row

PARTS: Final[tuple[Callable[[Effort], list[Row]], ...]] = (
    writers.rows,
    sharing.rows,
    claiming.rows,
    stepping.rows,
    fresh.rows,
)
