"""The base of every actor: what it does when it breaks is the same for all.

pykka ends an actor whose `tell` handler raises before `on_failure` runs, keeps one alive whose `ask` handler raised,
and stops every actor of the process at a `SystemExit` (style.md's table). Here any exception means: report `Died` to
the parent once, take no further message, stop.
"""

import logging
from typing import Any, ClassVar

import pykka

from actors.actions import Address
from actors.host_messages import Died
from actors.inbox import Inbox
from hostres.beginning import no_room

log = logging.getLogger(__name__)


def tell(address: Address, message: Any) -> bool:
    """Tell *address*, unless it has gone; an asker that has gone wants no answer.

    Returns:
        Whether it was there.

    """
    try:
        address.tell(message)
    except pykka.ActorDeadError:
        return False
    return True


def hand_over(address: Address, message: Any) -> bool:
    """Tell *address*, on this thread if that is an idle actor: for who has nothing else to do, and holds no lock.

    Returns:
        Whether it was there.

    """
    return (isinstance(address, _Ref) and address.handled(message)) or tell(address, message)


class Shell(pykka.ThreadingActor):
    """An actor with a parent to report to.

    Attributes:
        name: Its name in its parent's list.

    """

    use_daemon_thread: ClassVar[bool] = True

    actor_inbox: Inbox

    @staticmethod
    def _create_actor_inbox() -> Inbox:
        return Inbox()

    def __init__(self, *, name: str, parent: Address | None) -> None:
        super().__init__()
        self._actor_ref = _Ref(self)
        self.name = name
        self._parent = parent
        self._broken = False
        self._fault: BaseException | None = None

    def setup(self) -> None:
        """Open what the actor needs; runs on its own thread."""

    def handle(self, message: Any) -> None:
        """Take one message."""
        raise TypeError(f"{self.name} takes no {type(message).__name__}")

    def teardown(self) -> None:
        """Close what `setup` opened; runs also after a failure."""

    def _start_actor_loop(self) -> None:
        try:
            super()._start_actor_loop()
        except RuntimeError as error:
            pykka.ActorRegistry.unregister(self._actor_ref)
            raise no_room() from error

    def on_start(self) -> None:
        """Set up, and report if that fails."""
        try:
            self.setup()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent hears of it
            self._break(error)

    def on_receive(self, message: Any) -> None:
        """Handle one message, and report if that fails."""
        if self._broken:
            return
        try:
            self.handle(message)
        except BaseException as error:  # noqa: BLE001 - likewise
            self._break(error)

    def on_stop(self) -> None:
        """Tear down; a fault there is logged, nothing can be done about it any more."""
        try:
            self.teardown()
        except Exception:
            log.exception("%s could not be torn down", self.name)

    def _break(self, error: BaseException) -> None:
        self._broken = True
        self._fault = error
        log.debug("%s broke", self.name, exc_info=error)
        if self._parent is not None:
            tell(self._parent, Died(name=self.name, urn=self.actor_urn, error=error))
        self.stop()


class _Ref(pykka.ActorRef[Shell]):
    """Where an actor is told, and stood in for."""

    def handled(self, message: Any) -> bool:
        """Have *message* handled here and now, if the actor is idle; say whether it was."""
        actor = self._actor_weakref()
        if actor is None or not actor.actor_inbox.stand_in():
            return False
        try:
            if self.actor_stopped.is_set():
                return False
            actor.on_receive(message)
        finally:
            actor.actor_inbox.leave()
        return True
