"""A record tells what it says, whether one like it was read before or not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostres import tickets
from hostres.tickets import Record

RECORD = Record(claims={"x": 1, "asked_boot_ns": 7}, keys=("0" * 64,), asked_boot_ns=7, name=',"asked_boot_ns":8,')

NAMES = st.sampled_from(["x", "ffmpeg", "asked_boot_ns", "a-b.c"])
WORDS = st.text(max_size=4) | st.sampled_from(['"', "\\", ',"asked_boot_ns":', ',"asked_boot_ns":9,"'])
RECORDS = st.builds(
    Record,
    claims=st.dictionaries(NAMES, st.integers(1, 9), min_size=1, max_size=3),
    keys=st.just(()) | st.just(("f" * 64,)),
    asked_boot_ns=st.integers(0, 3) | st.integers(0, 10**19 - 1),
    priority=st.integers(-10, 10),
    name=WORDS,
    pid=st.integers(0, 3),
    command=st.lists(WORDS, max_size=2).map(tuple),
)


@pytest.fixture(autouse=True)
def _nothing_read_before() -> None:
    tickets._alike.clear()


@given(RECORDS, st.lists(st.integers(0, 10**19 - 1), max_size=2))
def test_what_was_written_is_read_back_at_any_time(record: Record, moments: list[int]) -> None:
    for one in (record, *[record._replace(asked_boot_ns=moment) for moment in moments], record):
        assert Record.from_json(one.to_json()) == one


@pytest.mark.parametrize("digits", ["07", "-7", "7.0", "", " 7", "7 ", "x", "1" * 5000, "\u0667"])
def test_a_time_that_is_none_is_refused_though_all_else_was_read_before(digits: str) -> None:
    record = RECORD._replace(asked_boot_ns=123)
    data = record.to_json()
    assert Record.from_json(data) == record
    changed = data.replace(b"123", digits.encode())
    try:
        plain = json.loads(changed)["asked_boot_ns"]
    except ValueError:
        plain = None
    if isinstance(plain, int):  # blanks are JSON
        assert Record.from_json(changed).asked_boot_ns == plain
    else:
        with pytest.raises(ValueError):
            Record.from_json(changed)


def test_only_so_many_are_kept() -> None:
    for pid in range(3 * tickets._MOST_ALIKE):
        record = RECORD._replace(pid=pid)
        assert Record.from_json(record.to_json()) == record
        assert 0 < len(tickets._alike) <= tickets._MOST_ALIKE
    tickets._alike.clear()
    long = RECORD._replace(command=("a long word" * 100,))
    assert Record.from_json(long.to_json()) == long
    assert not tickets._alike


def test_one_like_another_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Record.from_json(RECORD.to_json())
    Record.from_json(RECORD._replace(claims={"x": 1, "asked_boot_ns": 7, "y": 7}).to_json())
    monkeypatch.setattr(json, "loads", None)
    assert Record.from_json(RECORD._replace(asked_boot_ns=8).to_json()).asked_boot_ns == 8
