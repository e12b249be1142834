"""That the code of a workflow is being loaded on this thread: no host may be opened there, which would load it again.

Without this a program that opens its host outside `if __name__ == "__main__":` would start itself anew in every worker
process, each with a run of its own, without end.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hostler.refusals import invalid


class _Here(threading.local):
    loading = False


_here = _Here()


@contextmanager
def being_loaded() -> Iterator[None]:
    """Say so for as long as this goes on."""
    before, _here.loading = _here.loading, True
    try:
        yield
    finally:
        _here.loading = before


def refuse_host() -> None:
    """Refuse to open a host while code is being loaded.

    Raises:
        HostlerError: invalid-data.

    """
    if _here.loading:
        raise invalid(
            'a host is opened while the file is loaded, which belongs under if __name__ == "__main__"',
            "move it there",
        )
