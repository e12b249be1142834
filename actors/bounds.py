"""What is kept from a node, by its authority or from all, looked at where it happens: a program, a published file."""

import os
from collections.abc import Sequence
from pathlib import Path

from actors.failures import OperationFailed
from store.envelopes import may_run, owns
from store.home import in_workspace
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
    real = _real(target)
    owned = envelope.model_copy(update={"paths": tuple(os.path.realpath(folder / path) for path in envelope.paths)})
    if not owns(owned, real, "/"):
        what = f"its authority does not own the path {target}"
        raise OperationFailed(FailureCode.AUTHORIZATION_REQUIRED, what, TODO)


def check_kept(kept: Sequence[Path], target: Path) -> None:
    """Refuse a file among what Hostler itself keeps, wherever links lead: its name may be that of the store.

    A workspace, of whichever node, is no such thing: it may be the folder of a run that its node submits, and the nodes
    of that run publish there.

    Args:
        kept: The folders.
        target: Absolute; nothing is made of it yet.

    Raises:
        OperationFailed: conflict.

    """
    real = Path(_real(target))
    for folder in kept:
        root = Path(os.path.realpath(folder))
        if real.is_relative_to(root) and not in_workspace(root, real):
            what = f"{target} lies in {folder}, which Hostler keeps"
            raise OperationFailed(FailureCode.CONFLICT, what, "choose another target")


def _real(target: Path) -> str:
    return os.path.join(os.path.realpath(target.parent), target.name)  # noqa: PTH118 - `..` is resolved already
