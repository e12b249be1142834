"""Contact sheets by a real ffmpeg: which frames, where, how large."""

import struct
import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from actors.context import OperationFailed
from hostler.operations.contact_sheet import GAP, ThumbnailInput, thumbnail
from hostler.operations.ffmpeg import find_ffmpeg
from store.policy import Effect, FailureCode
from tests.hostler.operations.support import Bench, bench, clip, executable, make, needs_av, needs_ffmpeg

pytestmark = [pytest.mark.media, needs_ffmpeg, needs_av]


def pixels(path: Path, *, crop: str = "") -> bytes:
    """Return a picture as bytes of RGB."""
    filters = ["-vf", crop] if crop else []
    argv = [str(find_ffmpeg({"PATH": ""})), "-loglevel", "error", "-i", f"file:{path}", *filters]
    return subprocess.run([*argv, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout


def steps(path: Path, colours: list[str], size: str = "320x180") -> Path:
    """Make a video that shows each colour for a second."""
    inputs = [word for each in colours for word in ("-f", "lavfi", "-i", f"color=c={each}:size={size}:rate=10:d=1")]
    joined = "".join(f"[{number}]" for number in range(len(colours))) + f"concat=n={len(colours)}"
    return make(path, *inputs, "-filter_complex", joined, "-c:v", "libx264", "-preset", "ultrafast")


def tile_colours(here: Bench, made: str, *, columns: int, rows: int, width: int, height: int) -> list[tuple[int, ...]]:
    found = []
    for row in range(rows):
        for column in range(columns):
            x, y = GAP + column * (width + GAP) + width // 2, GAP + row * (height + GAP) + height // 2
            found.append(tuple(pixels(Path(made), crop=f"crop=1:1:{x}:{y}:exact=1,format=rgb24")[:3]))
    return found


def near(colour: tuple[int, ...], wanted: tuple[int, int, int]) -> bool:
    return all(abs(one - other) < 40 for one, other in zip(colour, wanted, strict=True))


RED, GREEN, BLUE, WHITE = (255, 0, 0), (0, 128, 0), (0, 0, 255), (255, 255, 255)


def test_frames_come_from_the_whole_clip_in_reading_order(tmp_path: Path) -> None:
    """One from the middle of each part, left to right, then down."""
    here = bench(tmp_path)
    steps(here.folder / "in.mp4", ["red", "green", "blue", "white"])
    made = thumbnail(here.ctx, ThumbnailInput(path="in.mp4", rows=2, columns=2, width=64, format="png"))
    head = Path(made.path).read_bytes()[:24]
    assert struct.unpack(">16x2I", head) == (made.width, made.height) == (2 * 64 + 3 * GAP, 2 * 36 + 3 * GAP)
    colours = tile_colours(here, made.path, columns=2, rows=2, width=64, height=36)
    assert all(map(near, colours, (RED, GREEN, BLUE, WHITE))), colours
    assert made.bytes == Path(made.path).stat().st_size
    assert Path(made.path).parent == here.workspace


def test_a_jpeg_is_one_picture_and_progress_grows_to_its_end(tmp_path: Path) -> None:
    """The usual case."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4", seconds=1)
    made = thumbnail(here.ctx, ThumbnailInput(path="in.mp4", rows=1, columns=3, width=32))
    assert Path(made.path).name == "sheet.jpg"
    assert Path(made.path).read_bytes()[:3] == b"\xff\xd8\xff"
    assert len(pixels(Path(made.path))) == made.width * made.height * 3
    told = [fraction for fraction, _, _, _ in here.told if fraction is not None]
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert {text for _, text, _, _ in here.told} == {"making a contact sheet"}


def test_a_film_whose_picture_ends_before_its_sound_shows_its_last_frame_to_the_end(tmp_path: Path) -> None:
    """There is no frame to be found after it."""
    here = bench(tmp_path)
    red = ("-f", "lavfi", "-i", "color=c=red:size=64x36:rate=10:d=1")
    make(here.folder / "in.mkv", *red, "-f", "lavfi", "-i", "sine=duration=4", "-c:v", "libx264", "-c:a", "aac")
    made = thumbnail(here.ctx, ThumbnailInput(path="in.mkv", rows=1, columns=4, width=32, format="png"))
    assert all(near(each, RED) for each in tile_colours(here, made.path, columns=4, rows=1, width=32, height=18))


@pytest.mark.parametrize("name", ["-x.mp4", "a:b.mp4", "100%d '[x],;.mp4"])
def test_odd_names_and_places_are_just_names(tmp_path: Path, name: str) -> None:
    """Also a workspace with a pattern in its path."""
    (tmp_path / "50%03d '[").mkdir()
    here = bench(tmp_path / "50%03d '[")
    clip(tmp_path / "plain.mp4", seconds=0.5, sound=False).rename(here.folder / name)
    assert thumbnail(here.ctx, ThumbnailInput(path=name, rows=1, columns=2, width=32)).bytes > 0


def test_pixels_that_are_not_square_and_upright_films_keep_their_shape(tmp_path: Path) -> None:
    """What a player shows is what the sheet shows."""
    here = bench(tmp_path)
    wide = ("-f", "lavfi", "-i", "color=c=red:size=180x180:rate=5:d=1", "-vf", "setsar=2/1")
    make(here.folder / "wide.mp4", *wide, "-c:v", "libx264")
    made = thumbnail(here.ctx, ThumbnailInput(path="wide.mp4", rows=1, columns=1, width=64, format="png"))
    assert (made.width, made.height) == (64 + 2 * GAP, 32 + 2 * GAP)
    steps(here.folder / "tall.mp4", ["red"], size="90x160")
    made = thumbnail(here.ctx, ThumbnailInput(path="tall.mp4", rows=1, columns=1, width=90, format="png"))
    assert (made.width, made.height) == (90 + 2 * GAP, 160 + 2 * GAP)


def test_what_has_no_picture_or_no_length_is_refused(tmp_path: Path) -> None:
    """Sound alone, and a bare stream that does not tell how long it is."""
    here = bench(tmp_path)
    make(here.folder / "tone.wav", "-f", "lavfi", "-i", "sine=duration=0.5")
    with pytest.raises(OperationFailed, match="has no picture"):
        thumbnail(here.ctx, ThumbnailInput(path="tone.wav"))
    make(here.folder / "bare.h264", "-f", "lavfi", "-i", "testsrc2=size=64x36:d=1", "-c:v", "libx264", "-f", "h264")
    with pytest.raises(OperationFailed, match="does not tell its length") as caught:
        thumbnail(here.ctx, ThumbnailInput(path="bare.h264"))
    assert caught.value.code is FailureCode.INVALID_DATA


def test_a_video_without_a_frame_is_told(tmp_path: Path) -> None:
    """An ffmpeg that finds nothing ends with 0."""
    here = bench(tmp_path)
    clip(here.folder / "in.mp4", seconds=0.5)
    executable(tmp_path / "bin" / "ffmpeg", "#!/bin/sh\nexit 0\n")
    here.path_variable = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    with pytest.raises(OperationFailed, match=r"has no frame at 0\.0 s") as caught:
        thumbnail(here.ctx, ThumbnailInput(path="in.mp4"))
    assert caught.value.code is FailureCode.MALFORMED_OUTPUT


@pytest.mark.parametrize(
    "wrong",
    [{"rows": 0}, {"columns": 11}, {"width": 33}, {"width": 4098}, {"format": "gif"}, {"rows": 9, "width": 1000}],
)
def test_the_size_is_checked_before_anything_runs(wrong: dict[str, object]) -> None:
    """Not more than a machine can hold."""
    with pytest.raises(ValidationError):
        ThumbnailInput.model_validate({"path": "in.mp4", **wrong})


def test_it_claims_as_the_others_do() -> None:
    """Two programs share the machine by these claims."""
    assert dict(thumbnail.policy.claims) == {"ffmpeg": 1, "cpu": 1}
    assert thumbnail.policy.effect is Effect.LOCAL_DERIVED_WRITE
