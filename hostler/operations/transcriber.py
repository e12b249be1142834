"""Turn speech into segments with faster-whisper, in a process that can be ended and whose memory is freed.

Run as a script, it needs faster-whisper and nothing of this project. It prints one JSON line of progress for
each segment and leaves the whole result in the file it was told, at once or not at all. It never goes to the
network.

Exit codes: 0 done, 3 faster-whisper is not installed, 4 the model cannot be loaded, 5 the sound cannot be
read.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # read when the libraries below are imported

NOT_INSTALLED = 3
BAD_MODEL = 4
BAD_SOUND = 5

try:
    import av
    from faster_whisper import WhisperModel
except ImportError as fault:
    sys.stderr.write(f"[error] {fault}\n")
    sys.exit(NOT_INSTALLED)


def arguments(argv: list[str]) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description="Transcribe one file with faster-whisper, offline.")
    parser.add_argument("--model", required=True, help="folder of a CTranslate2 model")
    parser.add_argument("--sound", required=True, help="what to transcribe, as ffmpeg names it: file:/absolute/path")
    parser.add_argument("--out", required=True, type=Path, help="JSON file to make")
    parser.add_argument("--threads", required=True, type=int)
    parser.add_argument("--language", default=None, help="ISO 639-1; without it, it is detected")
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--compute-type", default="int8")
    return parser.parse_args(argv)


def told(segments: Iterable[Any], seconds: float) -> Iterator[dict[str, Any]]:
    """Pass the segments on as they come, printing how far they are."""
    began = time.monotonic()
    for segment in segments:
        speed = segment.end / max(1e-3, time.monotonic() - began)
        line = {"done_s": segment.end, "total_s": seconds, "speed": round(speed, 3)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        yield {"start": segment.start, "end": segment.end, "text": segment.text.strip()}


def save(path: Path, result: dict[str, Any]) -> None:
    """Write *result* under its final name, whole."""
    partial = path.with_name(f".{path.name}")
    partial.write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")
    partial.replace(path)


def main(argv: list[str]) -> int:
    """Transcribe what the command line says."""
    asked = arguments(argv)
    try:
        model = WhisperModel(
            asked.model,
            device="cpu",
            compute_type=asked.compute_type,
            cpu_threads=asked.threads,
            num_workers=1,
            local_files_only=True,
        )
    except (OSError, RuntimeError, ValueError) as fault:
        sys.stderr.write(f"[error] the model in {asked.model} cannot be loaded: {fault}\n")
        return BAD_MODEL
    try:
        # one temperature, no prompt from what came before: the same sound gives the same text, and no loops
        segments, info = model.transcribe(
            asked.sound,
            language=asked.language,
            beam_size=asked.beam_size,
            temperature=0.0,
            condition_on_previous_text=False,
        )
    except (av.FFmpegError, OSError, IndexError) as fault:
        sys.stderr.write(f"[error] {asked.sound.removeprefix('file:')} cannot be read as sound: {fault}\n")
        return BAD_SOUND
    found = list(told(segments, info.duration))
    save(asked.out, {"language": info.language, "seconds": info.duration, "segments": found})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
