"""What a command reports as evidence: a JSON list of {id, type} in the file that HOSTLER_EVIDENCE names."""

from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from actors.failures import OperationFailed
from hostres.errors import HostlerError
from hostres.regular_files import NotRegularError, open_regular
from store.policy import FailureCode
from store.terms import Evidence
from store.values import parse_json

VARIABLE: Final = "HOSTLER_EVIDENCE"
NAME: Final = "evidence.json"
MAX_PIECES: Final = 64
MAX_BYTES: Final = 64 * 1024

_PIECES: Final = TypeAdapter(list[Evidence])


def read_evidence(path: Path) -> list[Evidence]:
    """Return what a command has reported; a file that it did not make reports nothing.

    Raises:
        OperationFailed: malformed-output, for a file that is none, is too large or holds something else.

    """
    try:
        with open_regular(path, follow=False) as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return []
    except NotRegularError as error:
        raise _malformed(str(error.strerror)) from error
    except OSError as error:
        raise _malformed(f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise _malformed(f"has more than {MAX_BYTES} bytes")
    try:
        parse_json(data)  # which refuses what pydantic would let pass: names given twice, odd numbers
        return _PIECES.validate_json(data)
    except HostlerError as error:
        raise _malformed(f"is no JSON: {error.what}") from error
    except ValidationError as error:
        from store.misfits import first_misfit  # noqa: PLC0415 - only where something is wrong

        raise _malformed(f"is no list of evidence: {first_misfit(error)}") from error


def _malformed(why: str) -> OperationFailed:
    return OperationFailed(
        FailureCode.MALFORMED_OUTPUT,
        f"the evidence of the command {why}",
        f'let it write [{{"id": "…", "type": "test"}}] to ${VARIABLE}',
    )
