"""What must hold once everybody has ended, whatever was done to them meanwhile."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from hostler.host import Host
from hostres.errors import HostlerError
from hostres.folders import machine_folder
from hostres.top import snapshot
from store.contracts import EventKind, NodeRecord
from store.home import Home
from store.hosts import known_hosts
from store.lifecycle import RUN_FINAL, RunStatus, Status
from store.policy import FailureCode
from store.proving import check_file, numbers, prove
from store.reader import Reader

NOTED: Final = frozenset({"step", "tree", "fails", "blocks", "typo"})
"""Kinds that are completed by nothing but an attempt."""
ONCE: Final = frozenset({"pay", "order", "plug"})
"""Kinds whose effect happens once."""

NEVER: Final = frozenset(
    {FailureCode.CONFLICT, FailureCode.INCOMPATIBLE, FailureCode.INTERNAL, FailureCode.UNSUPPORTED_PLAN}
)
"""Nothing fails so unless a person lets a run go on without something, be it that it is tried again."""

Line = tuple[str, str, str, int]
"""Kind, run, node, attempt."""


def read_ledger(folder: Path) -> list[Line]:
    """Return how often each body was reached, in order."""
    ledger = folder / "ledger"
    found = []
    for line in ledger.read_text().splitlines() if ledger.exists() else []:
        kind, run_id, node, attempt = line.split()
        found.append((kind, run_id, node, int(attempt)))
    return found


def check_bodies(run_id: str, nodes: Mapping[str, NodeRecord], lines: list[Line]) -> Iterator[str]:
    """Yield which body of a run ran when it should not have, or never."""
    seen = Counter((node, attempt) for _, _, node, attempt in lines)
    for (node, attempt), times in seen.items():
        if times > 1:
            yield f"attempt {attempt} of {node} of {run_id} ran {times} times"
    last: dict[str, int] = {}
    for _, _, node, attempt in lines:
        last[node] = max(attempt, last.get(node, 0))
    for key, record in nodes.items():
        kind = key.partition("/")[0]
        if last.get(key, 0) > record.attempt:
            yield f"{key} of {run_id}, {record.status} with attempt {record.attempt}, ran again as {last[key]}"
        if kind in NOTED and record.status is Status.COMPLETED and last.get(key, 0) < record.attempt:
            yield f"{key} of {run_id} is completed with attempt {record.attempt}, whose body was never reached"
        if kind in ONCE and sum(node == key for _, _, node, _ in lines) > 1:
            yield f"the effect of {key} of {run_id} happened more than once"


def check_code(seed: int, run_id: str, replays: Counter[str], lines: list[Line]) -> Iterator[str]:
    """Yield which trusted code ran more often than people let it."""
    for key, times in Counter(node for kind, name, node, _ in lines if kind == "code" and name == str(seed)).items():
        if times > 1 + replays[key]:
            yield f"{key} of {run_id} ran {times} times and was let run again {replays[key]} times"


def check_failures(run_id: str, told: Iterable[tuple[str | None, Mapping[str, JsonValue]]]) -> Iterator[str]:
    """Yield which node of a run failed for a reason that none of them has, by what the events of each tell."""
    for node, data in told:
        match data.get("failure"):
            case {"code": str(code), "message": str(message)} if code in NEVER:
                yield f"{node} of {run_id} failed: {code}: {message}"
            case _:
                pass


def check_runs(folder: Path, home: Home, made: Mapping[str, int], disturbed: set[str]) -> Iterator[str]:
    """Yield what does not hold of the runs.

    Args:
        folder: Of the soak.
        home: The store.
        made: Each run that was created → the seed of its graph.
        disturbed: Runs of which a person cancelled something or that they let go on without; the others must be
            completed.

    """
    ledger = read_ledger(folder)
    with Reader.open(home) as reader:
        stored = {row.run_id: row.status for row in reader.runs()}
        yield from (f"run {run_id} is lost" for run_id in made.keys() - stored.keys())
        for run_id, status in stored.items():
            nodes = {node.key: node for node in reader.nodes(run_id)}
            if status not in RUN_FINAL:
                yield f"run {run_id} is {status}"
            if run_id not in disturbed and status is not RunStatus.COMPLETED:
                why = {key: node.failure.message for key, node in nodes.items() if node.failure is not None}
                yield f"run {run_id}, of which nobody cancelled anything, is {status}: {why}"
            try:
                events = list(reader.events(run_id))
            except HostlerError as error:
                yield f"the log of {run_id} does not hold: {error.what}"
                continue
            replays = Counter(
                event.node
                for event in events
                if event.kind is EventKind.GRANT and event.data.get("action") == "replay" and event.node is not None
            )
            if run_id not in disturbed:
                yield from check_failures(run_id, [(event.node, event.data) for event in events])
            yield from check_bodies(run_id, nodes, [line for line in ledger if line[1] == run_id])
            yield from check_code(made.get(run_id, 0), run_id, replays, ledger)


def check_proofs(home: Home) -> Iterator[str]:
    """Yield what `hostler verify --all` finds wrong: every run is retold from its log."""
    yield from (f"runs.db: {problem.what}" for problem in check_file(home))
    for number, run_id in numbers(home).items():
        yield from (f"run {run_id}: {problem.what}" for problem in prove(home, number).problems)


def check_leftovers(folder: Path, home: Home, children: list[int]) -> Iterator[str]:
    """Yield what is left of the dead: processes, tickets, host files, two copies of one step."""
    yield from (f"process {pid} of a step is left" for pid in children)
    doubled = folder / "doubled"
    if doubled.exists():
        yield from (f"two copies at once: {Path(line).name}" for line in doubled.read_text().splitlines())
    yield from (f"ticket {row.ticket} is left: {row.name}" for row in snapshot(machine_folder(os.environ)).tickets)
    with Host(jobs=1):  # whoever opens the store sweeps away the files of the dead
        pass
    yield from (f"the file of host {host} is left" for host in known_hosts(home))
