"""ffmpeg found, called and understood."""

import sys
from pathlib import Path

import pytest

from actors.context import OperationFailed
from hostler.operations.ffmpeg import encode, find_ffmpeg, find_ffprobe, url
from hostler.operations.ffmpeg_faults import complaint, failure
from store.contracts import Failure
from store.policy import FailureCode, Retry
from store.retrying import may_help
from tests.hostler.operations.support import bench, executable

BAD_FILTER = b"""[info]   Stream #0:1[0x2](und): Audio: aac (LC) (mp4a / 0x6134706D), 48000 Hz, mono, fltp, 127 kb/s (default)
[AVFilterGraph @ 0x555abec04280] [error] No such filter: 'nosuch'
[error] Error opening output file x.mp4.
[fatal] Error opening output files: Filter not found
"""
BAD_FILTER_5_1 = b"""[AVFilterGraph @ 0x5582] [error] No such filter: 'nosuch'
[error] Error reinitializing filters!
[error] Failed to inject frame into filter network: Invalid argument
[fatal] Error while processing the decoded data for stream #0:0
[aac @ 0x557f1da7ba00] [warning] 2 frames left in the queue on closing
[info] Conversion failed!
"""
NO_DRIVER = b"""[h264_nvenc @ 0x561029859dc0] [error] Cannot load libcuda.so.1
[vost#0:0/h264_nvenc @ 0x561029849880] [enc:h264_nvenc @ 0x561029853a00] [error] Error while opening encoder - maybe incorrect parameters such as bit_rate, rate, width or height.
[vf#0:0 @ 0x561029854e40] [error] Error sending frames to consumers: Operation not permitted
[vf#0:0 @ 0x561029854e40] [error] Task finished with error code: -1 (Operation not permitted)
[vf#0:0 @ 0x561029854e40] [error] Terminating thread with return code -1 (Operation not permitted)
[out#0/mp4 @ 0x561029858a80] [error] Nothing was written into output file, because at least one of its streams received no packets.
[info] frame=    0 fps=0.0 q=0.0 Lsize=       0KiB time=00:00:00.44 bitrate=   0.0kbits/s speed=23.1x elapsed=0:00:00.01
[info] Conversion failed!
"""


def test_the_systems_ffmpeg_comes_first(tmp_path: Path) -> None:
    """Whoever installed one wants it used."""
    own = executable(tmp_path / "bin" / "ffmpeg", "#!/bin/sh\n")
    assert find_ffmpeg({"PATH": str(own.parent)}) == own


def test_the_packages_ffmpeg_is_used_where_the_system_has_none(tmp_path: Path) -> None:
    """A bare machine needs nothing but pip."""
    pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg is not installed: it comes with the extra `media`")
    assert find_ffmpeg({"PATH": str(tmp_path)}).is_file()


