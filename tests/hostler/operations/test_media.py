"""Transcoding, extracting and subtitling, with a real ffmpeg and clips it makes itself."""

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from actors.context import OperationFailed
from hostler.operations.media import (
    AddSubtitlesInput,
    ExtractAudioInput,
    Source,
    TranscodeInput,
    add_subtitles,
    extract_audio,
    probe,
    transcode,
)
from store.policy import Effect, FailureCode, Resume
from tests.hostler.operations.support import bench, clip, executable, make, needs_av, needs_ffmpeg

pytestmark = [pytest.mark.media, needs_ffmpeg, needs_av]

SRT = "1\n00:00:00,000 --> 00:00:01,000\nIt was the best of times.\n"


def test_every_media_operation_claims_an_ffmpeg_and_a_core() -> None:
    """Two programs share the machine by these claims."""
    for each in (probe, transcode, extract_audio, add_subtitles):
        assert dict(each.policy.claims) == {"ffmpeg": 1, "cpu": 1}
        assert each.policy.resume is Resume.DETERMINISTIC
    for each in (transcode, extract_audio, add_subtitles):
        assert each.policy.effect is Effect.LOCAL_DERIVED_WRITE


def test_a_video_is_scaled_and_keeps_its_shape_length_and_sound(tmp_path: Path) -> None:
    """The common case, with progress on the way."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4", seconds=3)
    made = transcode(here.ctx, TranscodeInput(path="in.mp4", width=160, preset="ultrafast", crf=30))
    seen = probe(here.ctx, Source(path=made.path))
    assert seen.video is not None
    assert (seen.video.width, seen.video.height, seen.video.codec) == (160, 90, "h264")
    assert seen.audio is not None
    assert made.seconds == pytest.approx(3, abs=0.2)
    assert made.bytes == Path(made.path).stat().st_size
    assert Path(made.path).parent == here.workspace
    assert here.told[-1][0] == 1.0
    assert here.told[-1][1] == "transcoding"


@pytest.mark.parametrize(
    "name", ["-x.mp4", "a:b.mp4", "http:x.mp4", " lead.mp4", "q.mp4 ", "-n/x.mp4", "é\n'$(x)%d.mp4"]
)
def test_names_that_ffmpeg_reads_as_syntax_are_just_names(tmp_path: Path, name: str) -> None:
    """Field case 29: dash, colon, protocol, blanks, a folder that looks like an option, a pattern."""
    here = bench(tmp_path)
    source = here.folder / name
    source.parent.mkdir(exist_ok=True)
    clip(tmp_path / "plain.mp4", seconds=0.5).rename(source)
    made = extract_audio(here.ctx, ExtractAudioInput(path=name))
    assert made.seconds == pytest.approx(0.5, abs=0.1)


def test_audio_for_speech_is_sixteen_kilohertz_mono(tmp_path: Path) -> None:
    """What recognition takes without resampling."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4")
    made = extract_audio(here.ctx, ExtractAudioInput(path="in.mp4"))
    seen = probe(here.ctx, Source(path=made.path))
    assert seen.video is None
    assert seen.audio is not None
    assert (seen.audio.codec, seen.audio.sample_rate, seen.audio.channels) == ("pcm_s16le", 16_000, 1)
    assert made.seconds == pytest.approx(2, abs=0.1)


def test_subtitles_become_a_stream_and_the_rest_is_copied(tmp_path: Path) -> None:
    """No new encode, no font needed."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4")
    (here.folder / "in.srt").write_text(SRT)
    made = add_subtitles(here.ctx, AddSubtitlesInput(path="in.mp4", subtitles="in.srt", language="eng"))
    seen = probe(here.ctx, Source(path=made.path))
    assert [(each.codec, each.language) for each in seen.subtitles] == [("mov_text", "eng")]
    assert seen.video is not None
    assert seen.video.codec == "h264"
    assert seen.audio is not None
    assert made.seconds == pytest.approx(2, abs=0.2)


def test_a_silent_film_gets_empty_subtitles_without_a_fault(tmp_path: Path) -> None:
    """Nobody spoke: the SubRip file is empty, which ffmpeg alone cannot recognise."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4", sound=False)
    (here.folder / "in.srt").touch()
    made = add_subtitles(here.ctx, AddSubtitlesInput(path="in.mp4", subtitles="in.srt"))
    assert made.seconds == pytest.approx(2, abs=0.2)


