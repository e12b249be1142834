"""A view that costs nobody the run: where showing it breaks, the run goes on unseen, and that is told once."""

import contextlib
import logging
import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from actors.host_messages import Report
from hostler.views.terminal import harmless
from hostres.errors import HostlerError, describe

if TYPE_CHECKING:
    from hostler.commands.foreground import View

log = logging.getLogger(__name__)


class SteadyView:
    """Passes on to a view until that breaks; what the system or this program refuses is told as ever."""

    def __init__(self, view: "View", tell: Callable[[str], object] | None = None) -> None:
        """Prepare it.

        Args:
            view: What shows the run.
            tell: Writes a line once the view has broken; by default to standard error.

        """
        self._view = view
        self._tell = tell or (lambda line: sys.stderr.write(f"{line}\n"))
        self._broken = False

    def __enter__(self) -> Self:
        self._try(self._view.__enter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let the view go."""
        self._try(self._view.__exit__, kind, error, trace)

    def apply(self, change: Report, now_s: float) -> None:
        """Take in a change.

        Args:
            change: What the host told.
            now_s: Monotonic seconds.

        """
        self._try(self._view.apply, change, now_s)

    def say(self, text: str) -> None:
        """Tell the reader something, view or not."""
        self._try(self._view.say, text)
        if self._broken:
            self._tell(harmless(text))

    def ends(self, at_s: float) -> None:
        """Show that what runs is stopped at that monotonic second."""
        self._try(self._view.ends, at_s)

    def draw(self, now_s: float) -> float | None:
        """Show what has changed, if it is time to; return in how many seconds it is time again, None for never."""
        due_s: float | None = self._try(self._view.draw, now_s)
        return due_s

    def stop(self) -> None:
        """Be stopped as with Ctrl-Z, also where nothing is shown any more."""
        self._view.stop()

    def _try(self, act: Callable[..., Any], *given: Any) -> Any:
        if self._broken:
            return None
        try:
            return act(*given)
        except (OSError, HostlerError):
            raise
        except Exception as error:
            self._broken = True
            log.debug("the view broke", exc_info=True)
            with contextlib.suppress(Exception):  # it gives the terminal back all the same
                self._view.__exit__(None, None, None)
            self._tell(harmless(f"the view broke, and the run goes on unseen: {describe(error)}; report this"))
            return None
