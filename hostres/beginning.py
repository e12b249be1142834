"""Starting threads: the system may have no room for another, which Python tells as a fault of the program."""

import errno
import threading


def begin(thread: threading.Thread) -> None:
    """Start a thread.

    Raises:
        OSError: as `no_room`.

    """
    try:
        thread.start()
    except RuntimeError as error:  # `Thread.start` says so in these words, whatever the system answered
        raise no_room() from error


def no_room() -> OSError:
    """Return what is raised where the system has no room for another thread, as at the limit of a control group."""
    return OSError(errno.EAGAIN, "no further thread can be started")
