"""The file: a plain tar of regular files, then the digest of all bytes before it, and nothing after.

`tar -xf` reads it, `head -c -64 FILE | sha256sum` and `tail -c 64 FILE` prove it. Reading takes exactly what writing
makes: each header must be byte for byte the one that this module writes for that name and size. So there are no links,
no sparse files, no compression, no names that lead elsewhere, and nothing is larger than the bytes that are there.
"""

import hashlib
import re
import tarfile
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

from hostres.errors import Code, HostlerError

_BLOCK: Final = tarfile.BLOCKSIZE
_END: Final = bytes(2 * _BLOCK)
_DIGEST_BYTES: Final = 64
_LARGEST: Final = (1 << 33) - 1  # what a ustar header holds
_PIECE: Final = 1 << 20
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*){0,3}")


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, 0
    return member.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


class ArchiveWriter:
    """Writes members in the order in which they are given.

    Args:
        file: Where they go.

    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def add(self, name: str, data: bytes) -> None:
        """Write a member.

        Raises:
            HostlerError: unavailable, if it is larger than an archive can hold.

        """
        if len(data) > _LARGEST:
            raise HostlerError(Code.UNAVAILABLE, f"{name} is too large for an archive", "keep the state folder instead")
        self._write(_header(name, len(data)))
        self._write(data)
        self._write(bytes(-len(data) % _BLOCK))

    def finish(self) -> str:
        """Write the end.

        Returns:
            The digest.

        """
        self._write(_END)
        digest = self._digest.hexdigest()
        self._file.write(digest.encode())
        return digest

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)


class ArchiveReader:
    """Reads members in order; the digest is checked when the last one has been read.

    Args:
        file: At its beginning.
        what: What to call it in errors.

    Attributes:
        digest: Of all bytes before it; known after the last member.

    """

    def __init__(self, file: BinaryIO, what: str) -> None:
        self.digest = ""
        self._file = file
        self._what = what
        self._sha256 = hashlib.sha256()

    def members(self, limit: Callable[[str], int]) -> Iterator[tuple[str, bytes]]:
        """Yield the name and the bytes of each member.

        Args:
            limit: Says how many bytes a member of that name may have.

        Raises:
            HostlerError: invalid-data, saying what is wrong with the file.

        """
        while True:
            block = self._take(_BLOCK)
            if block == _END[:_BLOCK]:
                break
            name, size = self._parse(block)
            if size > limit(name):
                raise self.bad(f"its part {name} has {size} bytes, {limit(name)} are allowed")
            data = self._take(size)
            if any(self._take(-size % _BLOCK)):
                raise self.bad(f"there is something after its part {name}")
            yield name, data
        if self._take(_BLOCK) != _END[:_BLOCK]:
            raise self.bad("its end is not one")
        self._check_digest()

    def bad(self, why: str) -> HostlerError:
        """Return the error for a file that is no sound archive."""
        return HostlerError(
            Code.INVALID_DATA, f"{self._what} is not a sound archive of a run: {why}", "export the run again"
        )

    def _take(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = self._file.read(min(size, _PIECE))
            if not piece:
                raise self.bad("it is cut short")
            self._sha256.update(piece)
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _parse(self, block: bytes) -> tuple[str, int]:
        try:
            member = tarfile.TarInfo.frombuf(block, "ascii", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
            raise self.bad(f"a header cannot be read ({error})") from None
        sound = _NAME.fullmatch(member.name) and 0 <= member.size <= _LARGEST
        if not sound or _header(member.name, member.size) != block:
            raise self.bad(f"it has a part that no archive of a run has: {member.name!r}")
        return member.name, member.size

    def _check_digest(self) -> None:
        expected = self._sha256.hexdigest()
        found = self._file.read(_DIGEST_BYTES + 1)
        if len(found) < _DIGEST_BYTES:
            raise self.bad("it is cut short")
        if len(found) > _DIGEST_BYTES:
            raise self.bad("there is something after its digest")
        if found != expected.encode():
            raise self.bad("its digest does not match")
        self.digest = expected
