"""Subtitles in the picture: drawn by a real ffmpeg, whatever their file is called, or refused with what helps."""

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from actors.context import OperationFailed
from hostler.operations.burning import BurnSubtitlesInput, burn_subtitles
from hostler.operations.ffmpeg import find_ffmpeg
from hostler.operations.media import Source, probe
from store.policy import FailureCode, Resume
from tests.hostler.operations.support import Bench, bench, executable, make, needs_av, needs_ffmpeg

pytestmark = [pytest.mark.media, needs_ffmpeg, needs_av]

SRT = "1\n00:00:01,000 --> 00:00:02,000\nHello, fields & <i>größe</i>\n"
NO_FONTS = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/nonexistent</dir></fontconfig>"""


@pytest.fixture
def here(tmp_path: Path) -> Bench:
    """Give a bench with three black seconds."""
    made = bench(tmp_path)
    black = ("-f", "lavfi", "-i", "color=c=black:size=320x180:rate=10:d=3")
    tone = ("-f", "lavfi", "-i", "sine=duration=3")
    make(made.folder / "in.mp4", *black, *tone, "-c:v", "libx264", "-preset", "ultrafast")
    return made


def bright(path: str, at_s: float) -> int:
    """Count the bright pixels of a frame, above and below its middle."""
    argv = [str(find_ffmpeg({"PATH": ""})), "-loglevel", "error", "-ss", str(at_s), "-i", f"file:{path}"]
    done = subprocess.run(
        [*argv, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray", "-"], capture_output=True, check=True
    )
    return sum(value > 150 for value in done.stdout)


def has_font() -> bool:
    listed = subprocess.run(["sh", "-c", "fc-list; ls -R /usr/share/fonts"], capture_output=True, check=False)
    return b".ttf" in listed.stdout or b".otf" in listed.stdout


needs_font = pytest.mark.skipif(not has_font(), reason="no font is installed, as fonts-dejavu-core has some")


@needs_font
@pytest.mark.parametrize("name", ["in.srt", "it's [1], a:b;c=d\\e %d\n.srt", "-x.srt", "[in]", "a,subtitles=b.srt"])
def test_a_line_is_seen_while_it_is_said_and_only_then_whatever_its_file_is_called(here: Bench, name: str) -> None:
    """Quotes, colons, commas and brackets of a path are syntax to a filter."""
    (here.folder / name).write_text(SRT)
    made = burn_subtitles(here.ctx, BurnSubtitlesInput(path="in.mp4", subtitles=name, preset="ultrafast"))
    assert bright(made.path, 1.5) > 100
    assert bright(made.path, 0.5) == bright(made.path, 2.5) == 0
    seen = probe(here.ctx, Source(path=made.path))
    assert seen.subtitles == ()
    assert seen.audio is not None
    assert made.seconds == pytest.approx(3, abs=0.2)
    assert here.told[-1][:2] == (1.0, "burning subtitles")


@needs_font
@pytest.mark.parametrize(
    ("raw", "encoding"),
    [
        (SRT.encode("utf-8-sig"), None),
        (SRT.encode("utf-16"), None),
        (SRT.encode("cp1252"), "cp1252"),
        (SRT.replace("\n", "\r\n").encode(), None),
        (SRT.replace("\n", "\r").encode("latin-1"), "latin-1"),
    ],
    ids=["utf-8-sig", "utf-16", "cp1252", "crlf", "cr"],
)
def test_text_is_read_as_it_is_encoded(here: Bench, raw: bytes, encoding: str | None) -> None:
    """ffmpeg gets UTF-8 with plain line ends, and so draws the same for all."""
    (here.folder / "in.srt").write_bytes(raw)
    asked = BurnSubtitlesInput(
        path="in.mp4", subtitles="in.srt", encoding=encoding, preset="ultrafast", audio_codec="copy"
    )
    made = burn_subtitles(here.ctx, asked)
    assert (here.workspace / "subtitles.srt").read_bytes() == SRT.encode()
    assert bright(made.path, 1.5) > 100


@needs_font
def test_letters_have_the_size_that_is_asked_for(here: Bench) -> None:
    """Larger letters, more light."""
    (here.folder / "in.srt").write_text(SRT)
    asked = {"path": "in.mp4", "subtitles": "in.srt", "preset": "ultrafast"}
    small = bright(burn_subtitles(here.ctx, BurnSubtitlesInput.model_validate({**asked, "font_size": 16})).path, 1.5)
    large = bright(burn_subtitles(here.ctx, BurnSubtitlesInput.model_validate({**asked, "font_size": 48})).path, 1.5)
    assert large > 2 * small > 0


@needs_font
def test_letters_that_no_font_has_are_named_before_anything_is_encoded(here: Bench) -> None:
    """Else there would be boxes in the film, and nobody told."""
    (here.folder / "in.srt").write_text(SRT.replace("Hello", "Hello \U000131ba\U0001d8a9"))
    asked = {"path": "in.mp4", "subtitles": "in.srt", "preset": "ultrafast"}
    with pytest.raises(OperationFailed) as caught:
        burn_subtitles(here.ctx, BurnSubtitlesInput.model_validate(asked))
    assert caught.value.code is FailureCode.UNSUPPORTED_PLAN
    assert "(U+131BA)" in caught.value.message
    assert "(U+1D8A9)" in caught.value.message
    assert "allow_missing_letters" in caught.value.todo
    assert not (here.workspace / "video.mp4").exists()
    asked["allow_missing_letters"] = True  # type: ignore[assignment]
    assert bright(burn_subtitles(here.ctx, BurnSubtitlesInput.model_validate(asked)).path, 1.5) > 100


def test_no_font_at_all_is_told_with_what_to_install(
    here: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ffmpeg ends with 0 and draws nothing."""
    (tmp_path / "fonts.conf").write_text(NO_FONTS)
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    (here.folder / "in.srt").write_text(SRT)
    with pytest.raises(OperationFailed, match="there is no font") as caught:
        burn_subtitles(here.ctx, BurnSubtitlesInput(path="in.mp4", subtitles="in.srt"))
    assert caught.value.code is FailureCode.UNSUPPORTED_PLAN
    assert "fonts-dejavu-core" in caught.value.todo


