"""A run as it is submitted: the record that it begins with, and what its caller may call it."""

import secrets
import time
from typing import Final

from hostler.compiler import Compiled
from hostler.principal import principal
from hostres import arguments
from hostres.errors import Code, HostlerError
from hostres.masking import own_mask
from store.contracts import RunRecord
from store.ids import new_run_id

MAX_SUBMISSION_KEY: Final = 1024


def new_record(compiled: Compiled, *, submission_key: str | None, at: str) -> RunRecord:
    """Return the record of a new run.

    Args:
        compiled: The workflow.
        submission_key: What the caller calls it, if anything.
        at: When it is submitted, as it is stored.

    Raises:
        HostlerError: invalid-data, about the submission key.

    """
    if submission_key is not None:
        _check_submission_key(submission_key)
    return RunRecord(
        run_id=new_run_id(time.time_ns() // 1_000_000, secrets.token_bytes(10)),
        workflow=compiled.plan.workflow,
        workflow_version=compiled.plan.version,
        plan_sha256=compiled.plan_sha256,
        bundle_sha256=compiled.bundle_sha256,
        folder=compiled.folder,
        source=compiled.source,
        created_at=at,
        principal=principal(),
        submission=submission_key,
    )


def _check_submission_key(key: str) -> None:
    arguments.stored_text(key, name="submission_key")
    if not 0 < len(key) <= MAX_SUBMISSION_KEY:
        what = f"a submission key of {len(key)} characters"
        raise HostlerError(Code.INVALID_DATA, what, f"give it 1 to {MAX_SUBMISSION_KEY}")
    if own_mask().finds(key.encode("utf-8", "surrogatepass")):
        what = "the submission key holds a secret, which would be stored and shown"
        raise HostlerError(Code.INVALID_DATA, what, "give it another")
