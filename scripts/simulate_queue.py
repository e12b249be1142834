"""A discrete-event comparison of who-goes-next rules on one random trace of jobs.

Jobs arrive, wait, hold what they claim for a while, and leave; nothing else takes time. The row *patient* is
decided by `hostres.queue.decide`, the very function that the machine uses, with the average turn kept as the
machine keeps it: a turn counts when it has ended. *Patient, with foresight* knows at its start how long each job
will take, and counts its turn then, which no machine can. The others are the usual rules, as plain functions, for
comparison.
"""

import argparse
import heapq
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hostres.patience import Patience
from hostres.queue import Demand, decide, fits
from hostres.turnaround import after_turn

CAPACITY: Final[Mapping[str, int]] = {"cpu": 8, "ffmpeg": 2, "whisper": 1}
LOADS: Final = (0.6, 0.8, 0.9)
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Jobs of one kind.

    Attributes:
        share: Of all jobs.
        claims: Resource → units.
        mean_s: Seconds that one takes on average.

    """

    share: float
    claims: Mapping[str, int]
    mean_s: float


KINDS: Final = (
    Kind(share=0.45, claims={"cpu": 1}, mean_s=2),
    Kind(share=0.20, claims={"cpu": 4, "ffmpeg": 1}, mean_s=6),
    Kind(share=0.12, claims={"cpu": 4, "whisper": 1}, mean_s=10),
    Kind(share=0.10, claims={"ffmpeg": 1}, mean_s=4),
    Kind(share=0.08, claims={"cpu": 2}, mean_s=4),
    Kind(share=0.05, claims={"cpu": 8, "ffmpeg": 2}, mean_s=8),
)
WHOLE: Final = KINDS[-1]
"""Jobs that want the whole machine: the first victims of a rule that lets others pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job.

    Attributes:
        number: Its place in the order of arrival.
        kind: Its kind.
        arrives_s: When it asks.
        takes_s: How long it holds what it claims.

    """

    number: int
    kind: Kind
    arrives_s: float
    takes_s: float

    @property
    def claims(self) -> Mapping[str, int]:
        """What it claims."""
        return self.kind.claims


class Moment:
    """The machine at one moment, as a rule sees it.

    Attributes:
        now_s: The time.
        holders: The jobs that hold.
        waiters: The jobs that wait, in order of arrival.
        turnaround_ns: Moving average of a turn, from asking to leaving.

    """

    def __init__(self, *, now_s: float, holders: Sequence[Job], waiters: Sequence[Job], turnaround_ns: int) -> None:
        self.now_s = now_s
        self.holders = holders
        self.waiters = waiters
        self.turnaround_ns = turnaround_ns

    def free(self) -> dict[str, int]:
        """Return what nobody holds."""
        free = dict(CAPACITY)
        for job in self.holders:
            _take(free, job)
        return free


Rule = Callable[[Moment], Sequence[int]]
"""Returns the numbers of the jobs that may go."""


def first_in_first_out(moment: Moment) -> Sequence[int]:
    """Let nobody pass who claims anything that an earlier waiter claims too."""
    free, claimed, go = moment.free(), set[str](), []
    for job in moment.waiters:
        if not claimed & job.claims.keys() and fits(job.claims, free):
            go.append(job.number)
            _take(free, job)
        else:
            claimed |= job.claims.keys()
            if len(claimed) == len(CAPACITY):
                break
    return go


def reserve_for_all(moment: Moment) -> Sequence[int]:
    """Let nobody pass but inside what all earlier waiters leave free."""
    free, go = moment.free(), []
    for job in moment.waiters:
        if fits(job.claims, free):
            go.append(job.number)
        _take(free, job)
        if max(free.values()) <= 0:
            break
    return go


def greedy(moment: Moment) -> Sequence[int]:
    """Let go whoever fits: slot files, semaphores."""
    free, go = moment.free(), []
    for job in moment.waiters:
        if fits(job.claims, free):
            go.append(job.number)
            _take(free, job)
    return go


def patient(moment: Moment) -> Sequence[int]:
    """Let the machine's own code decide."""
    return decide(
        [_demand(job) for job in moment.holders],
        [_demand(job) for job in moment.waiters],
        CAPACITY,
        patience_ns=Patience().after(moment.turnaround_ns),
        now_boot_ns=int(moment.now_s * SECOND_NS),
    ).go


