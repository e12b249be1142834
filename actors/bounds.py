"""What the authority of a node keeps it from, looked at where it happens: a program started, a file published."""

import os
from pathlib import Path

from actors.failures import OperationFailed
from store.envelopes import may_run, owns
from store.policy import FailureCode
from store.terms import Envelope

TODO = "let its authority name it, or give it to a node that may"


def check_program(envelope: Envelope, program: str) -> None:
    """Refuse a program that is not among the commands of an envelope.

    Raises:
        OperationFailed: authorization-required.

    """
    if not may_run(envelope, program):
        what = f"its authority does not name the command {program}"
        raise OperationFailed(FailureCode.AUTHORIZATION_REQUIRED, what, TODO)


def check_target(envelope: Envelope, target: Path, folder: Path) -> None:
    """Refuse a file outside the paths of an envelope, wherever links lead.

    Args:
        envelope: The envelope.
        target: Absolute; nothing is made of it yet.
        folder: Where relative paths belong.

    Raises:
        OperationFailed: authorization-required.

    """
    real = os.path.join(os.path.realpath(target.parent), target.name)  # noqa: PTH118 - `..` is resolved already
    owned = envelope.model_copy(update={"paths": tuple(os.path.realpath(folder / path) for path in envelope.paths)})
    if not owns(owned, real, "/"):
        what = f"its authority does not own the path {target}"
        raise OperationFailed(FailureCode.AUTHORIZATION_REQUIRED, what, TODO)