def test_no_ffmpeg_at_all_names_the_path_searched_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a service the PATH is often not the one of the terminal."""
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(OperationFailed) as caught:
        find_ffmpeg({"PATH": str(tmp_path)})
    assert caught.value.code is FailureCode.UNAVAILABLE
    assert caught.value.message == f"ffmpeg not found; searched PATH={tmp_path}"
    assert "pip install 'hostler[media]'" in caught.value.todo


def test_a_variable_names_the_programs_wherever_path_leads(tmp_path: Path) -> None:
    """Field case 80: the setting to change where PATH is not what one has in a terminal."""
    system, own = (executable(tmp_path / name / "ffmpeg", "#!/bin/sh\n") for name in ("bin", "own"))
    given = {"PATH": str(system.parent), "HOSTLER_FFMPEG": str(own), "HOSTLER_FFPROBE": str(own)}
    assert find_ffmpeg(given) == find_ffprobe(given) == own
    for wrong in ("ffmpeg", str(tmp_path / "none"), str(tmp_path)):
        for name, find in (("HOSTLER_FFMPEG", find_ffmpeg), ("HOSTLER_FFPROBE", find_ffprobe)):
            with pytest.raises(OperationFailed) as caught:
                find({"PATH": str(system.parent), name: wrong})
            assert caught.value.message == f"{name} is {wrong}, which is no program"


def test_ffprobe_is_the_systems_or_none(tmp_path: Path) -> None:
    """PyAV takes over where it is missing."""
    assert find_ffprobe({"PATH": str(tmp_path)}) is None
    own = executable(tmp_path / "ffprobe", "#!/bin/sh\n")
    assert find_ffprobe({"PATH": str(tmp_path)}) == own


@pytest.mark.parametrize("name", ["-x.mp4", "a:b.mp4", "http:x.mp4", " lead.mp4", "q.mp4 "])
def test_a_name_is_never_syntax(name: str) -> None:
    """`file:` and an absolute path, whatever the name holds."""
    assert url(Path("/-n") / name) == f"file:/-n/{name}"


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (BAD_FILTER, "No such filter: 'nosuch'"),
        (BAD_FILTER_5_1, "No such filter: 'nosuch'"),
        (
            NO_DRIVER,
            (
                "Cannot load libcuda.so.1; Error while opening encoder - maybe incorrect parameters such as bit_rate, "
                "rate, width or height"
            ),
        ),
        (
            (
                b"[vost#0:0 @ 0x562cdfb9880] [fatal] Unknown encoder 'nosuch'\n"
                b"[vost#0:0 @ 0x562cdfb9880] [fatal] Error selecting an encoder\n"
                b"[fatal] Error opening output files: Encoder not found\n"
            ),
            "Unknown encoder 'nosuch'",
        ),
        (
            (
                b"[in#0 @ 0x556f9723fd40] [error] Error opening input: No such file or directory\n"
                b"[error] Error opening input file file:/x.mp4.\n"
                b"[fatal] Error opening input files: No such file or directory\n"
            ),
            "Error opening input: No such file or directory",
        ),
        (
            (
                b"[scale @ 0x1f] [error] No option name near '3'\n"
                b"[AVFilterGraph @ 0x1f] [error] Error parsing a filter description around:\n"
                b"[AVFilterGraph @ 0x1f] [error] Error parsing filterchain 'scale=480:-2,nosuch=3' around:\n"
            ),
            "No option name near '3'",
        ),
        (b"[mp4 @ 0x1f] [warning] odd\nConversion failed!\n", "Conversion failed!"),
        (b"[mov @ 0x1f] [error] title caf\xe9 \x1b[31mred\x00\n", "title caf\ufffd \ufffd[31mred\ufffd"),
        (b"", ""),
    ],
)
def test_the_complaint_is_the_line_that_says_what_is_wrong(stderr: bytes, said: str) -> None:
    """Not ffmpeg's closing formulas; whatever bytes it prints are harmless."""
    assert complaint(stderr) == said


def test_who_ended_it_decides_before_what_it_said() -> None:
    """Field case 17: a foreign signal, trapped or not, is worth another try; a fault of the file is not."""
    killed = failure("ffmpeg", 128 + 9, b"[error] half a line")
    assert killed.message == "ffmpeg was ended from outside by SIGKILL"
    assert killed.retryable
    trapped = failure("ffmpeg", 255, b"Exiting normally, received signal 15.\n")
    assert "ended from outside" in trapped.message
    assert trapped.retryable
    assert not failure("ffmpeg", 255, b"[error] some fault").retryable
    assert not failure("ffmpeg", 1, BAD_FILTER).retryable


@pytest.mark.parametrize("code", [8, 183, 234, 254])
def test_an_error_number_above_128_is_not_taken_for_a_signal(code: int) -> None:
    """Newer versions exit with the error itself, modulo 256: invalid argument is 234."""
    failed = failure("ffmpeg", code, b"[libx264 @ 0x1] [error] Error setting preset nosuch.\n")
    assert failed.message == f"ffmpeg ended with exit code {code}: Error setting preset nosuch"
    assert not failed.retryable


