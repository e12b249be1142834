"""A run as it is submitted: its inputs, the record that it begins with, and what its caller may call it."""

import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hostler.compiler import Compiled
from hostler.principal import principal
from hostler.refusals import invalid
from hostler.workflows import Workflow
from hostres import arguments
from hostres.errors import Code, HostlerError
from hostres.masking import own_mask
from store.contracts import RunRecord
from store.ids import new_run_id

MAX_SUBMISSION_KEY: Final = 1024


def inputs_of(
    workflow: Any, inputs: Mapping[str, Any] | None, more: Mapping[str, Any], *, own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inputs that a program gives.

    Args:
        workflow: Whose inputs they are.
        inputs: Those that it gives in a mapping.
        more: Those that it gives as keywords.
        own: The keywords that it may mean for inputs of the same name, and that `submit` takes for itself; falsy where
            they were not given.

    Raises:
        HostlerError: invalid-data: *inputs* is no mapping, one is given twice, or it could be meant either way.

    """
    arguments.of_type(inputs, Mapping, name="inputs", todo='give a mapping, as in {"path": "talk.mp4"}')
    given = dict(inputs or {})
    twice = [name for name in more if name in given]
    if twice:
        raise invalid(f"input {twice[0]} is given twice", "give it in the mapping, or as a keyword")
    declared = workflow.inputs if isinstance(workflow, Workflow) else {}
    for name in own:
        if own[name] and name in declared and name not in given:
            what = f"workflow {workflow.id} has an input {name}, which `submit` takes for a word of its own"
            raise invalid(what, f'give the input in a mapping: submit(workflow, {{"{name}": …}})')
    return {**given, **more}


def place_of_run(folder: str | Path | None) -> Path:
    """Return the folder that a run is created in, by default the current one.

    Raises:
        HostlerError: invalid-data: *folder* names none; unavailable: the current folder is gone.

    """
    try:
        return arguments.folder(folder, name="folder") or Path.cwd()
    except FileNotFoundError:
        raise HostlerError(Code.UNAVAILABLE, "the current folder is gone", "name another folder") from None


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