def test_a_file_without_a_single_subtitle_is_refused(tmp_path: Path) -> None:
    """An empty stream would look like a result."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4", sound=False)
    (here.folder / "in.srt").write_text("import os\n")
    with pytest.raises(OperationFailed, match="SubRip") as caught:
        add_subtitles(here.ctx, AddSubtitlesInput(path="in.mp4", subtitles="in.srt"))
    assert caught.value.code is FailureCode.INVALID_DATA


@pytest.mark.parametrize(
    ("options", "said", "kind"),
    [
        ({"filters": "nosuch"}, "No such filter", FailureCode.UNSUPPORTED_PLAN),
        ({"codec": "nosuch"}, "Unknown encoder", FailureCode.UNSUPPORTED_PLAN),
        ({"codec": "h264_nvenc"}, "", FailureCode.UNSUPPORTED_PLAN),
        ({"container": "nosuch"}, "output format", FailureCode.INVALID_DATA),
        ({"preset": "nosuch"}, "nosuch", FailureCode.INVALID_DATA),
        ({"filters": "scale=w=none"}, "none", FailureCode.INVALID_DATA),
        ({"codec": "libx264", "container": "webm"}, "", FailureCode.INVALID_DATA),
    ],
)
def test_a_bad_option_fails_with_ffmpegs_own_words_and_leaves_no_result(
    tmp_path: Path, options: dict[str, str], said: str, kind: FailureCode
) -> None:
    """Nothing under the final name, and nothing that a policy would try again."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4", seconds=0.5)
    with pytest.raises(OperationFailed) as caught:
        transcode(here.ctx, TranscodeInput.model_validate({"path": "in.mp4", **options}))
    assert caught.value.code is kind
    assert said in caught.value.message
    assert "\n" not in caught.value.message
    assert not caught.value.retryable
    assert not (here.workspace / "video.mp4").exists()


def test_a_source_cut_in_the_middle_is_not_taken_for_a_whole_result(tmp_path: Path) -> None:
    """ffmpeg itself ends with 0 here."""
    here = bench(tmp_path)
    whole = make(
        here.folder / "whole.mp4",
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=10:duration=20", "-c:v", "libx264"),
        *("-preset", "ultrafast", "-pix_fmt", "yuv420p", "-movflags", "+faststart"),
    )
    cut = here.folder / "cut.mp4"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 3])
    asked = {"path": "cut.mp4", "preset": "ultrafast"}
    with pytest.raises(OperationFailed, match="cut or damaged") as caught:
        transcode(here.ctx, TranscodeInput.model_validate(asked))
    assert caught.value.code is FailureCode.MALFORMED_OUTPUT
    made = transcode(here.ctx, TranscodeInput.model_validate({**asked, "allow_shorter": True}))
    assert 0 < made.seconds < 15


def test_what_is_not_in_the_source_is_said_plainly(tmp_path: Path) -> None:
    """No sound to extract, no picture to transcode."""
    here = bench(tmp_path)
    clip(here.folder / "mute.mp4", seconds=0.5, sound=False)
    make(here.folder / "tone.wav", "-f", "lavfi", "-i", "sine=duration=0.5")
    with pytest.raises(OperationFailed, match="has no sound"):
        extract_audio(here.ctx, ExtractAudioInput(path="mute.mp4"))
    with pytest.raises(OperationFailed, match="has no picture"):
        transcode(here.ctx, TranscodeInput(path="tone.wav"))


def test_a_latin_1_title_hurts_nobody(tmp_path: Path) -> None:
    """Field case 26: bytes that are not UTF-8 in ffmpeg's output do not decide the result."""
    here = bench(tmp_path)
    make(
        here.folder / "t.mp4",
        "-i",
        str(clip(tmp_path / "c.mp4", seconds=0.5)),
        "-metadata",
        "title=caf\udce9",
    )
    assert transcode(here.ctx, TranscodeInput(path="t.mp4", preset="ultrafast")).seconds > 0


def test_another_attempt_writes_over_what_the_last_one_left(tmp_path: Path) -> None:
    """A killed attempt leaves a partial file in the workspace."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4", seconds=0.5)
    (here.workspace / "part.wav").write_text("half")
    (here.workspace / "audio.wav").write_text("old")
    made = extract_audio(here.ctx, ExtractAudioInput(path="in.mp4"))
    assert Path(made.path).read_bytes().startswith(b"RIFF")


def test_progress_that_lies_does_not_fail_the_encode(tmp_path: Path) -> None:
    """A fake ffmpeg prints rubbish as its progress and still does its work."""
    here = bench(tmp_path)
    source = clip(here.folder / "in.mp4", seconds=0.5)
    executable(
        tmp_path / "bin" / "ffmpeg",
        f"#!{sys.executable}\nimport os, shutil, sys\n"
        "os.write(1, b'out_time_us=-9223372036854775807\\nout_time=N/A\\n\\xff\\xfe=\\x00\\nprogress=con')\n"
        f"shutil.copy({str(source)!r}, sys.argv[-1].removeprefix('file:'))\n",
    )
    here.path_variable = str(tmp_path / "bin")
    assert transcode(here.ctx, TranscodeInput(path="in.mp4")).seconds == pytest.approx(0.5, abs=0.1)
    assert here.told == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 3},
        {"height": 0},
        {"crf": 64},
        {"codec": "-x"},
        {"codec": "a b"},
        {"container": "../x"},
        {"x": 1},
    ],
)
def test_options_are_checked_before_anything_runs(wrong: dict[str, object]) -> None:
    """Odd sizes, options in disguise, unknown fields."""
    with pytest.raises(ValidationError):
        TranscodeInput.model_validate({"path": "in.mp4", **wrong})
