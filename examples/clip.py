"""Make a small video with a tone, to try the other examples on where there is no film at hand:

    python examples/clip.py talk.mp4 12

The number is its length in seconds; 12 unless given. ffmpeg draws the picture itself; nothing is fetched.
"""

import os
import re
import subprocess
import sys

from hostler import OperationFailed
from hostler.operations.ffmpeg import find_ffmpeg
from hostler.operations.ffmpeg_faults import failure


def make(path: str, seconds: str) -> None:
    """Make the clip; what cannot be done is told as a node would tell it."""
    argv = [str(find_ffmpeg(os.environ)), "-nostdin", "-loglevel", "level+error", "-y"]
    argv += ["-f", "lavfi", "-i", f"testsrc2=size=320x180:rate=10:duration={seconds}"]
    argv += ["-f", "lavfi", "-i", f"sine=frequency=440:duration={seconds}"]
    argv += ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", f"file:{path}"]
    done = subprocess.run(argv, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise failure("ffmpeg", done.returncode, done.stderr)


def main(words: list[str]) -> int:
    """Do what was typed; return the exit code."""
    match words:
        case [path]:
            seconds = "12"
        case [path, seconds] if re.fullmatch("[1-9][0-9]{0,3}", seconds):
            pass
        case _:
            print("clip: give a file to make and perhaps whole seconds, as in: clip.py talk.mp4 12", file=sys.stderr)
            return 2
    try:
        make(path, seconds)
    except OperationFailed as error:
        print(f"clip: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
