"""The area `admission`: all that waiting for the machine costs, and what is run under it."""

from collections.abc import Callable
from typing import Final

from scripts.benchmarks import commands, crowd, handover, idle, jobs, starting, storm, uncontended
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Row

PARTS: Final[tuple[Callable[[Effort], list[Row]], ...]] = (
    handover.rows,
    uncontended.rows,
    jobs.rows,
    commands.rows,
    starting.rows,
    idle.rows,
    crowd.rows,
    storm.rows,
)
