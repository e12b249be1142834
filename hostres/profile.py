"""The profile in force: the capacities on which the processes of a machine agree.

Who sets nothing adopts it. Who sets a capacity differently is refused while anything is admitted or waits, and
changes it on an idle machine. The first process of a boot makes it, from what it sets and else from the machine.
What a person has decided since a process read which capacities it is to set goes before those.
"""

import contextlib
import os
from collections.abc import Mapping

from hostres.claims import default_capacity
from hostres.clock import boot_id, boot_ns
from hostres.decisions import DecisionFile
from hostres.errors import Code, HostlerError
from hostres.state import DamagedStateError, MachineState, StateFile
from hostres.sweeping import Sweeper
from hostres.tickets import Listing, TicketFolder


class Profile:
    """Settles which profile is in force.

    Attributes:
        explicit: The capacities that this process sets.

    """

    def __init__(
        self,
        state_file: StateFile,
        tickets: TicketFolder,
        sweeper: Sweeper,
        explicit: Mapping[str, int],
        *,
        since_boot_ns: int | None = None,
    ) -> None:
        """Go by what this process sets.

        Args:
            state_file: What the processes agree on.
            tickets: Those of the machine.
            sweeper: Says which of them live.
            explicit: The capacities that this process sets, resource → units.
            since_boot_ns: When it came to know them, on the boot-time clock; None for just now.

        """
        self.explicit = dict(explicit)
        self._since_boot_ns = boot_ns() if since_boot_ns is None else since_boot_ns
        self._decisions = DecisionFile(os.path.dirname(state_file.place))  # noqa: PTH120  a plain string, as there
        self._state_file = state_file
        self._tickets = tickets
        self._sweeper = sweeper

    def expected(self) -> Mapping[str, int]:
        """Return the capacities that the next ask will meet, read without the gate."""
        state = None
        with contextlib.suppress(DamagedStateError):
            state = self._state_file.read()
        capacity = default_capacity() if state is None or state.boot != boot_id() else state.capacity
        return {**capacity, **self._still_set(capacity)}

    def in_force(self, listing: Listing) -> MachineState:
        """Return the state with the profile in force, made or changed if need be; under the gate.

        Args:
            listing: What `t/` holds; the dead may be removed from it.

        Raises:
            HostlerError: `profile-mismatch`; `unsafe-state`: the state is damaged while tickets live.

        """
        state = self.agreed(listing)
        different = self._still_set(state.capacity)
        if different:
            if self._sweeper.live(listing):
                raise self._mismatch(different, state, listing)
            state = state._replace(
                capacity={**state.capacity, **different}, next_ticket=max(listing.highest + 1, state.next_ticket)
            )
            self._state_file.write(state)
        return state

    def agreed(self, listing: Listing) -> MachineState:
        """Return the state with the profile in force, whatever this process sets; under the gate.

        Args:
            listing: What `t/` holds; the dead may be removed from it.

        Raises:
            HostlerError: `unsafe-state`: the state is damaged while tickets live.

        """
        damage, state = "missing", None
        try:
            state = self._state_file.read()
        except DamagedStateError as error:
            damage = f"damaged ({error})"
        if state is not None and (state.boot == boot_id() or self._sweeper.live(listing)):
            return state
        live = self._sweeper.live(listing)
        if live:
            raise HostlerError(
                Code.UNSAFE_STATE,
                f"{self._state_file.place} is {damage} while {live} tickets live",
                "end the programs that hold or wait, then try again",
            )
        state = MachineState(
            boot=boot_id(),
            next_ticket=max(listing.highest + 1, state.next_ticket if state else 1),
            capacity={**default_capacity(), **self.explicit},
        )
        self._state_file.write(state)
        return state

    def _still_set(self, capacity: Mapping[str, int]) -> dict[str, int]:
        """Return what this process sets differently from *capacity*, and no person has decided since."""
        if self.explicit.items() <= capacity.items():
            return {}
        different = {name: units for name, units in self.explicit.items() if capacity.get(name) != units}
        decided = self._decisions.read()
        for name in tuple(different):
            if name in decided and decided[name].boot_ns > self._since_boot_ns:
                del different[name]
        return different

    def _mismatch(self, different: Mapping[str, int], state: MachineState, listing: Listing) -> HostlerError:
        entry = (*listing.holding, *listing.waiting)[0]
        record = self._tickets.read(entry.number)
        who = f"ticket {entry.number} of pid {record.pid}" + (f" ({record.name})" if record.name else "")
        ours = ", ".join(f"{name}={units}" for name, units in sorted(different.items()))
        theirs = ", ".join(
            f"{name}={state.capacity[name]}" if name in state.capacity else f"no {name}" for name in sorted(different)
        )
        return HostlerError(
            Code.PROFILE_MISMATCH,
            f"this process sets {ours} where the machine has {theirs}, and {who} lives",
            "wait until nothing is admitted, or set equal capacities in [machine.capacity]",
        )
