"""The machine's side of this host: asks become tickets, answers come back as messages. It never blocks."""

import os
from typing import Any

from actors.actions import Address
from actors.host_messages import LeaseUnwanted, MachineSpoke, WantLease
from actors.messages import Admitted, MachineAnswer, NotAdmitted
from actors.shell import Shell, tell
from hostres import coordinator as machine
from hostres.coordinator import Ask, Coordinator
from hostres.errors import HostlerError
from store.publication import FILE, LONGEST_KEY

Key = tuple[str, str, int]


class HostResources(Shell):
    """Asks the machine-wide coordinator on behalf of the schedulers."""

    def __init__(
        self, *, coordinator: Coordinator, name: str = "host-resources", parent: Address | None = None
    ) -> None:
        super().__init__(name=name, parent=parent)
        self._coordinator = coordinator
        self._asks: dict[Key, tuple[Ask | None, WantLease]] = {}

    def handle(self, message: Any) -> None:
        """Take one message."""
        match message:
            case WantLease():
                self._ask(message)
            case LeaseUnwanted():
                ask, _ = self._asks.pop((message.run_id, message.node, message.number), (None, None))
                if ask is not None:
                    ask.withdraw()
            case MachineSpoke():
                self._answer(message)
            case _:
                super().handle(message)

    def teardown(self) -> None:
        """Withdraw what nobody waits for any more."""
        for ask, _ in self._asks.values():
            if ask is not None:
                ask.withdraw()

    def _ask(self, message: WantLease) -> None:
        key = message.run_id, message.ask.node, message.ask.number
        self._asks[key] = None, message
        try:
            ask = self._coordinator.ask(
                message.ask.claims,
                keys=_real(message.ask.keys),
                name=f"{message.run_id} {message.ask.node}",
                notify=lambda result: self._spoke(key, result),
            )
        except HostlerError as error:
            self._answer(MachineSpoke(key=key, result=machine.NotAdmitted(error=error)))
        else:
            self._asks[key] = ask, message

    def _spoke(self, key: Key, result: machine.Admitted | machine.NotAdmitted) -> None:
        """Pass an answer on from the coordinator's thread; an actor that has gone wants no lease."""
        if not tell(self.actor_ref, MachineSpoke(key=key, result=result)) and isinstance(result, machine.Admitted):
            result.lease.release()

    def _answer(self, message: MachineSpoke) -> None:
        _, want = self._asks.pop(message.key, (None, None))
        result = message.result
        lease = result.lease if isinstance(result, machine.Admitted) else None
        heard = want is not None and tell(want.reply_to, MachineAnswer(answer=_told(want, result), lease=lease))
        if lease is not None and not heard:
            lease.release()


def _real(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Return keys that are the same for one file also where links lead to it; only here is the disk looked at."""
    return tuple(sorted({_real_file(key) if key.startswith(FILE) else key for key in keys}))


def _real_file(key: str) -> str:
    file = f"{FILE}{os.path.realpath(key.removeprefix(FILE))}"
    return file if len(file) <= LONGEST_KEY else key


def _told(want: WantLease, result: machine.Admitted | machine.NotAdmitted) -> Admitted | NotAdmitted:
    node, number = want.ask.node, want.ask.number
    if isinstance(result, machine.Admitted):
        return Admitted(
            node=node,
            number=number,
            ticket=result.lease.ticket,
            admitted_boot_ns=result.lease.admitted_boot_ns,
            claims=result.lease.claims,
        )
    error = result.error
    return NotAdmitted(node=node, number=number, code=error.code, message=error.what, todo=error.todo)
