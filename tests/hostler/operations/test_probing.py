"""Looking into media, by ffprobe and by PyAV."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from actors.context import OperationFailed
from hostler.operations.media import Source, probe
from hostler.operations.probing import Audio, Media, Subtitles, Video, describe
from store.policy import Effect, FailureCode
from tests.hostler.operations.support import bench, clip, executable, make, needs_av, needs_ffmpeg

RECORDED = {
    "programs": [],
    "streams": [
        {
            "codec_name": "png",
            "codec_type": "video",
            "width": 600,
            "height": 600,
            "disposition": {"attached_pic": 1},
        },
        {
            "codec_name": "h264",
            "codec_type": "video",
            "width": 1280,
            "height": 720,
            "avg_frame_rate": "30000/1001",
            "duration": "44.360000",
            "disposition": {"attached_pic": 0},
            "tags": {"language": "und"},
        },
        {
            "codec_name": "aac",
            "codec_type": "audio",
            "sample_rate": "48000",
            "channels": 1,
            "avg_frame_rate": "0/0",
            "duration": "44.374125",
            "disposition": {"attached_pic": 0},
        },
        {"codec_name": "mov_text", "codec_type": "subtitle", "tags": {"language": "eng"}},
        {"codec_type": "data"},
    ],
    "format": {"format_name": "mov,mp4,m4a,3gp,3g2,mj2", "duration": "44.374125"},
}
"""What ffprobe 5.1 printed for a talk with a cover picture and subtitles."""


def fake_ffprobe(folder: Path, answer: str, *, code: int = 0) -> Path:
    (folder / "answer").write_text(answer)
    return executable(
        folder / "ffprobe",
        f"#!{sys.executable}\nimport sys, pathlib\nassert sys.argv[-1].startswith('file:/')\n"
        f"sys.stdout.write(pathlib.Path({str(folder / 'answer')!r}).read_text())\nsys.exit({code})\n",
    )


def test_ffprobes_words_become_a_description(tmp_path: Path) -> None:
    """Through the process, with the recorded answer of a real one."""
    here = bench(tmp_path)
    (here.folder / "talk.mp4").write_bytes(b"x" * 7)
    fake_ffprobe(tmp_path, json.dumps(RECORDED))
    here.path_variable = str(tmp_path)
    assert probe(here.ctx, Source(path="talk.mp4")) == Media(
        path=str(here.folder / "talk.mp4"),
        format="mov,mp4,m4a,3gp,3g2,mj2",
        bytes=7,
        seconds=44.374,
        video=Video(codec="h264", width=1280, height=720, fps=29.97, seconds=44.36),
        audio=Audio(codec="aac", sample_rate=48000, channels=1, seconds=44.374),
        subtitles=(Subtitles(codec="mov_text", language="eng"),),
    )
    assert here.ran[0][0] == str(tmp_path / "ffprobe")


def test_an_answer_that_is_not_json_is_the_tools_fault(tmp_path: Path) -> None:
    """One line, no traceback."""
    here = bench(tmp_path)
    (here.folder / "talk.mp4").touch()
    fake_ffprobe(tmp_path, "{")
    here.path_variable = str(tmp_path)
    with pytest.raises(OperationFailed) as caught:
        probe(here.ctx, Source(path="talk.mp4"))
    assert caught.value.code is FailureCode.MALFORMED_OUTPUT


@pytest.mark.parametrize("probed", [None, [], {}, {"format": 3, "streams": [{}]}, {"format": {"duration": "N/A"}}])
def test_what_a_probe_leaves_out_is_unknown(tmp_path: Path, probed: object) -> None:
    """Raw streams have no duration, odd ones no codec."""
    file = tmp_path / "f"
    file.write_bytes(b"12")
    assert describe(probed, file) == Media(path=str(file), format="unknown", bytes=2)


def test_probing_only_reads() -> None:
    """Its policy says so."""
    assert probe.policy.effect is Effect.LOCAL_READ


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    """Before any process is started."""
    here = bench(tmp_path)
    with pytest.raises(OperationFailed, match=r"nosuch\.mp4 does not exist"):
        probe(here.ctx, Source(path="nosuch.mp4"))
    with pytest.raises(OperationFailed, match="is a folder, not a file"):
        probe(here.ctx, Source(path="."))
    assert here.ran == []


def check_clip(tmp_path: Path, search: str) -> None:
    """A real clip under a hard name is described right, and rubbish is refused."""
    here = bench(tmp_path)
    file = clip(here.folder / "-a:b é.mp4", seconds=2)
    here.path_variable = search
    seen = probe(here.ctx, Source(path=file.name))
    assert seen.path == str(file)
    assert seen.bytes == file.stat().st_size
    assert seen.seconds == pytest.approx(2, abs=0.1)
    assert seen.video == Video(codec="h264", width=320, height=180, fps=10.0, seconds=seen.video.seconds)
    assert seen.audio == Audio(codec="aac", sample_rate=44100, channels=1, seconds=seen.audio.seconds)
    assert "mp4" in seen.format
    (here.folder / "g.mp4").write_text("garbage")
    with pytest.raises(OperationFailed) as caught:
        probe(here.ctx, Source(path="g.mp4"))
    assert caught.value.code is FailureCode.INVALID_DATA
    assert "cannot be read as media" in caught.value.message
    assert "Invalid data found" in caught.value.message


@pytest.mark.media
@needs_ffmpeg
@needs_av
def test_pyav_describes_a_real_clip_where_there_is_no_ffprobe(tmp_path: Path) -> None:
    """The way of a bare machine."""
    check_clip(tmp_path, str(tmp_path))


@pytest.mark.media
@needs_ffmpeg
@pytest.mark.skipif(
    shutil.which("ffprobe") is None, reason="the system has no ffprobe; a recorded answer is tested above"
)
def test_ffprobe_describes_a_real_clip(tmp_path: Path) -> None:
    """The way of a machine with ffmpeg installed."""
    check_clip(tmp_path, str(Path(shutil.which("ffprobe") or "").parent))


@pytest.mark.media
@needs_ffmpeg
@needs_av
def test_pyav_sees_sound_without_picture(tmp_path: Path) -> None:
    """A recording."""
    here = bench(tmp_path)
    make(here.folder / "tone.mp3", "-f", "lavfi", "-i", "sine=duration=1")
    here.path_variable = str(tmp_path)
    seen = probe(here.ctx, Source(path="tone.mp3"))
    assert seen.video is None
    assert seen.audio is not None
    assert seen.audio.codec == "mp3"


def test_without_ffprobe_and_pyav_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that cannot be imported stands in the way of PyAV."""
    (tmp_path / "av.py").write_text("raise ImportError('no av here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    here = bench(tmp_path)
    (here.folder / "talk.mp4").touch()
    here.path_variable = str(tmp_path)
    with pytest.raises(OperationFailed) as caught:
        probe(here.ctx, Source(path="talk.mp4"))
    assert caught.value.code is FailureCode.UNAVAILABLE
    assert "pip install 'hostler[media]'" in caught.value.todo
