"""What a command does once it has asked something of a run: have it taken up, hear the answer, say what is next."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from hostler.asking import Subject, is_served, subject_of
from hostler.config import Config
from hostler.host import Host
from hostres.errors import Code, HostlerError
from store.contracts import EventKind
from store.lazy_dataclass import dataclass
from store.reader import Reader

ANSWER_S: Final = 10.0
"""How long a living owner of a run is waited for."""
POLL_S: Final = 0.02


def look_at(reader: Reader, text: str) -> Subject:
    """Return the run that *text* names.

    Args:
        reader: The store.
        text: A prefix of its id, or `-`.

    Raises:
        HostlerError: not-found, or conflict if several runs match.

    """
    return subject_of(reader, reader.find(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What became of requests within the time that is waited for it.

    Attributes:
        here: Whether they were taken up here, for want of somebody else.
        unanswered: Those of which the owner of the run has said nothing yet.
        late: What is said of these: for whom they wait; "" if there are none.
        refused: Those that were refused after all, and why: somebody else was first, or its owner has other rules.

    """

    here: bool
    unanswered: frozenset[str]
    late: str
    refused: Mapping[str, HostlerError]

    def check(self) -> "Heard":
        """Raise the first refusal, if there is any."""
        for error in self.refused.values():
            raise error
        return self


def have_it_answered(reader: Reader, subject: Subject, request_ids: Sequence[str]) -> Heard:
    """Let requests take effect, and hear what the owner of the run said to them.

    Args:
        reader: The store.
        subject: The run.
        request_ids: The requests.

    Raises:
        HostlerError: The run could not be claimed for it.

    """
    here = False
    deadline = time.monotonic() + ANSWER_S
    unanswered, refused = set(), {}
    for request_id in request_ids:
        here = _have_it_consumed(reader, subject, request_id) or here
        event = reader.answer(subject.run_id, request_id)
        while event is None and time.monotonic() < deadline:  # its owner is at it, or has ended without having seen it
            time.sleep(POLL_S)
            here = _have_it_consumed(reader, subject, request_id) or here
            event = reader.answer(subject.run_id, request_id)
        if event is None:
            unanswered.add(request_id)
        elif event.kind is EventKind.REQUEST_REFUSED:
            data = event.data
            refused[request_id] = HostlerError(
                Code(str(data["code"])),
                str(data["message"]),
                str(data.get("todo") or f"see `hostler show {subject.run_id}`"),
            )
    late = _whom_it_waits_for(reader, subject.run_id) if unanswered else ""
    return Heard(here=here, unanswered=frozenset(unanswered), late=late, refused=refused)


def _whom_it_waits_for(reader: Reader, run_id: str) -> str:
    run = reader.run(run_id)
    host = f"host {run.owner.host}" if run.owned and run.owner is not None else "the background service"
    return f"{host} has not answered yet; the request waits for it"


def _have_it_consumed(reader: Reader, subject: Subject, request_id: str) -> bool:
    """Let what was posted take effect in a run that no live host owns; a live owner does it by itself.

    Who owns it is looked up after the post: an owner that gave the run back before saw nothing of it, and one that
    took it up since has found it waiting. One that has given it back since has answered, and that is looked up last.

    Returns:
        Whether it was done here.

    Raises:
        HostlerError: The run could not be claimed for it.

    """
    run_id = subject.run_id
    if reader.run(run_id).owned or is_served(reader, run_id) or reader.answer(run_id, request_id) is not None:
        return False
    with Host(config=Config.load()) as host:
        return host.operate(run_id)


def next_step(subject: Subject, *, here: bool = False) -> str:
    """Return what happens now, or what to type for it.

    Args:
        subject: The run.
        here: Whether what was asked of it was taken up by this command itself.

    """
    if subject.owned and subject.run.owner is not None and not here:
        return f"host {subject.run.owner.host} goes on with it"
    if subject.served and not here:
        return "the background service goes on with it"
    return f"go on with: hostler resume {subject.run_id}"
