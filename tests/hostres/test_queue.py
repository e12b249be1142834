"""The decision who goes next, whatever the tickets are."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from hostres.queue import KEY, Demand, decide, explain, fits

CAPACITY = {"cpu": 4, "ffmpeg": 2, "whisper": 1}
CLAIMS = st.dictionaries(st.sampled_from(sorted(CAPACITY)), st.integers(1, 4), max_size=3).filter(
    lambda claims: all(units <= CAPACITY[name] for name, units in claims.items())
)
KEYS = st.sets(st.sampled_from([f"{KEY}a", f"{KEY}b"]), max_size=2)
DEMANDS = st.lists(st.builds(lambda claims, keys: {**claims, **dict.fromkeys(keys, 1)}, CLAIMS, KEYS), max_size=12)


def admitted(units: list[Mapping[str, int]]) -> tuple[list[Demand], list[Demand]]:
    """Holders as some earlier decision left them, and the rest as waiters."""
    demands = [Demand(number=number, units=each) for number, each in enumerate(units, 1)]
    cut = len(demands) // 2
    go = decide([], demands[:cut], CAPACITY).go
    holders = [demand for demand in demands if demand.number in go]
    return holders, [demand for demand in demands if demand not in holders]


def used(demands: list[Demand]) -> dict[str, int]:
    total: dict[str, int] = {}
    for demand in demands:
        for name, units in demand.units.items():
            total[name] = total.get(name, 0) + units
    return total


@given(DEMANDS)
def test_whoever_goes_the_capacity_is_never_exceeded(units: list[Mapping[str, int]]) -> None:
    holders, waiters = admitted(units)
    go = decide(holders, waiters, CAPACITY).go
    total = used([*holders, *[waiter for waiter in waiters if waiter.number in go]])
    assert all(taken <= CAPACITY.get(name, 1) for name, taken in total.items())


@given(DEMANDS)
def test_nobody_waits_who_fits_beside_all_that_hold_and_go(units: list[Mapping[str, int]]) -> None:
    holders, waiters = admitted(units)
    decision = decide(holders, waiters, CAPACITY)
    for waiter in waiters:
        if waiter.number not in decision.go:
            assert not fits(waiter.units, decision.free)


@given(DEMANDS)
def test_of_two_equal_claims_the_older_goes_first(units: list[Mapping[str, int]]) -> None:
    holders, waiters = admitted(units)
    go = decide(holders, waiters, CAPACITY).go
    for younger in waiters:
        for older in waiters:
            if older.number < younger.number and older.units == younger.units and younger.number in go:
                assert older.number in go


@given(DEMANDS)
def test_an_explanation_is_given_exactly_to_those_that_do_not_go(units: list[Mapping[str, int]]) -> None:
    holders, waiters = admitted(units)
    go = decide(holders, waiters, CAPACITY).go
    for wait in explain(holders, waiters, CAPACITY, now_boot_ns=7):
        assert bool(wait.short) == (wait.number not in go)
        assert all(short.held_by and short.free < short.wanted for short in wait.short)
        assert wait.waited_ns == 7


def test_an_older_waiter_that_does_not_fit_reserves_nothing() -> None:
    holder = Demand(number=1, units={"cpu": 1})
    big, small = Demand(number=2, units={"cpu": 4}), Demand(number=3, units={"cpu": 3})
    assert decide([holder], [big, small], CAPACITY).go == (3,)


def test_an_older_waiter_that_fits_has_its_claims_kept() -> None:
    first, second = Demand(number=1, units={"whisper": 1}), Demand(number=2, units={"whisper": 1})
    assert decide([], [first, second], CAPACITY).go == (1,)


def test_a_resource_without_capacity_admits_nobody() -> None:
    assert decide([], [Demand(number=1, units={"gpu": 1})], CAPACITY).go == ()


def test_an_exclusive_key_has_one_holder() -> None:
    one, two = Demand(number=1, units={f"{KEY}film": 1}), Demand(number=2, units={f"{KEY}film": 1})
    assert decide([one], [two], CAPACITY).go == ()
    assert decide([], [one, two], CAPACITY).go == (1,)


def test_a_lowered_capacity_admits_nobody_until_holders_leave() -> None:
    holders = [Demand(number=1, units={"cpu": 4})]
    waiter = Demand(number=2, units={"cpu": 1})
    assert decide(holders, [waiter], {"cpu": 2}).go == ()
    (wait,) = explain(holders, [waiter], {"cpu": 2}, now_boot_ns=0)
    assert wait.short[0].free == 0
