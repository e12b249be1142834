"""Nodes a second of the whole engine, against bare commits and against durable peers, in turn."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, Final

from scripts.benchmarks.durable_peers import MODULES, installed
from scripts.benchmarks.effort import Effort
from scripts.benchmarks.engine import syncs_a_step, syncs_row, took
from scripts.benchmarks.results import Goal, Row, informing, judged, unmeasured

SHAPES: Final = {
    "chain of effectful steps": ("chain", "effect", Goal(limit=0.62, at_least=True)),
    "chain of pure steps": ("chain", "pure", Goal(limit=1.5, at_least=True)),
    "chain of steps with claims": ("chain", "claim", None),
    "fan of effectful steps": ("fan", "effect", Goal(limit=1.24, at_least=True)),
    "fan of pure steps": ("fan", "pure", Goal(limit=1.24, at_least=True)),
}
"""What is measured; goals are multiples of bare commits, of which LangGraph's fan made 0.31."""

PEERS: Final = {
    ("unhinged", "chain of effectful steps"): Goal(limit=1, at_least=True),
    ("dbos", "chain of effectful steps"): Goal(limit=4, at_least=True),
    ("langgraph", "chain of effectful steps"): None,
    ("unhinged", "fan of effectful steps"): None,
    ("dbos", "fan of effectful steps"): None,
    ("langgraph", "fan of effectful steps"): Goal(limit=4, at_least=True),
}

Found = dict[str, dict[str, Any]]
"""Of one round: what each shape took; and the seconds of a peer's, by both names."""


def rows(effort: Effort) -> list[Row]:
    """Run every shape and every peer once a round; medians of the rounds' ratios count."""
    nodes = effort.chain
    found = [_round(nodes) for _ in range(max(1, effort.rounds))]
    return [
        *_against_the_floor(found, nodes),
        *_against_peers(found, nodes),
        *_commits(found[0], nodes),
        *_syncs(nodes),
        *_of_use(found, nodes),
    ]


def _round(nodes: int) -> Found:
    jobs = [f"floor:{nodes}"]
    for shape, kind, _ in SHAPES.values():
        jobs += [f"{shape}:{kind}:{nodes}:1", f"floor:{nodes}"]
    said = took(f"--jobs={nodes}", *jobs)
    found: Found = {}
    for place, name in enumerate(SHAPES):
        before, job, after = said[2 * place : 2 * place + 3]
        found[name] = {**job, "floor_s": (before["seconds"] + after["seconds"]) / 2}
    for peer, name in PEERS:
        if installed(peer):
            found[f"{peer}, {name}"] = _peer(peer, SHAPES[name][0], nodes)
    return found


def _peer(peer: str, shape: str, nodes: int) -> dict[str, Any]:
    words = [sys.executable, "-m", "scripts.benchmarks.durable_peers", peer, shape, str(nodes)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if said["bodies"] != nodes:
        raise RuntimeError(f"{peer} ran {said['bodies']} of {nodes} steps")
    return said


def _against_the_floor(found: list[Found], nodes: int) -> Iterable[Row]:
    for name, (_, _, goal) in SHAPES.items():
        value = statistics.median(one[name]["floor_s"] / one[name]["seconds"] for one in found)
        named = f"{name}, nodes a second / bare commits"
        yield informing(named, value, "×") if goal is None else judged(named, value, "×", goal, f"{nodes} nodes")


def _against_peers(found: list[Found], nodes: int) -> Iterable[Row]:
    for (peer, name), goal in PEERS.items():
        named = f"{name}, nodes a second / {peer}"
        if f"{peer}, {name}" not in found[0]:
            if goal is not None:
                yield unmeasured(named, "×", goal, f"there is no {' or no '.join(MODULES[peer])} here")
            continue
        value = statistics.median(one[f"{peer}, {name}"]["seconds"] / one[name]["seconds"] for one in found)
        yield informing(named, value, "×") if goal is None else judged(named, value, "×", goal)
    for peer, name in PEERS:
        if f"{peer}, {name}" in found[0]:
            rate = statistics.median(nodes / one[f"{peer}, {name}"]["seconds"] for one in found)
            yield informing(f"nodes a second, {peer}, {name.partition(' ')[0]}", rate, "/s")


def _commits(found: Found, nodes: int) -> Iterable[Row]:
    slack = 2 / nodes  # the end of the run is a commit of its own
    goals = {
        "chain of effectful steps": Goal(limit=1 + slack),
        "chain of steps with claims": Goal(limit=2 + slack),
    }
    for name in SHAPES:
        value, goal, named = found[name]["commits"] / nodes, goals.get(name), f"commits a step, {name}"
        yield informing(named, value, "") if goal is None else judged(named, value, "", goal)


def _syncs(nodes: int) -> Iterable[Row]:
    for name in ("fan of effectful steps", "fan of pure steps"):
        shape, kind, _ = SHAPES[name]
        counted = syncs_a_step(shape, kind, nodes, f"--jobs={nodes}")
        yield syncs_row(f"syncs a step, {name}", counted, Goal(limit=0.2))


def _of_use(found: list[Found], nodes: int) -> Iterable[Row]:
    for name in SHAPES:
        used = statistics.median(one[name]["processor_s"] for one in found) / nodes * 1e6
        yield informing(f"processor time of a node, {name}", used, "µs")
    for name in SHAPES:
        yield informing(
            f"nodes a second, {name}", statistics.median(nodes / one[name]["seconds"] for one in found), "/s"
        )
    floor = statistics.median(nodes / one[name]["floor_s"] for one in found for name in SHAPES)
    yield informing("bare commits a second", floor, "/s")
