"""The decision who goes next, whatever the tickets are."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostres.errors import Code, HostlerError
from hostres.patience import Patience
from hostres.queue import KEY, Decision, Demand, decide, explain, fits, succeeds
from hostres.settings import machine_settings

CAPACITY = {"cpu": 4, "ffmpeg": 2, "whisper": 1}
CLAIMS = st.dictionaries(st.sampled_from(sorted(CAPACITY)), st.integers(1, 4), max_size=3).filter(
    lambda claims: all(units <= CAPACITY[name] for name, units in claims.items())
)
KEYS = st.sets(st.sampled_from([f"{KEY}a", f"{KEY}b"]), max_size=2)
DEMANDS: st.SearchStrategy[list[Mapping[str, int]]] = st.lists(
    st.builds(lambda claims, keys: {**claims, **dict.fromkeys(keys, 1)}, CLAIMS, KEYS), max_size=12
)


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


# -- the patient one ---------------------------------------------------------------------------------------------------

PATIENCE = 100
"""Nanoseconds, and so are all times here."""


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[Demand], list[Demand]]:
    """Holders, and waiters of all ages and priorities, some of which doze."""
    holders, waiters = admitted(draw(DEMANDS))
    ages = sorted(draw(st.lists(st.integers(0, 2 * PATIENCE), min_size=len(waiters), max_size=len(waiters))))
    priorities = st.just(0) | st.integers(-10, 10)
    return holders, [
        waiter._replace(
            asked_boot_ns=asked, priority=draw(priorities), dozing=draw(st.sampled_from([False] * 5 + [True]))
        )
        for waiter, asked in zip(waiters, ages, strict=True)
    ]


def decided(holders: Sequence[Demand], waiters: Sequence[Demand], now: int = 2 * PATIENCE) -> Decision:
    return decide(holders, waiters, CAPACITY, patience_ns=PATIENCE, now_boot_ns=now)


def of(waiters: Sequence[Demand], numbers: Sequence[int]) -> list[Demand]:
    return [waiter for waiter in waiters if waiter.number in numbers]


@given(queues())
def test_whoever_is_patient_the_capacity_is_never_exceeded_and_who_dozes_does_not_go(
    queue: tuple[list[Demand], list[Demand]],
) -> None:
    holders, waiters = queue
    decision = decided(holders, waiters)
    go = of(waiters, decision.go)
    assert not any(waiter.dozing for waiter in go)
    total = used([*holders, *go])
    assert all(taken <= CAPACITY.get(name, 1) for name, taken in total.items())
    for name, units in decision.free.items():
        assert units == CAPACITY.get(name, 1) - total.get(name, 0)


@given(queues())
def test_only_the_oldest_that_is_awake_has_anything_kept_and_only_once_it_is_patient(
    queue: tuple[list[Demand], list[Demand]],
) -> None:
    holders, waiters = queue
    decision = decided(holders, waiters)
    staying = [waiter for waiter in waiters if not waiter.dozing and waiter.number not in decision.go]
    if decision.reserved_for is None:
        assert not decision.reserved
        assert not staying or 2 * PATIENCE - staying[0].asked_boot_ns <= PATIENCE
    else:
        assert decision.reserved_for == staying[0].number
        assert 2 * PATIENCE - staying[0].asked_boot_ns > PATIENCE
        assert set(decision.reserved) <= set(staying[0].units)
        assert all(0 < units <= decision.free.get(name, 1) for name, units in decision.reserved.items())


@given(queues())
def test_whoever_waits_although_it_fits_would_take_what_is_kept(queue: tuple[list[Demand], list[Demand]]) -> None:
    """Work-conserving: below patience nobody who fits waits, beyond it only for what the patient one needs."""
    holders, waiters = queue
    decision = decided(holders, waiters)
    for waiter in waiters:
        if waiter.number not in decision.go and not waiter.dozing and fits(waiter.units, decision.free):
            assert decision.reserved_for is not None
            (head,) = of(waiters, [decision.reserved_for])
            beside = [*holders, *of(waiters, decision.go)]
            stay = [other for other in beside if fits(used([head, other]), CAPACITY)]
            together = used([head, waiter, *stay])
            assert any(together[name] > CAPACITY.get(name, 1) for name in waiter.units.keys() & head.units.keys())


@given(queues())
def test_of_two_equal_claims_of_equal_priority_the_older_goes_first_whoever_is_patient(
    queue: tuple[list[Demand], list[Demand]],
) -> None:
    holders, waiters = queue
    go = decided(holders, waiters).go
    awake = [waiter for waiter in waiters if not waiter.dozing]
    for younger in of(awake, go):
        for older in awake:
            same = (older.units, older.priority) == (younger.units, younger.priority)
            assert not (same and older.number < younger.number and older.number not in go)


@given(queues())
def test_time_that_passes_lets_nobody_go_so_that_nobody_need_be_told(
    queue: tuple[list[Demand], list[Demand]],
) -> None:
    holders, waiters = queue
    now = max((waiter.asked_boot_ns for waiter in waiters), default=0)
    go = decided(holders, waiters, now).go
    holders = [*holders, *of(waiters, go)]
    waiters = [waiter for waiter in waiters if waiter.number not in go]
    for later in range(now, now + 2 * PATIENCE, 7):
        assert decided(holders, waiters, later).go == ()


@given(queues())
def test_nobody_starves_however_many_come_after_it(queue: tuple[list[Demand], list[Demand]]) -> None:
    """Once the oldest is patient, it waits for those that held then and for nobody who came later."""
    holders, waiters = queue
    first = waiters = [waiter._replace(dozing=False) for waiter in waiters]
    held: dict[int, set[int]] = {}
    now = 2 * PATIENCE
    for number in range(1000, 1600):
        decision = decided(holders, waiters, now)
        holders = [*holders, *of(waiters, decision.go)]
        waiters = [waiter for waiter in waiters if waiter.number not in decision.go]
        if decision.reserved_for is not None:
            at_first = held.setdefault(decision.reserved_for, {holder.number for holder in holders})
            assert at_first & {holder.number for holder in holders}
        if not {waiter.number for waiter in first} & {waiter.number for waiter in waiters}:
            return
        now += PATIENCE // 10
        holders = holders[1:]  # in each round one ends and one comes, small and in a hurry
        units = {sorted(CAPACITY)[number % len(CAPACITY)]: 1}
        waiters = [*waiters, Demand(number=number, units=units, asked_boot_ns=now, priority=10)]
    raise AssertionError(f"{waiters[0]} starved")


BIG, SMALL = {"cpu": 4, "whisper": 1}, {"cpu": 1}


def test_a_patient_one_starts_when_those_that_held_have_ended_although_others_keep_coming() -> None:
    holders = [Demand(number=1, units={"cpu": 2}), Demand(number=2, units={"cpu": 1})]
    waiters = [Demand(number=3, units=BIG), Demand(number=4, units=SMALL, asked_boot_ns=50)]
    assert decided(holders, waiters, now=PATIENCE).go == (4,)
    later = decided(holders, waiters, now=PATIENCE + 1)
    assert (later.go, later.reserved, later.reserved_for) == ((), {"cpu": 1, "whisper": 1}, 3)
    assert decided(holders[1:], waiters, now=PATIENCE + 1).go == ()
    assert decided([], waiters, now=PATIENCE + 1).go == (3,)


def test_what_a_patient_one_cannot_use_yet_is_used_by_those_that_can_stay_beside_it() -> None:
    """It waits for whisper and wants two cpus: the other two, and all ffmpegs, need not idle for it."""
    holders = [Demand(number=1, units={"whisper": 1, "cpu": 1})]
    waiters = [
        Demand(number=2, units={"whisper": 1, "cpu": 2}),
        Demand(number=3, units={"cpu": 1}),
        Demand(number=4, units={"ffmpeg": 1}),
        Demand(number=5, units={"cpu": 2}),
        Demand(number=6, units={"cpu": 1, "ffmpeg": 1}),
        Demand(number=7, units={"cpu": 1}),
    ]
    decision = decided(holders, waiters)
    assert decision.go == (3, 4, 6)
    assert decision.reserved == {"cpu": 1}


def test_a_holder_that_must_leave_first_is_not_counted_beside_the_patient_one() -> None:
    holders = [Demand(number=1, units={"whisper": 1, "cpu": 2})]
    waiters = [Demand(number=2, units={"whisper": 1, "cpu": 3}), Demand(number=3, units={"cpu": 1})]
    assert decided(holders, waiters).go == (3,)


def test_an_exclusive_key_is_kept_for_the_patient_one() -> None:
    film = f"{KEY}film"
    head = Demand(number=2, units={film: 1, "whisper": 1})
    other, elsewhere = Demand(number=3, units={film: 1}), Demand(number=4, units={f"{KEY}other": 1})
    decision = decided([Demand(number=1, units={"whisper": 1})], [head, other, elsewhere])
    assert decision.go == (4,)
    assert decision.reserved == {film: 1}
    assert decide([Demand(number=1, units={"whisper": 1})], [head, other, elsewhere], CAPACITY).go == (3, 4)


def test_priorities_shift_the_order_until_the_oldest_is_patient() -> None:
    waiters = [
        Demand(number=1, units=SMALL, priority=-10),
        Demand(number=2, units={"cpu": 2}, asked_boot_ns=1),
        Demand(number=3, units={"cpu": 4}, asked_boot_ns=1, priority=10),
        Demand(number=4, units=SMALL, asked_boot_ns=1, priority=5),
    ]
    assert decided([], waiters, now=PATIENCE).go == (3,)
    assert decided([], waiters[:2], now=PATIENCE).go == (2, 1)
    assert decided([], waiters, now=PATIENCE + 1).go == (1, 4, 2)


def test_who_dozes_is_passed_over_and_has_nothing_kept() -> None:
    asleep = Demand(number=2, units=BIG, dozing=True)
    decision = decided([Demand(number=1, units=SMALL)], [asleep, Demand(number=3, units={"cpu": 3})])
    assert (decision.go, decision.reserved_for) == ((3,), None)
    assert decided([], [asleep, Demand(number=3, units=SMALL)]).go == (3,)


def test_a_claim_that_can_never_fit_any_more_keeps_nothing_from_others() -> None:
    waiters = [Demand(number=1, units={"cpu": 9}), Demand(number=2, units={"cpu": 4}), Demand(number=3, units=SMALL)]
    decision = decided([Demand(number=9, units=SMALL)], waiters)
    assert (decision.go, decision.reserved_for) == ((), 2)


def test_an_explanation_names_whom_it_is_kept_for() -> None:
    holders = [Demand(number=1, units={"cpu": 2})]
    waiters = [Demand(number=2, units=BIG), Demand(number=3, units=SMALL), Demand(number=4, units=BIG, dozing=True)]
    head, small, asleep = explain(holders, waiters, CAPACITY, now_boot_ns=PATIENCE + 1, patience_ns=PATIENCE)
    assert (head.patient, head.dozing, small.patient, asleep.patient) == (True, False, False, False)
    assert [(short.resource, short.free, short.held_by, short.reserved_for) for short in head.short] == [
        ("cpu", 2, (1,), None)
    ]
    assert [(short.resource, short.free, short.held_by, short.reserved_for) for short in small.short] == [
        ("cpu", 0, (1, 2), 2)
    ]
    assert asleep.dozing
    before = explain(holders, waiters, CAPACITY, now_boot_ns=PATIENCE, patience_ns=PATIENCE)
    assert not before[1].short


@given(queues())
def test_an_explanation_agrees_with_the_decision(queue: tuple[list[Demand], list[Demand]]) -> None:
    holders, waiters = queue
    decision = decided(holders, waiters)
    waits = explain(holders, waiters, CAPACITY, now_boot_ns=2 * PATIENCE, patience_ns=PATIENCE)
    assert [wait.number for wait in waits] == [waiter.number for waiter in waiters]
    for wait in waits:
        if not wait.dozing:
            assert bool(wait.short) == (wait.number not in decision.go)
        assert wait.patient == (wait.number == decision.reserved_for)
        assert all(short.held_by and short.free < short.wanted for short in wait.short)
        assert {short.reserved_for for short in wait.short} <= {None, decision.reserved_for}


# -- how long the oldest is patient ------------------------------------------------------------------------------------


def test_patience_is_six_average_turns_within_its_bounds() -> None:
    second = 10**9
    assert [Patience().after(turn * second) // second for turn in (0, 1, 10, 100, 1000)] == [2, 6, 60, 600, 600]
    assert Patience(factor=0.5, least_s=0, most_s=1).after(second) == second // 2


@pytest.mark.parametrize(
    "wrong", [{"factor": -1}, {"factor": float("nan")}, {"least_s": 700}, {"most_s": 90_000}, {"factor": True}]
)
def test_a_patience_that_is_none_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.INVALID_PROFILE):
        Patience(**wrong)


@pytest.mark.parametrize(
    ("text", "patience"),
    [
        ("", None),
        ("[machine]\npatience = 3", Patience(factor=3)),
        ("[machine]\npatience = { factor = 1.5, most_s = 60 }", Patience(factor=1.5, most_s=60)),
    ],
)
def test_the_configuration_may_set_it(text: str, patience: Patience | None) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text(text)
    assert machine_settings(os.environ).patience == patience


@pytest.mark.parametrize("value", ['"long"', "true", "-1", "{ least_s = 9, most_s = 8 }", '{ factor = "1" }', "[1]"])
def test_a_configured_patience_that_is_none_is_refused(value: str) -> None:
    Path(os.environ["HOSTLER_CONFIG"]).write_text(f"[machine]\npatience = {value}")
    with pytest.raises(HostlerError, check=lambda error: error.code is Code.INVALID_PROFILE):
        machine_settings(os.environ)


# -- who takes over all that has come free -----------------------------------------------------------------------------


@given(queues(), st.data())
def test_who_takes_over_all_that_has_come_free_may_go_and_nobody_else_who_might_not_before(
    queue: tuple[list[Demand], list[Demand]], data: st.DataObject
) -> None:
    holders, waiters = queue[0], [waiter._replace(priority=0) for waiter in queue[1]]
    before = decided(holders, waiters).go
    if not waiters or waiters[0].dozing or waiters[0].number in before:
        return
    dead = data.draw(st.lists(st.sampled_from(holders), unique_by=lambda holder: holder.number)) if holders else []
    rest = [holder for holder in holders if holder not in dead]
    if succeeds(waiters[0], dead, rest, CAPACITY, patience_ns=PATIENCE, now_boot_ns=2 * PATIENCE):
        after = decided(rest, waiters).go
        assert waiters[0].number in after
        assert set(after) <= {waiters[0].number, *before}


@pytest.mark.parametrize(
    ("units", "dead", "waited", "expected"),
    [
        ({"ffmpeg": 1, "cpu": 2}, {"ffmpeg": 1, "cpu": 2}, PATIENCE, True),
        ({"ffmpeg": 1, "cpu": 2}, {"ffmpeg": 1}, PATIENCE, True),
        ({"ffmpeg": 1}, {"ffmpeg": 1, "cpu": 1}, PATIENCE, False),
        ({"ffmpeg": 1}, {"ffmpeg": 2}, PATIENCE, False),
        ({"ffmpeg": 1}, {"ffmpeg": 1, f"{KEY}a": 1}, PATIENCE, False),
        ({"ffmpeg": 1, "whisper": 1}, {"ffmpeg": 1}, PATIENCE, False),
        ({"ffmpeg": 1}, {"ffmpeg": 1}, PATIENCE + 1, False),
    ],
    ids=["all of it", "and more", "less", "fewer", "but for a key", "but it does not fit", "but it was patient"],
)
def test_only_the_whole_of_what_has_come_free_is_taken_over(
    units: dict[str, int], dead: dict[str, int], waited: int, *, expected: bool
) -> None:
    heir, holder = Demand(number=3, units=units), Demand(number=1, units=dead)
    other = Demand(number=2, units={"whisper": 1})
    assert expected is succeeds(heir, [holder], [other], CAPACITY, patience_ns=PATIENCE, now_boot_ns=waited)
