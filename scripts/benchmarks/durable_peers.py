"""`python -m scripts.benchmarks.durable_peers PEER SHAPE STEPS`: a peer runs steps that do nothing, durably.

Each stands as its makers ship it, with an SQLite file in a folder that is removed afterwards; SHAPE is chain or fan.
Prints the seconds from the first step's hand-over to the end of the last, and how many bodies really ran.
"""

import asyncio
import importlib
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

MODULES: Final = {
    "unhinged": ("unhinged",),
    "dbos": ("dbos",),
    "langgraph": ("langgraph", "langgraph.checkpoint.sqlite"),
}
"""Peer → modules that it needs."""

THREADS: Final = 4
"""Workers that a peer with a pool of them gets for a fan."""


def installed(peer: str) -> bool:
    """Say whether a peer can be driven here."""
    try:
        return all(find_spec(module) is not None for module in MODULES[peer])
    except ModuleNotFoundError:
        return False


class _Bodies:
    """Counts the bodies that run, so that a result from a cache cannot pass for a fast one."""

    def __init__(self) -> None:
        self.ran = 0

    def run(self, number: int) -> int:
        """Do nothing, once."""
        self.ran += 1
        return number


def _unhinged(shape: str, steps: int, place: Path, bodies: _Bodies) -> float:
    app = importlib.import_module("unhinged").Unhinged(str(place / "unhinged.db"), queue_name="bench")
    app.create_queue()

    def chain(parameters: Any, context: Any) -> None:
        for number in range(parameters["steps"]):
            context.step(f"s{number}", lambda number=number: bodies.run(number))

    def one(parameters: Any, context: Any) -> Any:
        return context.step("s", lambda: bodies.run(parameters["number"]))

    app.register_task("chain")(chain)
    app.register_task("one")(one)
    began = time.perf_counter()
    if shape == "chain":
        app.spawn("chain", {"steps": steps})
    else:
        for number in range(steps):
            app.spawn("one", {"number": number})
    app.start_worker(concurrency=1 if shape == "chain" else THREADS, poll_interval=0.01, stop_when_idle=True)
    return time.perf_counter() - began


def _dbos(shape: str, steps: int, place: Path, bodies: _Bodies) -> float:
    module = importlib.import_module("dbos")
    host = module.DBOS
    host(config={"name": "bench", "system_database_url": f"sqlite:///{place}/dbos.sqlite", "log_level": "ERROR"})

    @host.step()  # type: ignore[untyped-decorator]
    def step(number: int) -> int:
        return bodies.run(number)

    @host.step()  # type: ignore[untyped-decorator]
    async def concurrent_step(number: int) -> int:
        return bodies.run(number)

    @host.workflow()  # type: ignore[untyped-decorator]
    def chain(steps: int) -> None:
        for number in range(steps):
            step(number)

    @host.workflow()  # type: ignore[untyped-decorator]
    async def fan(steps: int) -> None:
        await asyncio.gather(*(concurrent_step(number) for number in range(steps)))

    async def gathered() -> None:
        await fan(steps)

    host.launch()
    began = time.perf_counter()
    if shape == "chain":
        chain(steps)
    else:
        asyncio.run(gathered())
    took = time.perf_counter() - began
    host.destroy()
    return took


def _langgraph(shape: str, steps: int, place: Path, bodies: _Bodies) -> float:
    functions = importlib.import_module("langgraph.func")
    connection = sqlite3.connect(place / "langgraph.sqlite", check_same_thread=False)
    saver = importlib.import_module("langgraph.checkpoint.sqlite").SqliteSaver(connection)

    @functions.task  # type: ignore[untyped-decorator]
    def step(number: int) -> int:
        return bodies.run(number)

    @functions.entrypoint(checkpointer=saver)  # type: ignore[untyped-decorator]
    def chain(steps: int) -> int:
        for number in range(steps):
            step(number).result()
        return steps

    @functions.entrypoint(checkpointer=saver)  # type: ignore[untyped-decorator]
    def fan(steps: int) -> int:
        return sum(each.result() for each in [step(number) for number in range(steps)])

    settings = {"configurable": {"thread_id": "bench"}, "recursion_limit": 10 * steps + 10}
    began = time.perf_counter()
    {"chain": chain, "fan": fan}[shape].invoke(steps, settings, durability="sync")
    return time.perf_counter() - began


DRIVERS: Final[dict[str, Callable[[str, int, Path, _Bodies], float]]] = {
    "unhinged": _unhinged,
    "dbos": _dbos,
    "langgraph": _langgraph,
}


def main(peer: str, shape: str, steps: str) -> dict[str, Any]:
    """Let one peer run one graph."""
    bodies = _Bodies()
    with tempfile.TemporaryDirectory(prefix="hostler-bench.", ignore_cleanup_errors=True) as place:
        seconds = DRIVERS[peer](shape, int(steps), Path(place), bodies)
        print("\n" + json.dumps({"seconds": seconds, "bodies": bodies.ran}), flush=True)
        os._exit(0)  # whatever threads it keeps


if __name__ == "__main__":
    main(*sys.argv[1:])
