"""What a person sees on standard error while a command waits for the machine.

On a terminal one line that is kept up to date and wiped away in the end; elsewhere one plain line, and only for a wait
that is worth one. Nothing of it is needed by a command that is admitted at once, so nothing is imported before.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final, Self

from hostres.beginning import begin
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
        self._mutex = threading.Lock()
        self._over = False
        self._shown = ""
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> Self:
        # It must take no signal: one that the main thread waits for would be lost in it, also while it ends.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            with contextlib.suppress(OSError):  # no room for a thread: whoever waits is not told, but waits
                begin(self._thread)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self

    def __exit__(self, *_: object) -> None:
        """Wipe it away; afterwards standard error belongs to others.

        The thread sees that when it next wakes: to wait for it would give the processor to whoever wants it, and keep
        waiting all that wait behind this process.
        """
        with self._mutex:
            self._over = True
            if self._shown:
                self._write(WIPE)

    def _tell(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):  # there is nobody to read it
            if sys.stderr.isatty() and os.environ.get("TERM", "") not in {"", "dumb"}:
                self._keep_telling()
            else:
                time.sleep(PLAIN_S)
                line = "" if self._over else self._line()
                if line:
                    self._show(f"hostler: {line}\n")

    def _keep_telling(self) -> None:
        time.sleep(FIRST_S)
        line, seen = "", 0
        while not self._over:
            changed = os.stat(self._folder / "t").st_mtime_ns  # noqa: PTH116  often, for as long as it takes
            if changed != seen or not line:
                seen, before, line = changed, line, self._line() or line
                if line != before:
                    width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
                    self._show(WIPE + line[: width - 1], wipe=True)
            time.sleep(EVERY_S)

    def _show(self, text: str, *, wipe: bool = False) -> None:
        """Write it, unless the wait is over.

        Args:
            text: What to write.
            wipe: It is to be wiped away in the end.

        """
        with self._mutex:
            if not self._over:
                self._shown = text if wipe else ""
                self._write(text)

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def _line(self) -> str:
        from hostres.place import place_of_this_process  # noqa: PLC0415  see above

        with contextlib.suppress(HostlerError):
            place = place_of_this_process(self._folder)
            if place is not None:
                return str(place)
        return ""
