"""For which node of a run a process works, as far as its environment tells.

What throws its environment away is found below the one that started it, see `hostres.usage.trees`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from hostres.leftovers import NODE, RUN
from hostres.procfs import Process, environment_of

YOUNG_S: Final = 3.0
"""One that was started just now may not have become the program that it is to be."""


class Attribution:
    """Finds the processes of a run's nodes again and again; who is old enough is asked once."""

    def __init__(self, run_id: str, *, ask: Callable[[int], Mapping[bytes, bytes]] = environment_of) -> None:
        """Prepare it.

        Args:
            run_id: The run.
            ask: Returns the environment of a process.

        """
        self._run_id = run_id.encode()
        self._ask = ask
        self._known: dict[tuple[int, float], str | None] = {}

    def find(self, processes: Mapping[int, Process], since_boot_s: float) -> dict[str, list[int]]:
        """Return node → the numbers of the processes that were started for it.

        Args:
            processes: All processes, by number.
            since_boot_s: Now, in seconds since boot.

        """
        known: dict[tuple[int, float], str | None] = {}
        found: dict[str, list[int]] = {}
        for pid, process in processes.items():
            if process.gone:
                continue
            old = since_boot_s - process.start_time > YOUNG_S
            node = self._known[process.identity] if process.identity in self._known else self._node_of(pid)
            if old:
                known[process.identity] = node
            if node is not None:
                found.setdefault(node, []).append(pid)
        self._known = known
        return found

    def _node_of(self, pid: int) -> str | None:
        environment = self._ask(pid)
        if environment.get(RUN.encode()) != self._run_id:
            return None
        return environment.get(NODE.encode(), b"").decode("utf-8", "replace") or None
