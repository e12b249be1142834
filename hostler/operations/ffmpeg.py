"""ffmpeg: found, called, and understood when it fails.

Paths reach it only as `file:` and an absolute path, so that no name is read as an option or a protocol. It
writes under a short name of its own in the workspace; the caller's name appears only when it ended well.
"""

import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from actors.context import Context, OperationFailed
from hostler.operations.progress import ProgressReader
from store.policy import FailureCode

SIGNAL_BASE: Final = 128
ENDED: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGXCPU})
CRASHED: Final = frozenset({signal.SIGILL, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV})
"""Newer versions of ffmpeg exit with an error number, maybe above 128: not every such code is a signal."""

TRAPPED: Final = 255
"""What ffmpeg exits with when a signal told it to stop."""

INSTALL: Final = "install ffmpeg, or: pip install 'hostler[media]'"
READ_THE_LOG: Final = "read its log with: hostler logs RUN NODE"

_PREFIX: Final = re.compile(r"^(?:\[[^]]*@ 0x[0-9a-f]+\]\s*)*\[(fatal|error|warning|panic)\]\s*")
_GENERIC: Final = re.compile(
    r"Conversion failed|Error opening (?:input|output) files?\b|Error parsing options"
    r"|Error selecting an encoder|Error sending frames|Task finished with error|Terminating thread"
    r"|Could not open encoder before EOF|Nothing was written into output|Failed to set value"
    r"|Error reinitializing filters|Failed to inject frame|Error while processing the decoded data"
    r"|Error initializing output stream"
)


def find_ffmpeg(environ: Mapping[str, str]) -> Path:
    """Return the system's ffmpeg, else the binary of the package imageio-ffmpeg.

    Args:
        environ: Its PATH is searched.

    Raises:
        OperationFailed: There is none.

    """
    searched = environ.get("PATH", os.defpath)
    found = shutil.which("ffmpeg", path=searched)
    if found is not None:
        return Path(found).absolute()
    try:
        import imageio_ffmpeg  # noqa: PLC0415 - an optional extra, needed only where the system has none

        return Path(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        raise OperationFailed(FailureCode.UNAVAILABLE, f"ffmpeg not found; searched PATH={searched}", INSTALL) from None


def find_ffprobe(environ: Mapping[str, str]) -> Path | None:
    """Return the system's ffprobe, None if there is none."""
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
        OperationFailed: ffmpeg is missing or failed; nothing has the name then.

    """
    threads = str(cpu_threads(ctx))
    partial = ctx.workspace / f"part{Path(name).suffix}"
    argv: list[str] = [str(find_ffmpeg(ctx.environment())), "-nostdin", "-hide_banner", "-y"]
    argv += ["-nostats", "-loglevel", "level+info", "-progress", "pipe:1", "-filter_threads", threads]
    for before, path in inputs:
        argv += ["-threads", threads, *before, "-i", url(path)]
    argv += [*options, "-threads", threads, url(partial)]

    reader = ProgressReader(duration_s)

    def show(chunk: bytes) -> None:
        reading = reader.feed(chunk)
        if reading is not None:
            ctx.progress(reading.fraction, doing, speed=reading.speed, left_s=reading.left_s)

    completed = ctx.run(argv, on_stdout=show, check=False)
    if completed.code != 0:
        raise failure("ffmpeg", completed.code, completed.stderr)
    final = ctx.workspace / name
    partial.replace(final)
    return final


def failure(program: str, code: int, stderr: bytes) -> OperationFailed:
    """Explain why a tool of the ffmpeg family failed.

    Args:
        program: Its name.
        code: Its exit code, 128 + signal where a signal ended it.
        stderr: The end of its standard error.

    """
    for full in ("No space left on device", "Disk quota exceeded"):
        if full.encode() in stderr:
            return OperationFailed(
                FailureCode.UNAVAILABLE, f"{program} failed: {full}", "free some space, then retry the node"
            )
    number = code - SIGNAL_BASE
    if number in ENDED or (code == TRAPPED and b"received signal" in stderr):
        by = f"by {signal.Signals(number).name}" if number in ENDED else "by a signal that it handled"
        return OperationFailed(
            FailureCode.SUBPROCESS,
            f"{program} was ended from outside {by}",
            "look whether the machine ran out of memory, then retry the node",
            retryable=True,
        )
    if number in CRASHED:
        return OperationFailed(
            FailureCode.SUBPROCESS, f"{program} crashed with {signal.Signals(number).name}", READ_THE_LOG
        )
    said = complaint(stderr)
    message = f"{program} ended with exit code {code}"
    return OperationFailed(FailureCode.SUBPROCESS, f"{message}: {said}" if said else message, READ_THE_LOG)


def complaint(stderr: bytes) -> str:
    """Return what ffmpeg's standard error says is wrong, one line, without its closing formulas."""
    meaningful: list[str] = []
    other: list[str] = []
    for raw in stderr.decode("utf-8", "replace").splitlines():
        line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in raw).strip()
        found = _PREFIX.match(line)
        if found is None:
            if line:
                other.append(line)
            continue
        text = re.sub(r"^(?:\[[^]]*\]\s*)*", "", line[found.end() :])
        if not text or found[1] == "warning" or text.endswith("around:"):  # ffmpeg echoes what it was given
            continue
        (other if _GENERIC.match(text) else meaningful).append(text)
    distinct = list(dict.fromkeys(meaningful))
    lines = list(dict.fromkeys((*distinct[:1], *distinct[-1:]))) or other[-1:]  # the cause comes first
    return "; ".join(line.rstrip(".") for line in lines)[-1000:]
