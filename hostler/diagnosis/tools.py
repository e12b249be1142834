"""ffmpeg, ffprobe and whisper: whether they are there, whether they run, and what they can."""

import importlib.util
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from actors.context import OperationFailed
from hostler.diagnosis.findings import Finding
from hostler.operations.ffmpeg import find_ffmpeg, find_ffprobe
from hostler.operations.whisper_model import DEFAULT_MODEL, find_model

EXTRA: Final = "pip install 'hostler[media]'"
ASKED_S: Final = 10.0
ABILITIES: Final = (
    ("-encoders", "libx264", "the default codec of media.transcode; name another with `codec`"),
    ("-encoders", "aac", "the default codec of sound; name another with `audio_codec`"),
    ("-filters", "subtitles", "media.burn-subtitles needs it; use an ffmpeg with libass"),
)
"""What the built-in operations use of ffmpeg unless told otherwise: where it is listed, its name, and what helps."""


def look_at_tools(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the programs that the built-in operations use.

    Args:
        environ: Its PATH is searched.

    """
    yield from _ffmpeg(environ)
    try:
        ffprobe = find_ffprobe(environ)
    except OperationFailed as failed:
        yield Finding(name="ffprobe", said=failed.message, todo=failed.todo)
    else:
        yield _ffprobe(ffprobe, environ)
    yield _whisper()


def _ffprobe(program: Path | None, environ: Mapping[str, str]) -> Finding:
    if program is not None:
        return _runs("ffprobe", program, environ)
    if importlib.util.find_spec("av") is not None:
        return Finding(name="ffprobe", said="not there; PyAV does its work")
    return Finding(name="ffprobe", said="neither ffprobe nor PyAV is there", todo=EXTRA)


def _ffmpeg(environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        program = find_ffmpeg(environ)
    except OperationFailed as failed:
        yield Finding(name="ffmpeg", said=failed.message, todo=failed.todo)
        return
    found = _runs("ffmpeg", program, environ)
    yield found
    if found.todo:
        return
    listed = {option: _said(program, environ, option) for option in dict.fromkeys(option for option, *_ in ABILITIES)}
    for option, name, helps in ABILITIES:
        if f" {name} " not in listed[option]:
            yield Finding(name="ffmpeg", said=f"{program} has no {name}", todo=helps)


def _runs(name: str, program: Path, environ: Mapping[str, str]) -> Finding:
    """Run a program once: what is there may lack a library, or be for another machine."""
    said = _said(program, environ, "-version").split()
    if said[1:2] == ["version"]:
        return Finding(name=name, said=f"{program}, version {said[2]}")
    return Finding(name=name, said=f"{program} does not run", todo=f"try `{program} -version`, then install it anew")


def _said(program: Path, environ: Mapping[str, str], option: str) -> str:
    argv = [str(program), "-hide_banner", option]
    try:
        done = subprocess.run(
            argv, env=dict(environ), stdin=subprocess.DEVNULL, capture_output=True, timeout=ASKED_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def _whisper() -> Finding:
    if importlib.util.find_spec("faster_whisper") is None:
        return Finding(name="whisper", said="faster-whisper is not there", todo=EXTRA)
    try:
        model = find_model(Path.cwd(), DEFAULT_MODEL)
    except OperationFailed as failed:
        return Finding(name="whisper", said=failed.message, todo=failed.todo)
    return Finding(name="whisper", said=f"faster-whisper {version('faster-whisper')}, whole model {model}")
