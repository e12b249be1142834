"""Speech to text: with a fake transcriber, and with the real engine."""

import json
import sys
from pathlib import Path

import pytest

from actors.context import OperationFailed
from hostler.operations import speech
from hostler.operations.speech import TranscribeInput, transcribe
from store.policy import FailureCode
from tests.hostler.operations.support import bench, make, needs_ffmpeg, needs_whisper

RESULT = {
    "language": "en",
    "seconds": 4.0,
    "segments": [
        {"start": 0.0, "end": 2.0, "text": "It was the best of times,"},
        {"start": 2.0, "end": 4.0, "text": "it was the worst of times."},
    ],
}


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the script that runs in place of the transcriber; a test fills it."""
    script = tmp_path / "fake.py"
    monkeypatch.setattr(speech, "TRANSCRIBER", script)
    monkeypatch.setattr(speech, "find_model", lambda folder, model, **_: folder / model)
    return script


def write(script: Path, *lines: str) -> None:
    script.write_text("\n".join(["import json, os, sys", "out = sys.argv[sys.argv.index('--out') + 1]", *lines]))


def test_it_claims_a_whisper_and_a_core() -> None:
    """One whisper on a machine: this claim makes it so."""
    assert dict(transcribe.policy.claims) == {"whisper": 1, "cpu": 1}


def test_a_transcript_is_written_three_ways(tmp_path: Path, fake: Path) -> None:
    """Subtitles, text and segments, with counts for a view."""
    here = bench(tmp_path)
    (here.folder / "-a:b.wav").touch()
    write(fake, f"open(out, 'w').write(json.dumps({RESULT!r}))")
    said = transcribe(here.ctx, TranscribeInput(audio="-a:b.wav", model="m", language="en"))
    assert Path(said.path).read_text() == (
        "1\n00:00:00,000 --> 00:00:02,000\nIt was the best of times,\n\n"
        "2\n00:00:02,000 --> 00:00:04,000\nit was the worst of times.\n"
    )
    assert Path(said.text_path).read_text() == "It was the best of times,\nit was the worst of times.\n"
    assert json.loads(Path(said.segments_path).read_text()) == RESULT
    assert (said.language, said.seconds, said.segments, said.words) == ("en", 4.0, 2, 12)
    [argv] = here.ran
    assert argv[:3] == [sys.executable, "-P", str(fake)]
    assert argv[argv.index("--sound") + 1] == f"file:{here.folder}/-a:b.wav"
    assert argv[argv.index("--language") + 1] == "en"


def test_the_cpu_claim_becomes_its_threads_and_the_network_is_off(tmp_path: Path, fake: Path) -> None:
    """Field cases 34 and 42: two programs at once do not take every core, and nothing is downloaded."""
    here = bench(tmp_path)
    here.cpu = 3
    (here.folder / "a.wav").touch()
    write(
        fake,
        "assert sys.argv[sys.argv.index('--threads') + 1] == os.environ['OMP_NUM_THREADS'] == '3'",
        "assert os.environ['HF_HUB_OFFLINE'] == '1'",
        f"open(out, 'w').write(json.dumps({RESULT!r}))",
    )
    assert transcribe(here.ctx, TranscribeInput(audio="a.wav")).words == 12


def test_segments_tell_how_far_it_is_and_rubbish_tells_nothing(tmp_path: Path, fake: Path) -> None:
    """Progress is advice."""
    here = bench(tmp_path)
    (here.folder / "a.wav").touch()
    write(
        fake,
        r"os.write(1, b'{\"done_s\": 1, \"total_s\": 4, \"speed\": 2}\n\xff\n[]\n{\"done_s\": null}\n')",
        r"os.write(1, b'{\"done_s\": 3, \"total_s\": 4, \"speed\": 0}\n{\"done_s\": 1, \"total_s\": 0, \"speed\": 1}\n{')",
        f"open(out, 'w').write(json.dumps({RESULT!r}))",
    )
    transcribe(here.ctx, TranscribeInput(audio="a.wav"))
    assert here.told == [(0.25, "transcribing", 2.0, 1.5), (0.75, "transcribing", 0.0, None)]


@pytest.mark.parametrize(
    ("code", "failure", "retryable"),
    [
        (3, FailureCode.UNAVAILABLE, False),
        (4, FailureCode.UNAVAILABLE, False),
        (5, FailureCode.INVALID_DATA, False),
        (1, FailureCode.SUBPROCESS, False),
        (-9, FailureCode.SUBPROCESS, True),
    ],
)
def test_how_it_ended_decides_what_is_said(
    tmp_path: Path, fake: Path, code: int, failure: FailureCode, *, retryable: bool
) -> None:
    """Not installed, bad model, bad sound, a fault, killed from outside."""
    here = bench(tmp_path)
    (here.folder / "a.wav").touch()
    (here.workspace / "segments.json").write_text(json.dumps(RESULT))
    end = f"os.kill(os.getpid(), {-code})" if code < 0 else f"sys.exit({code})"
    write(fake, "print('[error] because', file=sys.stderr, flush=True)", end)
    with pytest.raises(OperationFailed) as caught:
        transcribe(here.ctx, TranscribeInput(audio="a.wav"))
    assert caught.value.code is failure
    assert caught.value.retryable is retryable
    assert ("because" in caught.value.message) is (code > 0)


def test_what_an_earlier_attempt_left_is_not_taken_for_a_result(tmp_path: Path, fake: Path) -> None:
    """The workspace is that of the node, not of the attempt."""
    here = bench(tmp_path)
    (here.folder / "a.wav").touch()
    (here.workspace / "segments.json").write_text(json.dumps(RESULT))
    write(fake, "pass")
    with pytest.raises(OperationFailed) as caught:
        transcribe(here.ctx, TranscribeInput(audio="a.wav"))
    assert caught.value.code is FailureCode.MALFORMED_OUTPUT


@pytest.mark.media
@needs_ffmpeg
@needs_whisper
def test_the_real_engine_writes_what_it_hears_and_leaves_no_partial(tmp_path: Path) -> None:
    """A tone is no speech; what matters here is that model, sound and files come together offline."""
    here = bench(tmp_path)
    make(here.folder / "a:b.wav", "-f", "lavfi", "-i", "sine=duration=2", "-ac", "1", "-ar", "16000")
    heard = transcribe(here.ctx, TranscribeInput(audio="a:b.wav"))
    assert heard.seconds == pytest.approx(2, abs=0.1)
    assert heard.language == "en"
    assert sorted(path.name for path in here.workspace.iterdir()) == [
        "segments.json",
        "speech.srt",
        "speech.txt",
    ]


@pytest.mark.media
@needs_whisper
def test_the_real_engine_calls_rubbish_unreadable(tmp_path: Path) -> None:
    """The fault of the file, in one line."""
    here = bench(tmp_path)
    (here.folder / "a.wav").write_text("garbage")
    with pytest.raises(OperationFailed) as caught:
        transcribe(here.ctx, TranscribeInput(audio="a.wav"))
    assert caught.value.code is FailureCode.INVALID_DATA
    assert "cannot be read as sound" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.media
@needs_whisper
def test_the_real_engine_calls_a_model_it_cannot_load_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Should damage get past the checks before it, it is still no transient fault."""
    here = bench(tmp_path)
    (here.folder / "a.wav").touch()
    model = here.folder / "m"
    model.mkdir()
    (model / "model.bin").write_bytes(b"\x06\0\0\0nothing")
    monkeypatch.setattr(speech, "find_model", lambda folder, name, **_: folder / name)
    with pytest.raises(OperationFailed) as caught:
        transcribe(here.ctx, TranscribeInput(audio="a.wav", model="m"))
    assert caught.value.code is FailureCode.UNAVAILABLE
    assert "cannot be loaded" in caught.value.message
    assert not caught.value.retryable
