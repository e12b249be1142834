"""How much a run measures: enough to judge, enough to look, or just enough to see that it works."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Numbers of rounds and of repetitions in a round.

    Attributes:
        rounds: Interleaved rounds; each measures every contender once.
        warm: Hand-overs in a round with short holds.
        cold: Hand-overs in a round with long holds.
        cold_hold_s: A long hold, in seconds.
        many: How many wait where many wait.
        kills: Holders killed in a round.
        pairs: Acquire and release, nobody waiting, in a round.
        jobs: Programs run through two slots in a round, by running workers.
        commands: Likewise, by commands of their own.
        starts: Supervised starts in a round.
        idle_s: Seconds in which idle waiters are watched, in each second round; before that they settle.
        crowd: How many wait in the largest queue.
        crowd_releases: Hand-overs watched there.
        storm_s: Seconds of a storm of small claims.
        storms: Storms of each kind.
        batches: Batches of commits in a round.
        shared_s: Seconds in which processes write one store, in a round.
        large: Nodes of a large run.
        listed: Runs in the store that is listed.
        chain: Nodes of a run whose commits are counted, or that races its peers.
        runs: Runs in one host at once.
        approvals: Approvals given one after the other.

    """

    rounds: int
    warm: int
    cold: int
    cold_hold_s: float
    many: int
    kills: int
    pairs: int
    jobs: int
    commands: int
    starts: int
    idle_s: float
    crowd: int
    crowd_releases: int
    storm_s: float
    storms: int
    batches: int
    shared_s: float
    large: int
    listed: int
    chain: int
    runs: int
    approvals: int


FULL: Final = Effort(
    rounds=4,
    warm=200,
    cold=10,
    cold_hold_s=0.3,
    many=16,
    kills=8,
    pairs=400,
    jobs=200,
    commands=50,
    starts=100,
    idle_s=6.0,
    crowd=500,
    crowd_releases=30,
    storm_s=7.0,
    storms=2,
    batches=15,
    shared_s=1.0,
    large=10_000,
    listed=10_000,
    chain=300,
    runs=64,
    approvals=40,
)

QUICK: Final = Effort(
    rounds=1,
    warm=80,
    cold=3,
    cold_hold_s=0.3,
    many=16,
    kills=5,
    pairs=400,
    jobs=80,
    commands=20,
    starts=60,
    idle_s=2.0,
    crowd=100,
    crowd_releases=10,
    storm_s=4.0,
    storms=1,
    batches=20,
    shared_s=1.0,
    large=3_000,
    listed=1_000,
    chain=100,
    runs=64,
    approvals=15,
)

SMOKE: Final = Effort(
    rounds=1,
    warm=6,
    cold=2,
    cold_hold_s=0.02,
    many=4,
    kills=1,
    pairs=20,
    jobs=8,
    commands=4,
    starts=4,
    idle_s=0.1,
    crowd=6,
    crowd_releases=3,
    storm_s=0.3,
    storms=1,
    batches=1,
    shared_s=0.1,
    large=40,
    listed=5,
    chain=4,
    runs=3,
    approvals=2,
)

EFFORTS: Final = {"full": FULL, "quick": QUICK, "smoke": SMOKE}
