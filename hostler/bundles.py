"""The code of a workflow as one archive: the same files give the same bytes, wherever they lie.

Members are stored, not compressed, since the bytes of a compressor are not the same everywhere; their times and
modes are fixed and their order is that of their names.
"""

import io
import os
import stat
import zipfile
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from hostler.refusals import invalid
from store.lazy_dataclass import dataclass
from store.policy import MIB
from store.values import Domain, digest_bytes

MAX_BYTES: Final = 16 * MIB
EPOCH: Final = (1980, 1, 1, 0, 0, 0)
MODE: Final = (stat.S_IFREG | 0o600) << 16
UNIX: Final = 3
ENCRYPTED: Final = 0x1


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The code of a workflow.

    Attributes:
        files: Relative path with "/" → content, by path.
        data: The archive.
        sha256: Its digest.

    """

    files: Mapping[str, bytes] = field(repr=False)
    data: bytes = field(repr=False)
    sha256: str


def pack(files: Mapping[str, bytes]) -> Bundle:
    """Return the archive of files.

    Args:
        files: Relative path with "/" → content.

    Raises:
        HostlerError: A path is not relative, or the archive is larger than 16 MiB (invalid-data).

    """
    for name in files:
        _check_name(name)
    kept = {name: files[name] for name in sorted(files)}
    size = sum(map(len, kept.values()))
    if size > MAX_BYTES:
        raise _too_large(size)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in kept.items():
            member = zipfile.ZipInfo(name, EPOCH)
            member.create_system = UNIX
            member.external_attr = MODE
            archive.writestr(member, content)
    data = buffer.getvalue()
    if len(data) > MAX_BYTES:
        raise _too_large(len(data))
    return Bundle(files=MappingProxyType(kept), data=data, sha256=digest_bytes(Domain.BUNDLE, data))


def unpack(data: bytes, sha256: str | None = None) -> Bundle:
    """Return the files of an archive.

    Args:
        data: The archive.
        sha256: Its digest, where it is known.

    Raises:
        HostlerError: The digest is another one, it is no archive of ours, or a member's path leads outside
            (invalid-data).

    """
    found = digest_bytes(Domain.BUNDLE, data)
    if sha256 is not None and found != sha256:
        raise invalid(
            f"bundle {sha256} is damaged: its bytes have the digest {found}", "restore the store from a backup"
        )
    if len(data) > MAX_BYTES:
        raise _too_large(len(data))
    files: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.infolist():
                _check_name(member.filename)
                if member.filename in files:
                    raise _bad(f"it has {member.filename} twice")
                if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & ENCRYPTED:
                    raise _bad(f"{member.filename} is compressed or encrypted")
                if member.file_size > len(data):
                    raise _bad(f"{member.filename} says it is larger than the archive")
                files[member.filename] = archive.read(member)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, OSError) as error:
        raise _bad(str(error)) from error
    return Bundle(files=MappingProxyType(files), data=data, sha256=found)


def extract(bundle: Bundle, folder: Path) -> None:
    """Lay the files of a bundle out in a folder, private to the user.

    Each file gets its name when it is whole, so that several processes may do this at once.

    Args:
        bundle: What to lay out.
        folder: Made if it is missing.

    """
    for name, content in bundle.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if target.is_file() and target.read_bytes() == content:
            continue
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        beside.unlink(missing_ok=True)
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(content)
        beside.replace(target)


def _check_name(name: str) -> None:
    parts = name.split("/")
    if not name or "\\" in name or "\0" in name or any(part in {"", ".", ".."} for part in parts):
        raise _bad(f"{name!r} is not a relative path inside it")


def _bad(why: str) -> Exception:
    return invalid(f"the code bundle is not usable: {why}", "restore the store from a backup, or create the run again")


def _too_large(size: int) -> Exception:
    return invalid(
        f"the workflow's code is {size:,} bytes, more than {MAX_BYTES:,}",
        "move data out of the modules that it imports, or install them as a package",
    )
