"""An address for a thread outside the actors: it tells, then waits here for the answer."""

from queue import Empty, SimpleQueue
from typing import Any, Final

from hostres.errors import Code, HostlerError

ANSWER_S: Final = 60.0


class Mailbox:
    """Takes answers for a thread that is not an actor."""

    def __init__(self) -> None:
        self._answers: SimpleQueue[Any] = SimpleQueue()

    def tell(self, message: Any) -> None:
        """Put *message* where the waiting thread finds it."""
        self._answers.put(message)

    def get(self, *, timeout: float = ANSWER_S) -> Any:
        """Return the next answer.

        Args:
            timeout: Seconds to wait.

        Raises:
            HostlerError: unavailable, none came.

        """
        try:
            return self._answers.get(timeout=timeout)
        except Empty:
            raise HostlerError(
                Code.UNAVAILABLE,
                f"the run store did not answer within {timeout:g} s",
                "look at the disk, then try again",
            ) from None
