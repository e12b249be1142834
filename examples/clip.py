"""Make a small video with a tone, to try the other examples on where there is no film at hand:

    python examples/clip.py talk.mp4 12

The number is its length in seconds; 12 unless given. ffmpeg draws the picture itself; nothing is fetched.
"""

import os
import subprocess
import sys

from hostler.operations.ffmpeg import find_ffmpeg


def main(path: str, seconds: str = "12") -> int:
    """Make the clip; return ffmpeg's exit code."""
    argv = [str(find_ffmpeg(os.environ)), "-nostdin", "-loglevel", "error", "-y"]
    argv += ["-f", "lavfi", "-i", f"testsrc2=size=320x180:rate=10:duration={seconds}"]
    argv += ["-f", "lavfi", "-i", f"sine=frequency=440:duration={seconds}"]
    argv += ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", f"file:{path}"]
    return subprocess.run(argv, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
