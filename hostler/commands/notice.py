"""What a person sees on standard error while a command waits for the machine.

On a terminal one line that is kept up to date and wiped away in the end; elsewhere one plain line, and only for a wait
that is worth one. Nothing of it is needed by a command that is admitted at once, so nothing is imported before.
"""

import contextlib
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Final, Self

from hostres.errors import HostlerError

FIRST_S: Final = 0.2
EVERY_S: Final = 0.5
PLAIN_S: Final = 1.0
WIPE: Final = "\r\x1b[K"


class Notice:
    """While entered, tells how the wait of this process stands."""

    def __init__(self, folder: Path) -> None:
        """Prepare it.

        Args:
            folder: The machine folder.

        """
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        # It must take no signal: one that the main thread waits for would be lost in it, also while it ends.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._thread.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(self, *_: object) -> None:
        """Wipe it away; afterwards standard error belongs to others."""
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):  # there is nobody to read it
            if sys.stderr.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}:
                self._keep_telling()
            elif not self._over.wait(PLAIN_S):
                line = self._line()
                if line and not self._over.is_set():
                    sys.stderr.write(f"hostler: {line}\n")
                    sys.stderr.flush()

    def _keep_telling(self) -> None:
        if self._over.wait(FIRST_S):
            return
        shown, seen = "", 0
        try:
            while True:
                changed = os.stat(self._folder / "t").st_mtime_ns  # noqa: PTH116  often, for as long as it takes
                if changed != seen or not shown:
                    seen, line = changed, self._line()
                    if line and line != shown:
                        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
                        sys.stderr.write(WIPE + line[: width - 1])
                        sys.stderr.flush()
                        shown = line
                if self._over.wait(EVERY_S):
                    return
        finally:
            if shown:
                sys.stderr.write(WIPE)
                sys.stderr.flush()

    def _line(self) -> str:
        from hostres.place import place_of_this_process  # noqa: PLC0415  see above

        with contextlib.suppress(HostlerError):
            place = place_of_this_process(self._folder)
            if place is not None:
                return str(place)
        return ""
