"""Workflows that the commands run, each in a file of its own, and the environment that keeps them in one folder."""

import os
import sys
from pathlib import Path
from typing import Final

CHAIN: Final = """
import os
import signal
import time
from pathlib import Path

from pydantic import BaseModel

from hostler import Policy, operation, workflow


class Step(BaseModel):
    log: str
    number: int


@operation("bench.noted", version=1, policy=Policy(effect="local-derived-write"))
def noted(ctx, input: Step) -> Step:
    log = os.open(input.log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(log, f"{os.getpid()} {ctx.node} {time.monotonic_ns()}\\n".encode())
    os.close(log)
    if os.environ.get("BENCH_KILL_AT") == ctx.node:
        os.kill(os.getpid(), signal.SIGKILL)
    return Step(log=input.log, number=input.number + 1)


@workflow("chain", version=1)
def chain(build, log: str, steps: int):
    last = 0
    for number in range(steps):
        last = build.call(noted, key=f"n{number:05}", input={"log": log, "number": last})["number"]
    return {"number": last}
"""
"""Each step notes who runs it and when; the one that the environment names kills its host."""

PAID: Final = """
import sys
import time

from pydantic import BaseModel

from hostler import Host, Policy, operation, workflow


class Nothing(BaseModel):
    pass


@operation("bench.paid", version=1, policy=Policy(effect="paid-cloud"))
def paid(ctx, input: Nothing) -> Nothing:
    print(time.monotonic_ns(), flush=True)
    return Nothing()


@workflow("paid", version=1)
def bill(build, steps: int):
    for number in range(steps):
        build.call(paid, key=f"n{number:05}", input={})
    return {}


with Host() as host:
    print(host.submit(bill, steps=int(sys.argv[1])).run_id, flush=True)
    sys.stdin.read()
"""
"""A program whose steps wait for approval and then say when they start; it ends with its standard input."""


def settings(place: Path) -> dict[str, str]:
    """Return an environment in which all state lies in *place*, and byte code is kept as an installation keeps it."""
    left_out = ("HOSTLER_", "PYTHONDONTWRITEBYTECODE")
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(left_out)},
        "HOSTLER_HOME": str(place / "home"),
        "HOSTLER_MACHINE_DIR": str(place / "machine"),
        "HOSTLER_CONFIG": str(place / "none.toml"),
    }


def hostler(*words: str) -> list[str]:
    """Return the words of a command."""
    return [sys.executable, "-m", "hostler", *words]
