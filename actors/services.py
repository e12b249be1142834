"""What every scheduler of a host shares."""

from pathlib import Path

from actors.actions import Address
from actors.threads import WorkThreads
from hostres.niceness import Niceness
from store.clock import Clock
from store.home import Home
from store.lazy_dataclass import dataclass
from store.rules import DEFAULT_RULES, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The actors that serve all runs, and where things are."""

    store: Address
    machine: Address
    authorization: Address
    timer: Address
    threads: WorkThreads
    home: Home
    machine_folder: Path
    clock: Clock
    niceness: Niceness | None = None
    rules: tuple[Rule, ...] = DEFAULT_RULES
