"""A share of `scripts/simulate`: every run ends, whatever happens, and nothing happens twice that must not."""

from pathlib import Path

import pytest

from store.policy import Resume
from store.proving import numbers, prove
from tests.simulation.world import World
from tests.store.stores import DiskStore
from tests.store.support import CLOCK

SEEDS = 2000
BLOCKS = 20


@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_run_ends_whatever_happens(block: int) -> None:
    for seed in range(block * SEEDS // BLOCKS, (block + 1) * SEEDS // BLOCKS):
        try:
            World(seed).play()
        except BaseException as error:
            error.add_note(f"play it again with: scripts/simulate --seed {seed} --schedules 1")
            raise


@pytest.mark.parametrize("seed", [483, 2499])
def test_a_host_that_is_killed_at_any_step_leaves_nothing_undone_and_nothing_twice(seed: int) -> None:
    """Not by chance only: the host dies once at each step of a run with every class of resume in it."""
    world = World(seed)
    assert {node.policy.resume for node in world.planned.values()} == set(Resume)
    world.play()
    for step in range(1, world.steps):
        try:
            World(seed, kill_at=step).play()
        except BaseException as error:
            error.add_note(f"play it again with: scripts/simulate --seed {seed} --schedules 1 --kill-at-each-step")
            raise


class ProvedWorld(World):
    """A world whose run is proved from what is stored of it, each time that a host has taken it over."""

    def take_over(self) -> None:
        super().take_over()
        self.prove()

    def prove(self) -> None:
        assert isinstance(self.model.store, DiskStore)
        home = self.model.store.home
        verdict = prove(home, *numbers(home))
        # its compute nodes are simulated, so that there is no code which the plan could name
        assert [problem for problem in verdict.problems if problem.table != "graph_plans"] == []


@pytest.mark.parametrize("seed", range(4))
def test_the_real_store_takes_every_transaction_and_ends_as_the_model_does(tmp_path: Path, seed: int) -> None:
    """The model that the other seeds are played on refuses and keeps what the real store does; its log proves it."""
    store = DiskStore(tmp_path / "home", CLOCK)
    try:
        on_disk, in_memory = ProvedWorld(seed, store), World(seed)
        for world in (on_disk, in_memory):
            world.play()
        for field in ("nodes", "outputs", "status", "summary", "requests", "grants"):
            real, said = getattr(on_disk.model.seen, field), getattr(in_memory.model.seen, field)
            if field == "requests":
                real, said = (
                    [one.model_copy(update={"at": "2026-01-01T00:00:00.000Z"}) for one in row] for row in (real, said)
                )
            assert real == said, field
        on_disk.prove()
    finally:
        store.close()
