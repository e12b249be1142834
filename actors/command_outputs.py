"""What a command has left as its outputs: files in its workspace, read to their end once."""

import os
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

from actors.failures import OperationFailed
from hostres.regular_files import NotRegularError, open_regular
from store.content import sha256_of
from store.policy import FailureCode


def output_of(workspace: Path, name: str, path: str, *, between: Callable[[], object]) -> dict[str, JsonValue]:
    """Return what is recorded of an output: its path, its size and its digest.

    Args:
        workspace: Where the command ran.
        name: The output's name.
        path: Where it is, from there.
        between: Called before each piece that is read; what it raises ends this.

    Raises:
        OperationFailed: It lies outside (invalid-data), or is no file that can be read (malformed-output).

    """
    file = Path(os.path.realpath(workspace / path))  # Path.resolve breaks at a link that leads round in a circle
    if not file.is_relative_to(os.path.realpath(workspace)):
        raise OperationFailed(
            FailureCode.INVALID_DATA,
            f"output {name} lies outside the workspace: {path}",
            "let the command write the file itself into its workspace",
        )
    try:
        with open_regular(file, follow=False) as opened:
            size = os.fstat(opened.fileno()).st_size
            sha256 = sha256_of(opened, between=between)
    except (FileNotFoundError, NotADirectoryError):
        raise _missing(name, path, "") from None
    except NotRegularError as error:
        raise _missing(name, path, f", which {error.strerror}") from None
    except PermissionError as error:
        raise _missing(name, path, f" that can be read ({error.strerror})") from None
    return {"path": str(file), "bytes": size, "sha256": sha256}


def _missing(name: str, path: str, why: str) -> OperationFailed:
    return OperationFailed(
        FailureCode.MALFORMED_OUTPUT, f"the command left no file {path} for its output {name}{why}", "look at its log"
    )
