"""Files that a command left are results too: whoever uses them gets what was recorded, or is told."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pydantic import JsonValue

from actors.failures import OperationFailed
from hostres.regular_files import NotRegularError, open_regular
from store.content import sha256_of
from store.lazy_dataclass import dataclass
from store.policy import FailureCode


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptFile:
    """A declared output of a completed command.

    Attributes:
        node: The node that made it.
        name: Its name among the outputs.
        hashed: Whether its digest is due as well as its size: it was made under another host.

    """

    node: str
    name: str
    path: Path
    bytes: int
    sha256: str
    hashed: bool


def kept_files(node: str, output: JsonValue, *, hashed: bool) -> Iterator[KeptFile]:
    """Yield the files that the output of a command names."""
    outputs = output.get("outputs") if isinstance(output, dict) else None
    for name, entry in outputs.items() if isinstance(outputs, dict) else ():
        match entry:
            case {"path": str(path), "bytes": int(size), "sha256": str(sha256)}:
                yield KeptFile(node=node, name=name, path=Path(path), bytes=size, sha256=sha256, hashed=hashed)
            case _:
                pass


def check_files(files: tuple[KeptFile, ...], *, between: Callable[[], object]) -> None:
    """Refuse to go on with a file that is not what was recorded.

    The size is looked at always, the digest where another host made the file: reading all of it again within one run
    would double the work for nothing.

    Args:
        files: What the input of an attempt refers to.
        between: Called before each piece that is read; what it raises ends this.

    Raises:
        OperationFailed: conflict, naming the node and its output.

    """
    for file in files:
        try:
            with open_regular(file.path) as opened:
                size = os.fstat(opened.fileno()).st_size
                same = size == file.bytes and (not file.hashed or sha256_of(opened, between=between) == file.sha256)
        except FileNotFoundError:
            raise _lost(file, "is gone") from None
        except NotRegularError as error:
            raise _lost(file, f"{error.strerror} any more") from None
        if not same:
            raise _lost(file, "is not what it was when the node completed")


def _lost(file: KeptFile, how: str) -> OperationFailed:
    return OperationFailed(
        FailureCode.CONFLICT,
        f"output {file.name} of node {file.node} {how}: {file.path}",
        "put it back and retry this node, or start a new run",
    )
