"""The main job on real media: a talk is prepared twice at once, by two processes that share this machine.

Started by scripts/demo. Picture: Big Buck Bunny, (c) copyright Blender Foundation, www.bigbuckbunny.org, CC BY
3.0. Speech: the opening of A Tale of Two Cities, read by Pete Warden, CC0.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demo_media import MediaError, look_into, make_talk
from demo_report import problems, steps_of, table, whisper_sentence

from actors.context import OperationFailed

ROOT = Path(__file__).resolve().parent.parent
NAMES = ("one", "two")
LATEST_S = 1.0
"""How far a result's length may be from its source's."""

SPOKEN = frozenset({"best", "worst", "wisdom", "foolishness", "light", "darkness", "hope", "despair"})
ENOUGH_WORDS = 4
"""Recognition is good, not perfect."""


class Terminated(BaseException):
    """SIGTERM came."""


def _terminated(*_: object) -> None:
    raise Terminated


_saying = threading.Lock()


def say(text: str) -> None:
    """Print a line, whole, whoever else prints."""
    with _saying:
        print(text, flush=True)


class DemoError(Exception):
    """Something does not hold; says what, in one line."""


@dataclass
class Program:
    """One of the two processes.

    Attributes:
        name: What it is called here; its folder in DIR.
        process: `hostler run`.
        run_id: The run it said it had made.

    """

    name: str
    process: subprocess.Popen[str]
    run_id: str = ""
    reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            found = re.search(r"\brun_[0-9a-z]{26}\b", line)
            if found and not self.run_id:
                self.run_id = found[0]
            say(f"{self.name} | {line.rstrip()}")

    def wait(self) -> int:
        """Return its exit code, when all it said has been shown."""
        code = self.process.wait()
        self.reader.join()
        return code


def main() -> int:
    """Prepare the media, run both programs, show and draw what happened."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo-out"))
    parser.add_argument("--no-whisper", action="store_true")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, _terminated)
    try:
        print(f"demo: {demonstrate(asked.out.absolute(), whisper=not asked.no_whisper)}")
    except (DemoError, MediaError) as fault:
        print(f"demo: failed: {fault}")
        return 1
    except OperationFailed as fault:
        print(f"demo: failed: {fault.message}; {fault.todo}")
        return 69
    except KeyboardInterrupt:
        print("demo: interrupted")
        return 130
    except Terminated:
        print("demo: ended by SIGTERM")
        return 128 + signal.SIGTERM
    return 0


def demonstrate(out: Path, *, whisper: bool) -> str:
    """Return in one line what was found.

    Args:
        out: Where everything goes.
        whisper: Whether the speech is recognised.

    Raises:
        DemoError: A run failed or a limit did not hold.
        MediaError: The media cannot be had, or a result is not whole.

    """
    talk = make_talk(out / "media")
    seconds = look_into(talk).seconds or 0.0
    print(f"media     {talk} ({seconds:.1f} s)")
    environ = {**os.environ, "HOSTLER_HOME": os.environ.get("HOSTLER_HOME") or str(out / "home")}
    print(f"runs      two programs at once, with their state in {environ['HOSTLER_HOME']}", flush=True)
    programs = run_both(talk, out, environ, whisper=whisper)
    capacity = ask(["top", "--once", "--json"], environ)[0]["capacity"]
    steps = [
        step
        for program in programs
        for step in steps_of(program.name, ask(["events", program.run_id, "--json"], environ))
    ]
    print("", *table(steps, capacity), "", sep="\n")
    wrong = problems(steps, capacity)
    if wrong:
        raise DemoError("; ".join(wrong))
    for program in programs:
        check_results(out / program.name, seconds, whisper=whisper)
        ask(["timeline", program.run_id, "-o", str(out / program.name / "timeline.svg"), "--json"], environ)
    files = f"{out}/one and {out}/two"
    return f"both runs completed; {whisper_sentence(steps, capacity)}; no claim exceeded its capacity; see {files}"


def run_both(talk: Path, out: Path, environ: Mapping[str, str], *, whisper: bool) -> list[Program]:
    """Run the workflow in two processes at once and return them when both have ended well.

    Raises:
        DemoError: One did not.

    """
    programs: list[Program] = []
    try:
        for name in NAMES:
            argv = [sys.executable, "-m", "hostler", "run", "examples/podcast.py"]
            argv += ["-i", f"source={talk}", "-i", f"out={out / name}", "-i", "overwrite=true"]
            argv += [] if whisper else ["-i", "whisper=false"]
            process = subprocess.Popen(
                argv,
                cwd=ROOT,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            programs.append(Program(name, process))
        codes = {program.name: program.wait() for program in programs}
    except BaseException as stopped:
        for program in programs:
            # A Ctrl-C has reached them too, and they hand their runs back; a second signal would hurry them.
            if not isinstance(stopped, KeyboardInterrupt) and program.process.poll() is None:
                program.process.terminate()
        for program in programs:
            if program.wait() != 0 and program.run_id:
                resume = f"HOSTLER_HOME={environ['HOSTLER_HOME']} hostler resume {program.run_id}"
                say(f"{program.name} | not finished; go on with: {resume}")
        raise
    failed = [f"{name} ended with exit code {code}" for name, code in codes.items() if code != 0]
    if failed:
        raise DemoError(f"{' and '.join(failed)}; look with: HOSTLER_HOME={environ['HOSTLER_HOME']} hostler runs")
    return programs


def ask(words: list[str], environ: Mapping[str, str]) -> list[Any]:
    """Return what a command of hostler prints as JSON, one value a line.

    Raises:
        DemoError: It failed.

    """
    asked = subprocess.run(
        [sys.executable, "-m", "hostler", *words], cwd=ROOT, env=environ, capture_output=True, check=False
    )
    if asked.returncode != 0:
        raise DemoError(f"hostler {words[0]} failed: {asked.stderr.decode('utf-8', 'replace').strip()}")
    text = asked.stdout.decode()
    return [json.loads(line) for line in text.split("\n") if line] if words[0] == "events" else [json.loads(text)]


def check_results(folder: Path, seconds: float, *, whisper: bool) -> None:
    """Raise `DemoError` unless the published files are whole and say what was said."""
    video = folder / "talk.mp4"
    inside = look_into(video)
    if abs((inside.seconds or 0.0) - seconds) > LATEST_S:
        raise DemoError(f"{video} is {inside.seconds} s long instead of {seconds:.1f} s")
    if inside.video is None or inside.video.width != 640:
        raise DemoError(f"{video} is not 640 pixels wide")
    if whisper:
        if not inside.subtitles:
            raise DemoError(f"{video} has no subtitles")
        words = set(re.findall(r"[a-z]+", (folder / "talk.srt").read_text(encoding="utf-8").lower()))
        if len(SPOKEN & words) < ENOUGH_WORDS:
            raise DemoError(f"{folder / 'talk.srt'} does not say what was said")


if __name__ == "__main__":
    sys.exit(main())
