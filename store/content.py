"""Bytes by digest: small ones in their row, large ones in a file beside the database.

A file is whole and on the disk before the transaction that names it begins; one that no row names is waste, never
a wrong record.
"""

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from hostres.errors import Code, HostlerError
from hostres.folders import open_private
from hostres.replacement import sync
from store.faults import damaged
from store.limits import INLINE_BYTES
from store.patterns import SHA256_PATTERN
from store.records import verified
from store.values import Domain

HASH_BYTES: Final = 1 << 20
"""Read at a time, however large the file is."""

_SHA256: Final = re.compile(SHA256_PATTERN.strip("^$"))


def sha256_of(file: BinaryIO, *, between: Callable[[], object] = lambda: None) -> str:
    """Return the digest of a file's bytes.

    Args:
        file: Open, at its start.
        between: Called before each piece of it; what it raises ends this, however much is left.

    """
    sha256 = hashlib.sha256()
    while piece := file.read(HASH_BYTES):
        between()
        sha256.update(piece)
    return sha256.hexdigest()


class Content:
    """The files of large bytes.

    Args:
        folder: Where they lie.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, sha256: str, data: bytes) -> bytes | None:
        """Make large *data* durable.

        Args:
            sha256: Its digest.
            data: The bytes.

        Returns:
            What belongs into the row: the bytes, or None if they are in a file now.

        Raises:
            HostlerError: unavailable, if the file cannot be written.

        """
        if len(data) <= INLINE_BYTES:
            return data
        new = self._folder / f".new.{sha256}.{secrets.token_hex(4)}"
        try:
            self._write(new, data)
            new.rename(self._folder / sha256)
            sync(self._folder)
        except OSError as error:
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
            what = f"{self._folder} cannot take {len(data)} bytes: {error.strerror}"
            raise HostlerError(Code.UNAVAILABLE, what, "make room on its disk and go on") from error
        return None

    def keep(self, sha256: str, data: bytes) -> None:
        """Make sure of a file that `put` made, inside the write transaction that names it.

        Between the two somebody may have taken it for waste, who removes files only inside such a transaction.

        Raises:
            HostlerError: unavailable, if it is gone and cannot be written again.

        """
        if not (self._folder / sha256).exists():
            self.put(sha256, data)

    def get(self, domain: Domain, sha256: str, inline: bytes | None, what: str) -> bytes:
        """Return the bytes with that digest, having checked it.

        Args:
            domain: What the digest is of.
            sha256: The digest.
            inline: What the row holds; None if they are in a file.
            what: What they are, for the error.

        Raises:
            HostlerError: invalid-data, naming *what*.

        """
        data = self._read(sha256, what) if inline is None else inline
        return verified(domain, data, sha256, what)

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        with open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb", buffering=0) as file:  # noqa: PTH123
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(file.fileno())

    def _read(self, sha256: object, what: str) -> bytes:
        # damage makes of a column what no table allows, and it must not lead elsewhere
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise damaged(what, "its digest is none")
        try:
            with open(open_private(self._folder / sha256, os.O_RDONLY), "rb") as file:  # noqa: PTH123
                return file.read()
        except OSError as error:
            raise damaged(what, f"{self._folder / sha256}: {error.strerror}") from error
