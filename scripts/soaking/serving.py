"""The background service of a soak: there is always one, but not always the same, and not always with all code."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from scripts.soaking.flow import LACKING
from store.home import Home
from store.service import service_alive

LACKS_S: Final = 4.0
"""One that lacks code is ended after so long: what was left to it waits for another."""
STOP_S: Final = 90.0
"""One that was told to stop has ended within this."""


@dataclass(slots=True)
class Serving:
    """The service.

    Attributes:
        lacking: Of so many of a hundred the code of `plug` is not what it is elsewhere.
        process: That of now.
        lacks: Whether it lacks that code.
        began_s: When it was started, monotonic.
        odd: What went wrong.

    """

    folder: Path
    home: Home
    chance: random.Random
    lacking: int
    process: "subprocess.Popen[bytes] | None" = None
    lacks: bool = False
    began_s: float = 0.0
    odd: list[str] = field(default_factory=list)

    def keep(self, *, peace: bool = False) -> None:
        """Start one if there is none, and end one that has lacked code for long.

        Args:
            peace: Whether none is to lack anything.

        """
        if self.process is not None and self.process.poll() is not None:
            self.odd.append(f"the service ended by itself with {self.process.returncode}: {self._last_words()}")
            self.process = None
        if self.lacks and (peace or time.monotonic() - self.began_s > LACKS_S):
            self.end(signal.SIGTERM)
        if self.process is None:
            self.lacks = not peace and self.chance.randrange(100) < self.lacking
            self.began_s = time.monotonic()
            with (self.folder / "service.log").open("ab") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "hostler", "serve"],
                    env={**os.environ, **(LACKING if self.lacks else {})},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def hit(self) -> bool:
        """End it in one way or the other; say whether there was one."""
        there = self.process is not None and service_alive(self.home)
        if there:
            self.end(self.chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        return there

    def end(self, number: int) -> None:
        """End it, and wait until it has ended."""
        process, self.process, self.lacks = self.process, None, False
        if process is None:
            return
        asked = number == signal.SIGTERM and service_alive(self.home)  # before that it dies of the signal
        process.send_signal(number)
        try:
            code = process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.odd.append("the service was told to stop and did not end")
            process.kill()
            process.wait()
            return
        if asked and code != 0:
            self.odd.append(f"the service was told to stop and ended with {code}: {self._last_words()}")

    def _last_words(self) -> str:
        return (self.folder / "service.log").read_text(errors="replace")[-1500:]
