"""The area `scheduler`: what the whole engine makes of runs."""

from collections.abc import Callable
from typing import Final

from scripts.benchmarks import approving, fairness, rates, restarting, scale
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.results import Row

PARTS: Final[tuple[Callable[[Effort], list[Row]], ...]] = (
    rates.rows,
    scale.rows,
    fairness.rows,
    restarting.rows,
    approving.rows,
)
