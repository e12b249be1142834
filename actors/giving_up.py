"""A run that its host gives up, since its scheduler breaks at it again and again: its claim is given back.

It stands in the store as last committed, for whoever resumes it; the other runs of the host go on.
"""

from typing import Final

from actors.actions import Address
from actors.host_messages import Commit, GivenBack
from actors.messages import CommitRefused, Committed
from actors.outcomes import storable
from actors.shell import tell
from hostres.errors import HostlerError
from store.clock import Stamp
from store.contracts import EventKind
from store.transactions import Fence, NewEvent, Transaction

MAX_WHY: Final = 4000


class _Answer:
    """Where the store answers: it is told on that the claim is gone, by this commit or by another's."""

    def __init__(self, address: Address, run_id: str) -> None:
        self._address = address
        self._run_id = run_id

    def tell(self, message: Committed | CommitRefused) -> None:  # noqa: ARG002 - a claim that is refused is gone too
        tell(self._address, GivenBack(run_id=self._run_id))


def give_back(fence: Fence, stamp: Stamp, error: HostlerError, address: Address) -> Commit:
    """Return the commit that gives the claim of a run back, of which nothing runs any more.

    Args:
        fence: The claim.
        stamp: The moment.
        error: Why the run is given up; its log says so.
        address: Is told `GivenBack` once the claim is durably gone.

    """
    message = storable(f"given up: {error.what}", MAX_WHY)
    why = NewEvent(kind=EventKind.CLEANUP_ERROR, data={"message": message, "given_up": True})
    transaction = Transaction(fence=fence, stamp=stamp, events=(why,), release=True)
    return Commit(number=1, transaction=transaction, reply_to=_Answer(address, fence.run_id), awaited=True)
