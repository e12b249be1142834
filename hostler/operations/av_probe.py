"""Print what PyAV sees in one media file, as JSON of ffprobe's shape.

Run as a script of its own, `python av_probe.py file:/abs/path`: it needs PyAV and nothing of this project.

Exit codes: 0 printed, 1 the file cannot be read as media, 3 PyAV is not installed.
"""

import json
import sys
from typing import Any

try:
    import av
except ImportError:
    sys.stderr.write("[error] PyAV is not installed\n")
    sys.exit(3)


def look(name: str) -> dict[str, Any]:
    """Return the container and its streams."""
    with av.open(name, metadata_errors="replace") as container:
        duration = container.duration
        return {
            "format": {
                "format_name": container.format.name,
                "duration": duration / av.time_base if duration is not None else None,
            },
            "streams": [_stream(stream) for stream in container.streams],
        }


def _stream(stream: Any) -> dict[str, Any]:
    context = getattr(stream, "codec_context", None)
    attached = getattr(getattr(stream, "disposition", None), "name", None) or ""
    described: dict[str, Any] = {
        "codec_type": stream.type,
        "codec_name": context.codec.canonical_name if context is not None else None,
        "duration": float(stream.duration * stream.time_base) if stream.duration and stream.time_base else None,
        "tags": {"language": stream.language} if stream.language else {},
        "disposition": {"attached_pic": int("attached_pic" in attached)},
    }
    if stream.type == "video":
        described |= {
            "width": stream.width,
            "height": stream.height,
            "avg_frame_rate": str(stream.average_rate),
        }
    if stream.type == "audio":
        described |= {"sample_rate": stream.sample_rate, "channels": stream.channels}
    return described


def main() -> int:
    """Look at the one file named on the command line."""
    try:
        sys.stdout.write(json.dumps(look(sys.argv[1])))
    except (av.FFmpegError, OSError, ValueError) as fault:
        sys.stderr.write(f"[error] {fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
