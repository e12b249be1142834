"""Following what grows: look again every now and then, for a display, until the run stands still."""

import time
from collections.abc import Callable
from typing import Final

from store.lifecycle import RUN_FINAL, RUN_RESTING
from store.reader import Reader

EVERY_S: Final = 0.2


def follow(reader: Reader, run_id: str, show_new: Callable[[], object]) -> None:
    """Call *show_new* until the run is final, rests, or has no host that works on it; once more after that.

    Args:
        reader: The store.
        run_id: The run.
        show_new: Shows what has come since the last call.

    """
    while True:
        still = stands_still(reader, run_id)
        show_new()
        if still:
            return
        time.sleep(EVERY_S)


def stands_still(reader: Reader, run_id: str) -> bool:
    """Say whether nothing more will come of a run until a person does something."""
    run = reader.run(run_id)
    if run.status in RUN_FINAL or run.status in RUN_RESTING:
        return True
    return not run.owned
