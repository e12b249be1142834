"""A share of `scripts/prove-budgets`: what a paid service has charged is what the run has recorded, through kills."""

from pathlib import Path

from tests.crash.paid_calls import torment


def test_a_paid_service_and_the_record_of_the_run_agree_through_kills(tmp_path: Path) -> None:
    """100 claimants in three processes on a budget for a few: overshoot 0, nothing lost, nothing charged twice."""
    torment(tmp_path, kills=2, seed=1)
