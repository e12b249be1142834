"""A share of `scripts/simulate`: every run ends, whatever happens, and nothing happens twice that must not."""

import pytest

from tests.simulation.world import World

SEEDS = 2000
BLOCKS = 8


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_run_ends_whatever_happens(block: int) -> None:
    for seed in range(block * SEEDS // BLOCKS, (block + 1) * SEEDS // BLOCKS):
        try:
            World(seed).play()
        except BaseException as error:
            error.add_note(f"play it again with: scripts/simulate --seed {seed} --schedules 1")
            raise
