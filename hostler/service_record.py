"""What the background service says of itself to those who look; whether it lives is for its lock to say."""

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Final, Self

import orjson

from hostres.replacement import replacement
from store.home import Home
from store.lazy_dataclass import dataclass

FILE: Final = "service.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRecord:
    """One start of the service.

    Attributes:
        pid: Its process.
        since: When it began, RFC 3339.
        version: Of Hostler.

    """

    pid: int
    since: str
    version: str

    def write(self, home: Home) -> None:
        """Put it where others find it.

        Raises:
            OSError: It cannot be written.

        """
        with replacement(_path(home), orjson.dumps(asdict(self))) as next_content:
            next_content.commit()

    @classmethod
    def read(cls, home: Home) -> Self | None:
        """Return what the latest service of *home* said, None if there is nothing to be read."""
        try:
            return cls(**orjson.loads(_path(home).read_bytes()))
        except (OSError, orjson.JSONDecodeError, TypeError):
            return None

    @staticmethod
    def remove(home: Home) -> None:
        """Take it away."""
        with contextlib.suppress(OSError):
            _path(home).unlink(missing_ok=True)


def _path(home: Home) -> Path:
    return home.root / FILE
