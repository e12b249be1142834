"""Ids and times as text."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from store.clock import SystemClock, instant
from store.fields import Instant, RunId
from store.ids import new_host_id, new_run_id

times = st.integers(0, 2**48 - 1)
noise = st.binary(min_size=10, max_size=10)


@given(times, noise)
def test_a_run_id_has_the_promised_form(now_ms: int, random_bytes: bytes) -> None:
    assert TypeAdapter(RunId).validate_python(new_run_id(now_ms, random_bytes))
    assert re.fullmatch(r"host_[0-9a-hjkmnp-tv-z]{26}", new_host_id(now_ms, random_bytes))


@given(times, noise, times, noise)
def test_run_ids_sort_by_the_time_they_were_made(now_ms: int, one: bytes, later_ms: int, other: bytes) -> None:
    if now_ms < later_ms:
        assert new_run_id(now_ms, one) < new_run_id(later_ms, other)


def test_a_known_ulid_is_written_as_its_specification_says() -> None:
    number = 0x0176_5B5C_4C2B_0123_4567_89AB_CDEF_0123
    text = new_run_id(number >> 80, (number & 2**80 - 1).to_bytes(10, "big"))
    alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
    value = 0
    for character in text.removeprefix("run_"):
        value = value * 32 + alphabet.index(character)
    assert value == number


@pytest.mark.parametrize(("now_ms", "random_bytes"), [(-1, bytes(10)), (2**48, bytes(10)), (0, bytes(9))])
def test_what_does_not_fit_an_id_is_a_bug(now_ms: int, random_bytes: bytes) -> None:
    with pytest.raises(ValueError, match=str(now_ms)):
        new_run_id(now_ms, random_bytes)


def test_times_are_rfc_3339_utc_with_milliseconds() -> None:
    """Field case 74: no time of a zone is stored."""
    assert instant(0) == "1970-01-01T00:00:00.000Z"
    assert instant(1_700_000_000_007) == "2023-11-14T22:13:20.007Z"
    one, other = SystemClock().now(), SystemClock().now()
    assert TypeAdapter(Instant).validate_python(one.at)
    assert one.boot_ns <= other.boot_ns


@pytest.mark.parametrize("change_unix_s", [1_774_746_000, 1_792_890_000])
def test_an_hour_is_one_hour_wherever_and_whenever_clocks_change(
    monkeypatch: pytest.MonkeyPatch, change_unix_s: int
) -> None:
    """Field case 74: the last Sundays of March and October 2026, with a zone that changes while we run."""
    told = {}
    with monkeypatch.context() as patch:
        for zone in ("UTC", "Europe/Berlin", "America/New_York"):
            patch.setenv("TZ", zone)
            time.tzset()
            told[zone] = [instant((change_unix_s + hour * 3600) * 1000) for hour in range(-3, 4)]
    time.tzset()
    assert told["UTC"] == told["Europe/Berlin"] == told["America/New_York"]
    assert told["UTC"] == sorted(set(told["UTC"]))
