"""ffmpeg: found and called.

Paths reach it only as `file:` and an absolute path, so that no name is read as an option or a protocol. It
writes under a short name of its own in the workspace; the caller's name appears only when it ended well.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from actors.context import Context, OperationFailed
from hostler.operations.ffmpeg_faults import failure
from hostler.operations.progress import ProgressReader
from store.policy import FailureCode

FFMPEG: Final = "HOSTLER_FFMPEG"
FFPROBE: Final = "HOSTLER_FFPROBE"
"""Variables that name the programs, wherever PATH leads."""
INSTALL: Final = f"install ffmpeg, name it in {FFMPEG}, or: pip install 'hostler[media]'"


def find_ffmpeg(environ: Mapping[str, str]) -> Path:
    """Return the ffmpeg that a variable names, else the system's, else the binary of the package imageio-ffmpeg.

    Args:
        environ: Its PATH is searched.

    Raises:
        OperationFailed: There is none, or what the variable names is no program.

    """
    named = _named(environ, FFMPEG)
    if named is not None:
        return named
    searched = environ.get("PATH", os.defpath)
    found = shutil.which("ffmpeg", path=searched)
    if found is not None:
        return Path(found).absolute()
    try:
        import imageio_ffmpeg  # noqa: PLC0415 - an optional extra, needed only where the system has none

        return Path(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        raise OperationFailed(FailureCode.UNAVAILABLE, f"ffmpeg not found; searched PATH={searched}", INSTALL) from None


def _named(environ: Mapping[str, str], variable: str) -> Path | None:
    name = environ.get(variable)
    if not name:
        return None
    if not Path(name).is_absolute() or not os.access(name, os.X_OK) or Path(name).is_dir():
        what = f"{variable} is {name}, which is no program"
        raise OperationFailed(FailureCode.UNAVAILABLE, what, "give the absolute path of one, or take the variable away")
    return Path(name)


def find_ffprobe(environ: Mapping[str, str]) -> Path | None:
    """Return the ffprobe that a variable names, else the system's, None if there is none.

    Args:
        environ: Its PATH is searched.

    Raises:
        OperationFailed: What the variable names is no program.

    """
    named = _named(environ, FFPROBE)
    if named is not None:
        return named
    found = shutil.which("ffprobe", path=environ.get("PATH", os.defpath))
    return Path(found).absolute() if found is not None else None


def url(path: Path) -> str:
    """Return *path* as ffmpeg takes it literally, whatever characters it holds."""
    return f"file:{path.absolute()}"


def cpu_threads(ctx: Context) -> int:
    """Return how many threads this node may use: its cpu claim."""
    return ctx.lease.claims.get("cpu", 1) if ctx.lease is not None else 1


def require_file(ctx: Context, text: str) -> Path:
    """Return *text* as the absolute path of a file that exists.

    Raises:
        OperationFailed: There is no such file.

    """
    path = ctx.path(text)
    try:
        if path.is_file():
            return path
        what = "is a folder, not a file" if path.is_dir() else "does not exist"
    except OSError as error:  # too long, a folder that may not be searched
        what = f"cannot be opened: {error.strerror}"
    raise OperationFailed(FailureCode.INVALID_DATA, f"{path} {what}", "check the path and whether the disk is mounted")


def encode(
    ctx: Context,
    *,
    inputs: Sequence[tuple[Sequence[str], Path]],
    options: Sequence[str],
    name: str,
    duration_s: float | None,
    doing: str,
) -> Path:
    """Run ffmpeg once and return the file it made.

    Args:
        ctx: The node.
        inputs: For each input the options before it, and its path.
        options: Options of the output.
        name: File name of the result in the workspace.
        duration_s: Length of the media, seconds, for progress; None is unknown.
        doing: A word for the view, `transcoding`.

    Raises:
        OperationFailed: ffmpeg is missing, failed or wrote nothing; nothing has the name then.

    """
    reader = ProgressReader(duration_s)

    def show(chunk: bytes) -> None:
        reading = reader.feed(chunk)
        if reading is not None:
            ctx.progress(reading.fraction, doing, speed=reading.speed, left_s=reading.left_s)

    made = write(ctx, inputs=inputs, options=options, name=name, on_progress=show)
    if made is None:
        raise OperationFailed(
            FailureCode.MALFORMED_OUTPUT,
            "ffmpeg found nothing to write",
            "check the source, and what filters leave of it",
        )
    return made


def write(
    ctx: Context,
    *,
    inputs: Sequence[tuple[Sequence[str], Path]],
    options: Sequence[str],
    name: str,
    on_progress: Callable[[bytes], None] | None = None,
) -> Path | None:
    """Run ffmpeg once and return the file it made, None if it found nothing to write.

    Args:
        ctx: The node.
        inputs: For each input the options before it, and its path.
        options: Options of the output.
        name: File name of the result in the workspace.
        on_progress: Called with each chunk of what it says of its progress.

    Raises:
        OperationFailed: ffmpeg is missing or failed; nothing has the name then.

    """
    threads = str(cpu_threads(ctx))
    partial = ctx.workspace / f"part{Path(name).suffix}"
    partial.unlink(missing_ok=True)
    argv: list[str] = [str(find_ffmpeg(ctx.environment())), "-nostdin", "-hide_banner", "-y"]
    argv += ["-nostats", "-loglevel", "level+info", "-progress", "pipe:1", "-filter_threads", threads]
    for before, path in inputs:
        argv += ["-threads", threads, *before, "-i", url(path)]
    argv += [*options, "-threads", threads, url(partial)]
    completed = ctx.run(argv, on_stdout=on_progress, check=False)
    if completed.code != 0:
        raise failure("ffmpeg", completed.code, completed.stderr)
    if not partial.exists():
        return None
    final = ctx.workspace / name
    partial.replace(final)
    return final