def test_an_ffmpeg_without_libass_is_named_with_what_helps(here: Bench, tmp_path: Path) -> None:
    """A small build has no such filter."""
    said = "[AVFilterGraph @ 0x1] [error] No such filter: 'subtitles'"
    fake = executable(tmp_path / "bin" / "ffmpeg", f'#!/bin/sh\necho "{said}" >&2\nexit 8\n')
    here.path_variable = f"{fake.parent}:/usr/bin:/bin"
    (here.folder / "in.srt").write_text(SRT)
    with pytest.raises(OperationFailed) as caught:
        burn_subtitles(here.ctx, BurnSubtitlesInput(path="in.mp4", subtitles="in.srt"))
    assert caught.value.code is FailureCode.UNSUPPORTED_PLAN
    assert caught.value.message == f"{fake} was built without libass, which draws subtitles"
    assert "media.add-subtitles" in caught.value.todo


def test_a_film_in_which_nobody_speaks_is_encoded_as_it_is(here: Bench) -> None:
    """An empty file is no fault, as in media.add-subtitles, and needs no font."""
    (here.folder / "in.srt").write_text("\n")
    made = burn_subtitles(here.ctx, BurnSubtitlesInput(path="in.mp4", subtitles="in.srt", preset="ultrafast"))
    assert bright(made.path, 1.5) == 0
    assert made.seconds == pytest.approx(3, abs=0.2)


@pytest.mark.parametrize(
    ("raw", "encoding", "says"),
    [
        (b"import os\n", None, "holds no SubRip subtitle"),
        (SRT.encode("cp1252"), None, "is not UTF-8: "),
        (SRT.encode(), "no-such", "there is no text encoding no-such"),
        (SRT.encode(), "rot13", "there is no text encoding rot13"),
        (b"\xff" * 9, "ascii", "is not ascii: "),
    ],
)
def test_what_cannot_be_read_as_subtitles_is_refused(here: Bench, raw: bytes, encoding: str | None, says: str) -> None:
    """Nothing is guessed."""
    (here.folder / "in.srt").write_bytes(raw)
    with pytest.raises(OperationFailed) as caught:
        burn_subtitles(here.ctx, BurnSubtitlesInput(path="in.mp4", subtitles="in.srt", encoding=encoding))
    assert says in caught.value.message
    assert caught.value.code is FailureCode.INVALID_DATA


def test_a_file_that_is_far_too_large_is_not_read(here: Bench) -> None:
    """A film given by mistake in its place."""
    with (here.folder / "film.mkv").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(OperationFailed, match="more than subtitles have"):
        burn_subtitles(here.ctx, BurnSubtitlesInput(path="in.mp4", subtitles="film.mkv"))


def test_sound_alone_is_refused(here: Bench) -> None:
    """There is nothing to draw into."""
    make(here.folder / "tone.wav", "-f", "lavfi", "-i", "sine=duration=0.5")
    (here.folder / "in.srt").write_text(SRT)
    with pytest.raises(OperationFailed, match="has no picture"):
        burn_subtitles(here.ctx, BurnSubtitlesInput(path="tone.wav", subtitles="in.srt"))


def test_what_it_may_be_asked_is_checked_before_anything_runs_and_it_claims_as_the_others_do() -> None:
    """Nothing of its input becomes syntax."""
    for wrong in ({"font_size": 3}, {"encoding": "a b"}, {"codec": "-x"}, {"style": "x"}):
        with pytest.raises(ValidationError):
            BurnSubtitlesInput.model_validate({"path": "in.mp4", "subtitles": "in.srt", **wrong})
    assert dict(burn_subtitles.policy.claims) == {"ffmpeg": 1, "cpu": 1}
    assert burn_subtitles.policy.resume is Resume.DETERMINISTIC