FORESIGHT: Final = "patient, with foresight"
RULES: Final[Mapping[str, Rule]] = {
    "first in, first out": first_in_first_out,
    "reserve for all earlier": reserve_for_all,
    "greedy": greedy,
    "patient": patient,
    FORESIGHT: patient,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a rule did; seconds of waiting.

    Attributes:
        used: Part of the CPU units that were held on average.
        mean_s: Of all jobs.
        late_s: What 99 of 100 jobs did not exceed.
        whole_mean_s: Of those that want the whole machine.
        whole_max_s: The longest of those.

    """

    used: float
    mean_s: float
    late_s: float
    whole_mean_s: float
    whole_max_s: float

    @property
    def seconds(self) -> tuple[float, ...]:
        """All of them that are seconds."""
        return (self.mean_s, self.late_s, self.whole_mean_s, self.whole_max_s)


def trace(jobs: int, seed: int, load: float) -> list[Job]:
    """Return random jobs.

    Args:
        jobs: How many.
        seed: Of the random numbers.
        load: Part of the scarcest resource that they need on average.

    """
    rnd = random.Random(seed)
    work = {
        resource: sum(kind.share * kind.claims.get(resource, 0) * kind.mean_s for kind in KINDS) / units
        for resource, units in CAPACITY.items()
    }
    rate, now_s, made = load / max(work.values()), 0.0, []
    for number in range(jobs):
        now_s += rnd.expovariate(rate)
        (kind,) = rnd.choices(KINDS, [kind.share for kind in KINDS])
        made.append(Job(number=number, kind=kind, arrives_s=now_s, takes_s=rnd.expovariate(1 / kind.mean_s)))
    return made


def simulate(rule: Rule, jobs: Sequence[Job], *, foresight: bool = False) -> Outcome:
    """Return how a rule does with *jobs*.

    Args:
        rule: The rule.
        jobs: In order of arrival.
        foresight: A turn counts when the job starts, with the time that it will take.

    Raises:
        AssertionError: It let too many go.

    """
    to_come = list(reversed(jobs))
    waiters: list[Job] = []
    holders: dict[int, Job] = {}
    ends: list[tuple[float, int]] = []
    waited: list[tuple[Job, float]] = []
    turnaround_ns = 0
    now_s = busy = 0.0
    while to_come or ends:
        next_s = min([*(job.arrives_s for job in to_come[-1:]), *(at for at, _ in ends[:1])])
        busy += (next_s - now_s) * sum(job.claims.get("cpu", 0) for job in holders.values())
        now_s = next_s
        while ends and ends[0][0] <= now_s:
            job = holders.pop(heapq.heappop(ends)[1])
            if not foresight:
                turnaround_ns = after_turn(turnaround_ns, int((now_s - job.arrives_s) * SECOND_NS))
        while to_come and to_come[-1].arrives_s <= now_s:
            waiters.append(to_come.pop())
        moment = Moment(now_s=now_s, holders=tuple(holders.values()), waiters=waiters, turnaround_ns=turnaround_ns)
        go = set(rule(moment))
        for job in waiters:
            if job.number in go:
                holders[job.number] = job
                heapq.heappush(ends, (now_s + job.takes_s, job.number))
                waited.append((job, now_s - job.arrives_s))
                if foresight:
                    turnaround_ns = after_turn(turnaround_ns, int((now_s - job.arrives_s + job.takes_s) * SECOND_NS))
        waiters = [job for job in waiters if job.number not in go]
        after = Moment(now_s=now_s, holders=tuple(holders.values()), waiters=(), turnaround_ns=0)
        assert min(after.free().values()) >= 0, "more is held than there is"
    assert not waiters, "somebody waits on an idle machine"
    every = sorted(wait_s for _, wait_s in waited)
    whole = [wait_s for job, wait_s in waited if job.kind is WHOLE] or [0.0]
    return Outcome(
        used=busy / (now_s * CAPACITY["cpu"]),
        mean_s=statistics.mean(every),
        late_s=every[int(len(every) * 0.99)],
        whole_mean_s=statistics.mean(whole),
        whole_max_s=max(whole),
    )


def table(jobs: int, seed: int, traces: int) -> Iterator[str]:
    """Give the comparison, line by line.

    Args:
        jobs: How many in each trace.
        seed: Of the first trace.
        traces: How many traces, each with its own seed; of more than one mean and standard deviation are given.

    """
    seeds = range(seed, seed + traces)
    yield f"{jobs} jobs, seed {seed}{f' to {seeds[-1]}' if traces > 1 else ''}; seconds of waiting"
    yield ""
    yield "| load | rule | cpu used | mean | 99 % | whole machine: mean | longest |"
    yield "| ---: | --- | ---: | ---: | ---: | ---: | ---: |"
    for load in LOADS:
        made = [trace(jobs, each, load) for each in seeds]
        for name, rule in RULES.items():
            found = [simulate(rule, one, foresight=name == FORESIGHT) for one in made]
            used = statistics.mean(one.used for one in found)
            numbers = [_spread(column) for column in zip(*(one.seconds for one in found), strict=True)]
            yield f"| {load} | {name} | {used:.0%} | {' | '.join(numbers)} |"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="scripts/simulate-queue", description="Compare who-goes-next rules.")
    parser.add_argument("jobs", nargs="?", type=int, default=5000, metavar="JOBS", help="how many (default: 5000)")
    parser.add_argument("seed", nargs="?", type=int, default=1, metavar="SEED", help="of the random trace (default: 1)")
    parser.add_argument("--traces", type=int, default=1, metavar="N", help="how many traces, SEED and on (default: 1)")
    args = parser.parse_args()
    if args.jobs < 1 or args.traces < 1:
        parser.error("at least one job and one trace")
    for line in table(args.jobs, args.seed, args.traces):
        print(line, flush=True)
    print("\nsimulate-queue: every rule kept to the capacity and served every job")
    return 0


def _spread(numbers: Sequence[float]) -> str:
    if len(numbers) == 1:
        return f"{numbers[0]:.0f}"
    return f"{statistics.mean(numbers):.0f} ± {statistics.stdev(numbers):.0f}"


def _demand(job: Job) -> Demand:
    return Demand(number=job.number, units=job.claims, asked_boot_ns=int(job.arrives_s * SECOND_NS))


def _take(free: dict[str, int], job: Job) -> None:
    for resource, units in job.claims.items():
        free[resource] -= units


if __name__ == "__main__":
    sys.exit(main())
