"""ffmpeg's progress output, well-formed and not."""

from hypothesis import given
from hypothesis import strategies as st

from hostler.operations.progress import ProgressReader, Reading

BLOCK = b"""frame=104
fps=0.00
stream_0_0_q=28.0
bitrate= 406.3kbits/s
total_size=262192
out_time_us=5162667
out_time_ms=5162667
out_time=00:00:05.162667
dup_frames=0
drop_frames=0
speed=12.9x
progress=continue
"""

SMALLEST = b"-9223372036854775807"


def last(reader: ProgressReader, *chunks: bytes) -> Reading | None:
    reading = None
    for chunk in chunks:
        reading = reader.feed(chunk) or reading
    return reading


def test_a_block_tells_fraction_speed_and_time_left() -> None:
    """The plain case."""
    reading = ProgressReader(10.325334).feed(BLOCK)
    assert reading is not None
    assert reading.fraction == 0.5
    assert reading.position_s == 5.162667
    assert reading.speed == 12.9
    assert reading.left_s is not None
    assert abs(reading.left_s - 5.162667 / 12.9) < 1e-9


def test_out_time_ms_is_taken_as_microseconds() -> None:
    """Its name lies, in every version so far."""
    reading = ProgressReader(10).feed(b"out_time_ms=5000000\n")
    assert reading is not None
    assert reading.fraction == 0.5


def test_the_clock_alone_is_enough() -> None:
    """Some builds leave the numbers out."""
    reading = ProgressReader(7200).feed(b"out_time=01:30:00.000000\n")
    assert reading is not None
    assert reading.fraction == 0.75


def test_without_a_duration_the_fraction_is_unknown_until_and_at_the_end() -> None:
    """Unknown stays unknown; position and speed are still told."""
    reading = last(ProgressReader(None), BLOCK, b"progress=end\n")
    assert reading == Reading(fraction=None, position_s=5.162667, speed=12.9, left_s=None)


def test_not_available_and_hugely_negative_times_tell_nothing() -> None:
    """What ffmpeg prints before the first packet, and for streams without timestamps."""
    reader = ProgressReader(10)
    assert reader.feed(b"out_time_us=N/A\nout_time_ms=N/A\nout_time=N/A\nspeed=N/A\nprogress=continue\n") is None
    assert reader.feed(b"out_time_us=" + SMALLEST + b"\nout_time=-2562047788:00:54.775807\n") is None
    assert reader.feed(b"out_time_us=9223372036854775807\n") is None
    assert reader.feed(b"out_time_us=" + b"9" * 400 + b"\n") is None


def test_progress_never_goes_back() -> None:
    """A later, smaller time is not told."""
    reader = ProgressReader(10)
    reader.feed(b"out_time_us=5000000\n")
    assert reader.feed(b"out_time_us=4000000\n") is None
    after = reader.feed(b"speed=2x\n")
    assert after is not None
    assert after.fraction == 0.5


def test_a_time_beyond_the_duration_is_clamped() -> None:
    """The duration may be that of another stream, or wrong."""
    reading = ProgressReader(10).feed(b"out_time_us=12000000\nspeed=2x\n")
    assert reading is not None
    assert reading.fraction == 1.0
    assert reading.left_s == 0.0


def test_a_missing_progress_line_and_a_block_cut_anywhere_lose_nothing() -> None:
    """Lines stand for themselves."""
    two = BLOCK.replace(b"progress=continue\n", b"") + BLOCK.replace(b"5162667", b"6000000").replace(b"05.16", b"04.00")
    for cut in range(len(two)):
        reading = last(ProgressReader(12), two[:cut], two[cut:])
        assert reading is not None
        assert reading.fraction == 0.5


def test_carriage_returns_end_lines_too() -> None:
    """As on some terminals and systems."""
    reading = ProgressReader(10).feed(b"out_time_us=1000000\rspeed=1x\r\nout_time_us=5000000\r")
    assert reading is not None
    assert reading.fraction == 0.5


def test_five_hundred_updates_in_one_chunk_make_one_reading() -> None:
    """The newest is what counts."""
    chunk = b"".join(b"out_time_us=%d\nprogress=continue\n" % (number * 1000) for number in range(501))
    reading = ProgressReader(1).feed(chunk)
    assert reading is not None
    assert reading.fraction == 0.5


def test_a_line_without_an_end_does_not_fill_memory() -> None:
    """50 MB without a newline; the next real line is read."""
    reader = ProgressReader(10)
    for _ in range(800):
        assert reader.feed(b"out_time_us=1" * 5000) is None
    assert len(reader._rest) <= 4096
    reading = reader.feed(b"00\nout_time_us=5000000\n")
    assert reading is not None
    assert reading.fraction == 0.5


def test_the_end_is_the_whole() -> None:
    """Even when the last time falls short of the duration."""
    reading = last(ProgressReader(10), b"out_time_us=9500000\n", b"progress=end\n")
    assert reading is not None
    assert reading.fraction == 1.0


@given(
    st.lists(st.one_of(st.binary(max_size=60), st.sampled_from([BLOCK, b"out_time_us=", b"7\n", b"speed=", b"x\n"])))
)
def test_any_bytes_give_clamped_monotone_readings_and_no_fault(chunks: list[bytes]) -> None:
    """Field case 24: progress is advice: nothing that ffmpeg prints may break the encode."""
    reader = ProgressReader(8)
    furthest = 0.0
    for chunk in chunks:
        reading = reader.feed(chunk)
        if reading is not None and reading.fraction is not None:
            assert furthest <= reading.fraction <= 1.0
            furthest = reading.fraction
