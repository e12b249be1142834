"""Speech to text, offline: faster-whisper in a process of its own, the model from a folder or a package."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field

from actors.context import Context, OperationFailed
from hostler.authoring import operation
from hostler.operations.ffmpeg import INSTALL, cpu_threads, require_file, url
from hostler.operations.ffmpeg_faults import READ_THE_LOG, complaint, failure
from hostler.operations.subrip import Segment, clean, subrip
from hostler.operations.whisper_model import DEFAULT_MODEL, find_model
from store.policy import Effect, FailureCode, Policy, Resume

TRANSCRIBER: Final = Path(__file__).with_name("transcriber.py")
NOT_INSTALLED: Final = 3
BAD_MODEL: Final = 4
BAD_SOUND: Final = 5
LINE_BYTES: Final = 4096


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TranscribeInput(_Model):
    """What to transcribe, and how.

    Attributes:
        audio: A file with sound.
        model: Folder of a CTranslate2 Whisper model, or `package:NAME` for a Python package that holds one.
        language: ISO 639-1 code, `en`; None: it is detected.
        beam_size: How many alternatives are followed; 1 is the fastest.
        compute_type: Arithmetic of CTranslate2, `int8`, `float32`.

    """

    audio: str = Field(min_length=1)
    model: str = Field(default=DEFAULT_MODEL, min_length=1)
    language: str | None = Field(default=None, pattern=r"^[a-z]{2,3}$")
    beam_size: int = Field(default=1, ge=1, le=16)
    compute_type: str = Field(default="int8", pattern=r"^[a-z0-9_]+$")


class Transcript(_Model):
    """What was said.

    Attributes:
        path: The SubRip file.
        text_path: The plain text, one line a segment.
        segments_path: JSON: {language, seconds, segments [{start, end, text}]}.
        language: ISO 639-1.
        seconds: Length of the sound.
        segments: How many there are.
        words: How many there are.

    """

    path: str
    text_path: str
    segments_path: str
    language: str
    seconds: float
    segments: int
    words: int


@operation(
    "speech.transcribe",
    version=1,
    policy=Policy(
        effect=Effect.LOCAL_DERIVED_WRITE,
        resume=Resume.DETERMINISTIC,
        claims={"whisper": 1, "cpu": 1},
        max_seconds=12 * 3600,
    ),
)
def transcribe(ctx: Context, input: TranscribeInput) -> Transcript:
    """Write down what is said in a file, as subtitles, as text and as segments."""
    sound = require_file(ctx, input.audio)
    model = find_model(ctx.folder, input.model, between=ctx.check_cancelled)
    result = ctx.workspace / "segments.json"
    result.unlink(missing_ok=True)
    argv = [
        sys.executable,
        "-P",
        str(TRANSCRIBER),
        "--model",
        str(model),
        "--sound",
        url(sound),
        "--out",
        str(result),
    ]
    argv += ["--threads", str(cpu_threads(ctx)), "--beam-size", str(input.beam_size)]
    argv += ["--compute-type", input.compute_type]
    argv += ["--language", input.language] if input.language is not None else []
    completed = ctx.run(argv, env={"HF_HUB_OFFLINE": "1"}, on_stdout=_Listener(ctx).feed, check=False)
    if completed.code != 0:
        raise _failed(completed.code, completed.stderr)
    if not result.is_file():
        raise OperationFailed(
            FailureCode.MALFORMED_OUTPUT, "the transcriber ended well but left no result", READ_THE_LOG
        )
    return _written(ctx.workspace, result)


class _Listener:
    """Shows the transcriber's progress lines; whatever else it prints is not its business."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-LINE_BYTES:]
        for line in lines:
            self._show(line)

    def _show(self, line: bytes) -> None:
        try:
            said = json.loads(line)
            done_s, total_s, speed = float(said["done_s"]), float(said["total_s"]), float(said["speed"])
        except (ValueError, TypeError, KeyError):
            return
        if total_s > 0:
            left_s = max(0.0, total_s - done_s) / speed if speed > 0 else None
            self._ctx.progress(done_s / total_s, "transcribing", speed=speed, left_s=left_s)


def _failed(code: int, stderr: bytes) -> OperationFailed:
    said = complaint(stderr)
    match code:
        case _ if code == NOT_INSTALLED:
            return OperationFailed(FailureCode.UNAVAILABLE, f"speech recognition is not installed: {said}", INSTALL)
        case _ if code == BAD_MODEL:
            return OperationFailed(
                FailureCode.UNAVAILABLE,
                said,
                "install or copy the model again; it is not downloaded from here",
            )
        case _ if code == BAD_SOUND:
            return OperationFailed(FailureCode.INVALID_DATA, said, "check that the file has sound and is whole")
        case _:
            return failure("the transcriber", code, stderr)


def _written(workspace: Path, result: Path) -> Transcript:
    said: dict[str, Any] = json.loads(result.read_bytes())
    segments = [Segment(start_s=part["start"], end_s=part["end"], text=part["text"]) for part in said["segments"]]
    lines = [line for line in (clean(segment.text) for segment in segments) if line]
    subtitles, text = workspace / "speech.srt", workspace / "speech.txt"
    subtitles.write_text(subrip(segments), encoding="utf-8")
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return Transcript(
        path=str(subtitles),
        text_path=str(text),
        segments_path=str(result),
        language=said["language"],
        seconds=round(said["seconds"], 3),
        segments=len(lines),
        words=sum(len(line.split()) for line in lines),
    )
