"""The log of the background service: lines for people on a terminal, JSON elsewhere and in its own, bounded file."""

import contextlib
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Final, TextIO

import orjson

from hostres.folders import open_private

LOGGER: Final = "hostler.service"
FACTS: Final = "facts"
FILE: Final = "service.jsonl"


class JsonLines(logging.Formatter):
    """One JSON object a line: {at, level, event, …}."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        at = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        shape = {"at": at, "level": record.levelname.lower(), "event": record.getMessage(), **_facts(record)}
        if record.exc_info:
            shape["error"] = self.formatException(record.exc_info)
        return orjson.dumps(shape, default=str).decode()


class Lines(logging.Formatter):
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, and what broke below it."""
        at = datetime.fromtimestamp(record.created, tz=UTC).astimezone().strftime("%H:%M:%S")
        facts = " ".join(f"{name}={value}" for name, value in _facts(record).items())
        line = " ".join(part for part in (at, record.getMessage(), facts) if part)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    facts: dict[str, Any] = getattr(record, FACTS, {})
    return facts


class _PrivateFile(RotatingFileHandler):
    """A log that only its user may read, from its first byte."""

    def _open(self) -> Any:
        return os.fdopen(open_private(Path(self.baseFilename), os.O_WRONLY | os.O_CREAT | os.O_APPEND), "a")


class _BoundedErrors(logging.StreamHandler[TextIO]):
    """Standard error as a file that nobody else bounds."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(sys.stderr)
        self._max_bytes = max_bytes

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        bound_errors(self._max_bytes)
        super().emit(record)


def bound_errors(max_bytes: int) -> None:
    """Begin the file that standard error leads to anew if it has that many bytes; leave all else alone.

    Args:
        max_bytes: A regular file of that size is emptied.

    """
    with contextlib.suppress(OSError, ValueError):
        descriptor = sys.stderr.fileno()
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_size >= max_bytes:
            sys.stderr.flush()
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)


@contextmanager
def service_log(folder: Path, *, max_bytes: int, files: int, own_errors: bool = False) -> "Iterator[ServiceLog]":
    """Let everything that is logged in this process go to standard error and to a file in *folder*.

    Args:
        folder: Where the file lies.
        max_bytes: It is begun anew at that size.
        files: So many older ones are kept.
        own_errors: Whether standard error is a file of this service alone, to be bounded likewise.

    """
    console = _BoundedErrors(max_bytes) if own_errors else logging.StreamHandler(sys.stderr)
    console.setFormatter(Lines() if sys.stderr.isatty() else JsonLines())
    file = _PrivateFile(folder / FILE, maxBytes=max_bytes, backupCount=files, encoding="utf-8")
    file.setFormatter(JsonLines())
    root = logging.getLogger()
    level, raises = root.level, logging.raiseExceptions
    logging.raiseExceptions = False  # a full disk must not put anything else on standard error
    root.setLevel(logging.INFO)
    for handler in (console, file):
        root.addHandler(handler)
    try:
        yield ServiceLog()
    finally:
        root.setLevel(level)
        logging.raiseExceptions = raises
        for handler in (console, file):
            root.removeHandler(handler)
        file.close()


class ServiceLog:
    """Says what the service does, each time an event with facts."""

    def __init__(self) -> None:
        self._log = logging.getLogger(LOGGER)

    def say(self, event: str, **facts: object) -> None:
        """Log an event."""
        self._log.info(event, extra={FACTS: facts})

    def warn(self, event: str, **facts: object) -> None:
        """Log an event that somebody should look at."""
        self._log.warning(event, extra={FACTS: facts})