@pytest.mark.parametrize(
    ("code", "stderr", "kind"),
    [
        (8, b"[fatal] Error opening output files: Encoder not found", FailureCode.UNSUPPORTED_PLAN),
        (8, b"", FailureCode.UNSUPPORTED_PLAN),
        (8, b"[fatal] Unrecognized option 'nosuch'.\n[fatal] Option not found", FailureCode.INVALID_DATA),
        (1, b"[fatal] Unknown encoder 'nosuch'", FailureCode.UNSUPPORTED_PLAN),
        (1, BAD_FILTER_5_1, FailureCode.UNSUPPORTED_PLAN),
        (1, b"[error] Decoder (codec av1) not found for input stream #0:0", FailureCode.UNSUPPORTED_PLAN),
        (255, NO_DRIVER, FailureCode.UNSUPPORTED_PLAN),
        (234, b"[error] Error while opening encoder", FailureCode.INVALID_DATA),
        (254, b"[fatal] Error opening input files: No such file or directory", FailureCode.INVALID_DATA),
        (183, b"", FailureCode.INVALID_DATA),
        (1, b"[error] x.mp4: Invalid data found when processing input", FailureCode.INVALID_DATA),
        (1, b"[error] Error setting option crf to value 99.\nConversion failed!", FailureCode.INVALID_DATA),
        (1, b"[mov @ 0x1] [warning] Invalid data found here\nConversion failed!", FailureCode.SUBPROCESS),
        (1, b"Conversion failed!", FailureCode.SUBPROCESS),
        (251, b"[error] Invalid data found\n[error] Input/output error", FailureCode.SUBPROCESS),
        (244, b"[error] Cannot allocate memory", FailureCode.SUBPROCESS),
        (234, b"[h264_nvenc @ 0x1] [error] OpenEncodeSessionEx failed: out of memory (10)", FailureCode.SUBPROCESS),
        (1, b"[error] OpenEncodeSessionEx failed: out of memory\n[error] Invalid argument", FailureCode.SUBPROCESS),
    ],
)
def test_what_would_fail_again_is_no_failure_that_a_policy_retries(code: int, stderr: bytes, kind: FailureCode) -> None:
    """Field cases 96 and 38: a missing encoder stays missing, a session or memory may come free."""
    failed = failure("ffmpeg", code, stderr)
    assert failed.code is kind
    assert may_help(Retry(), Failure(code=kind, message="x", retryable=failed.retryable)) is (
        kind is FailureCode.SUBPROCESS
    )


def test_a_crash_is_the_tools_own() -> None:
    """Nobody outside did it, and the same file would do it again."""
    failed = failure("ffmpeg", 128 + 11, b"")
    assert failed.message == "ffmpeg crashed with SIGSEGV"
    assert not failed.retryable


def test_a_full_disk_is_called_so() -> None:
    """The remedy is another than for a broken file."""
    failed = failure("ffmpeg", 228, b"[out#0/mp4 @ 0x1] [error] Error writing trailer: No space left on device\n")
    assert failed.code is FailureCode.UNAVAILABLE
    assert failed.message == "ffmpeg failed: No space left on device"


def test_it_is_called_without_terminal_within_its_threads_and_under_a_short_name(tmp_path: Path) -> None:
    """The claim is passed down as thread options; the result has its name only afterwards."""
    fake = executable(
        tmp_path / "bin" / "ffmpeg",
        f"#!{sys.executable}\nimport sys\n"
        "print('out_time_us=500000\\nspeed=2x\\nprogress=end')\n"
        "open(sys.argv[-1].removeprefix('file:'), 'w').write('done')\n",
    )
    here = bench(tmp_path)
    here.path_variable, here.cpu = str(fake.parent), 3
    source = here.folder / "-in:1.mp4"
    made = encode(here.ctx, inputs=[([], source)], options=["-an"], name="v.mp4", duration_s=1.0, doing="testing")
    [argv] = here.ran
    assert made == here.workspace / "v.mp4"
    assert made.read_text() == "done"
    assert argv[0] == str(fake)
    assert {"-nostdin", "-hide_banner"} <= set(argv)
    assert argv[argv.index("-filter_threads") + 1] == "3"
    assert argv.count("-threads") == 2
    assert f"file:{source}" in argv
    assert argv[-1] == f"file:{here.workspace}/part.mp4"
    assert not (here.workspace / "part.mp4").exists()
    assert here.told == [(1.0, "testing", 2.0, 0.0)]


def test_a_failure_leaves_nothing_under_the_final_name(tmp_path: Path) -> None:
    """Field case 18: a 0-byte file must never look like a result."""
    fake = executable(
        tmp_path / "bin" / "ffmpeg",
        '#!/bin/sh\nfor last; do :; done\n: > "${last#file:}"\necho "[fatal] no" >&2\nexit 1\n',
    )
    here = bench(tmp_path)
    here.path_variable = f"{fake.parent}:/usr/bin:/bin"
    with pytest.raises(OperationFailed, match="ffmpeg ended with exit code 1: no"):
        encode(here.ctx, inputs=[], options=[], name="v.mp4", duration_s=None, doing="testing")
    assert not (here.workspace / "v.mp4").exists()
