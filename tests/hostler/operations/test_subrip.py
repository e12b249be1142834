"""Segments as subtitles."""

import pytest

from hostler.operations.subrip import Segment, clean, subrip, timestamp


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "00:00:00,000"),
        (61.5, "00:01:01,500"),
        (3599.9996, "01:00:00,000"),
        (360_000, "100:00:00,000"),
        (-1, "00:00:00,000"),
    ],
)
def test_times_are_hours_minutes_seconds_comma_milliseconds(seconds: float, shown: str) -> None:
    """Rounded once, so that no field overflows."""
    assert timestamp(seconds) == shown


def test_segments_are_numbered_and_separated_by_an_empty_line() -> None:
    """Those without text are left out and do not count."""
    said = [
        Segment(start_s=0, end_s=1.25, text=" It was "),
        Segment(start_s=1.25, end_s=2, text="  "),
        Segment(start_s=3, end_s=2, text="the worst"),
    ]
    assert subrip(said) == ("1\n00:00:00,000 --> 00:00:01,250\nIt was\n\n2\n00:00:03,000 --> 00:00:03,000\nthe worst\n")
    assert subrip([]) == ""


def test_text_cannot_be_taken_for_the_format() -> None:
    """Line ends, arrows and control characters inside a text."""
    assert clean("a\n\n7\n00:00:01,000 --> 00:00:02,000\x1b[0m\u2028b") == "a 7 00:00:01,000 -> 00:00:02,000 [0m b"
