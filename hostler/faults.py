"""A mistake in a workflow's own code, told in one line with its file and line number."""

import traceback
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pydantic import ValidationError

from hostler.handles import MisusedHandleError
from hostler.own_names import OWN_NAMES, RENAME, namesake, stranger
from hostler.refusals import first_problem, invalid, one_line
from hostres.errors import HostlerError, describe

if TYPE_CHECKING:
    from hostler.workflows import Workflow


def as_fault(error: BaseException, filenames: Collection[str], subject: str) -> HostlerError:
    """Return what an author's code raised as one line.

    Args:
        error: What it raised.
        filenames: The files of the author, as tracebacks name them.
        subject: What is named where no line of theirs is found.

    """
    where = _line_of(error, filenames) or subject
    if isinstance(error, HostlerError):
        return HostlerError(error.code, one_line(f"{where}: {error.what}"), error.todo)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return invalid(f"{where}: {error.strerror}: {error.filename}", "check that path, or mend that line")
    if isinstance(error, ImportError) and _of_anothers_module(error.name or "", filenames):
        return invalid(f"{where}: {describe(error)}", RENAME)
    if isinstance(error, ValidationError):
        said = f"{error.title}: {first_problem(error)}"
    elif isinstance(error, SyntaxError):
        said = f"{type(error).__name__}: {error.msg}"
    else:
        said = describe(error)
    return invalid(f"{where}: {said}", "mend that line")


def _of_anothers_module(name: str, filenames: Collection[str]) -> bool:
    """Say whether a module of somebody else's is why that one of ours could not be imported, and not a typo."""
    return name.partition(".")[0] in OWN_NAMES and (stranger() is not None or namesake(name, filenames) is not None)


def _line_of(error: BaseException, filenames: Collection[str]) -> str | None:
    if isinstance(error, SyntaxError) and error.filename in filenames:
        return f"{error.filename} line {error.lineno}"
    lines = [
        f"{frame.filename} line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in filenames
    ]
    return lines[-1] if lines else None


@contextmanager
def naming_line(workflow: "Workflow") -> Iterator[None]:
    """Turn what a workflow function raises into one line; refusals of ours already name the node."""
    try:
        yield
    except MisusedHandleError as error:
        raise _fault_in(workflow, error) from error
    except HostlerError:
        raise
    except (Exception, SystemExit) as error:
        raise _fault_in(workflow, error) from error


def _fault_in(workflow: "Workflow", error: BaseException) -> HostlerError:
    function = workflow.function
    filenames = {function.__code__.co_filename} if function is not None else set()
    return as_fault(error, filenames, f"workflow {workflow.id}")
