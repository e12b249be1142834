"""What a soak runs: steps of every class of resume, which keep a ledger of every time that their body is reached.

Nothing else says how often a body ran: a line is appended by one write of the body itself, before it does anything.
"""

import os
import random
import sys
import time
from pathlib import Path

from pydantic import BaseModel

from hostler import (
    Budget,
    FailureCode,
    Finding,
    OperationFailed,
    Policy,
    Reconciliation,
    Retry,
    RunLimits,
    compute,
    operation,
    workflow,
)

AGAIN = Retry(attempts=10, delays=(0.05,))
BLOCKED = Retry(attempts=2, delays=(0.05,), exhausted="block")

LACKING = {"SOAK_LIMIT_S": "61"}
"""In a process with these variables `soak.plug` is not what it is in others."""
LIMIT_S = float(os.environ.get("SOAK_LIMIT_S", "60"))

TREE = """
import fcntl, os, signal, sys, time
lock, doubled, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    with open(doubled, "a") as file:
        file.write(lock + "\\n")
    sys.exit(9)
reading, writing = os.pipe()
def child():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(writing, b"%d\\n" % os.getpid())
    time.sleep(600)
    os._exit(0)
if os.fork() == 0:
    child()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(writing, b"%d\\n" % os.getpid())
        os.set_inheritable(held, True)
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
told = b""
while told.count(b"\\n") < 2:
    told += os.read(reading, 64)
open(sys.argv[4], "w").close()
time.sleep(seconds)
for pid in told.split():
    os.kill(int(pid), signal.SIGKILL)
"""
"""A program with a child that is deaf to TERM and one, forked twice, in a session of its own and without an
environment, where only the inherited ticket tells whose it is. All hold one lock."""


class Given(BaseModel):
    folder: str
    seconds: float = 0.0
    after: int = 0


class Tried(BaseModel):
    folder: str
    after: int = 0
    right: bool = False


class Made(BaseModel):
    folder: str
    number: int


def note(folder: str, kind: str, run_id: str, node: str, attempt: int) -> None:
    """Append one line to the ledger."""
    ledger = os.open(f"{folder}/ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, f"{kind} {run_id} {node} {attempt}\n".encode())
    os.close(ledger)


def noted(folder: str, kind: str, run_id: str, node: str) -> bool:
    """Say whether the ledger has a line of that node."""
    start = f"{kind} {run_id} {node} "
    return any(line.startswith(start) for line in Path(folder, "ledger").read_text().splitlines())


@operation("soak.step", version=1, policy=Policy(effect="local-derived-write", claims={"cpu": 1}, retry=AGAIN))
def step(ctx, input: Given) -> Made:
    note(input.folder, "step", ctx.run_id, ctx.node, ctx.attempt)
    ctx.run(["sleep", f"{input.seconds:.3f}"])
    return Made(folder=input.folder, number=input.after + 1)


@operation("soak.tree", version=1, policy=Policy(effect="local-derived-write", claims={"ffmpeg": 1}, retry=AGAIN))
def tree(ctx, input: Given) -> Made:
    note(input.folder, "tree", ctx.run_id, ctx.node, ctx.attempt)
    place = f"{input.folder}/copies/{ctx.run_id}.{ctx.node.replace('/', '-')}"
    up = f"{place}.{ctx.attempt}.up"
    ctx.run([sys.executable, "-S", "-E", "-c", TREE, place, f"{input.folder}/doubled", str(input.seconds * 5), up])
    return Made(folder=input.folder, number=input.after + 1)


@operation("soak.film", version=1, policy=Policy(effect="local-derived-write", claims={"ffmpeg": 1}))
def film(ctx, input: Given) -> Made:
    """Write half of a file and never come to its end; every other one has children that are deaf to TERM."""
    note(input.folder, "film", ctx.run_id, ctx.node, ctx.attempt)
    place = f"{input.folder}/copies/{ctx.run_id}.{ctx.node.replace('/', '-')}"
    half = ctx.workspace / "half.mp4"
    half.write_bytes(b"half" * 1000)
    Path(f"{place}.half").write_text(str(half))
    up = f"{place}.{ctx.attempt}.up"
    if input.after % 2:
        ctx.run([sys.executable, "-S", "-E", "-c", TREE, place, f"{input.folder}/doubled", "600", up])
    else:
        ctx.run(["sh", "-c", 'sleep 600 & touch "$0"; wait', up])
    ctx.publish(half, f"{input.folder}/published/{ctx.run_id}.{ctx.node}")
    return Made(folder=input.folder, number=input.after + 1)


@operation("soak.pay", version=1, policy=Policy(effect="project-mutation", resume="ambiguous-after-dispatch"))
def pay(ctx, input: Given) -> Made:
    note(input.folder, "pay", ctx.run_id, ctx.node, ctx.attempt)
    ctx.run(["sleep", f"{input.seconds:.3f}"])
    return Made(folder=input.folder, number=input.after + 1)


def look(ctx, input: Given, previous) -> Made | Reconciliation:
    if noted(input.folder, "order", ctx.run_id, ctx.node):
        return Made(folder=input.folder, number=input.after + 1)
    return Reconciliation(Finding.RETRY)


@operation(
    "soak.order",
    version=1,
    reconcile=look,
    policy=Policy(effect="project-mutation", resume="recoverable-transaction", claims={"network": 1}, retry=AGAIN),
)
def order(ctx, input: Given) -> Made:
    time.sleep(input.seconds / 2)
    ctx.before_publication()
    note(input.folder, "order", ctx.run_id, ctx.node, ctx.attempt)
    time.sleep(input.seconds / 2)
    return Made(folder=input.folder, number=input.after + 1)


@operation("soak.fails", version=1, policy=Policy(effect="local-derived-write"))
def fails(ctx, input: Tried) -> Made:
    """Fail until somebody has retried it, once or twice."""
    note(input.folder, "fails", ctx.run_id, ctx.node, ctx.attempt)
    if ctx.attempt <= 1 + input.after % 2:
        raise OperationFailed(FailureCode.UNAVAILABLE, "no such camera", "plug it in")
    return Made(folder=input.folder, number=input.after + 1)


@operation("soak.blocks", version=1, policy=Policy(effect="local-derived-write", retry=BLOCKED))
def blocks(ctx, input: Tried) -> Made:
    """Fail twice, then rest."""
    note(input.folder, "blocks", ctx.run_id, ctx.node, ctx.attempt)
    if ctx.attempt <= 2:
        raise OperationFailed(FailureCode.UNAVAILABLE, "no such camera", "plug it in")
    return Made(folder=input.folder, number=input.after + 1)


@operation("soak.typo", version=1, policy=Policy(effect="local-derived-write"))
def typo(ctx, input: Tried) -> Made:
    """Fail until somebody has corrected its input."""
    note(input.folder, "typo", ctx.run_id, ctx.node, ctx.attempt)
    if not input.right:
        raise OperationFailed(FailureCode.INVALID_DATA, "no such file", "correct it")
    return Made(folder=input.folder, number=input.after + 1)


@operation(
    "soak.plug",
    version=1,
    policy=Policy(effect="project-mutation", resume="ambiguous-after-dispatch", max_seconds=LIMIT_S),
)
def plug(ctx, input: Given) -> Made:
    """Do something that only some hosts have the code of."""
    note(input.folder, "plug", ctx.run_id, ctx.node, ctx.attempt)
    ctx.run(["sleep", f"{input.seconds:.3f}"])
    return Made(folder=input.folder, number=input.after + 1)


@operation("soak.pure", version=1)
def pure(ctx, input: Made) -> Made:
    return Made(folder=input.folder, number=input.number + 1)


@compute("soak-code")
def code(input):
    ledger = os.open(f"{input['folder']}/ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, f"code {input['run']} {input['node']} 0\n".encode())
    os.close(ledger)
    return {"folder": input["folder"], "number": 1}


OPERATIONS = {"step": step, "tree": tree, "film": film, "pay": pay, "order": order, "plug": plug}
FAILING = {"fails": fails, "blocks": blocks, "typo": typo}


def random_graph(build, folder: str, seed: int, nodes: int, kinds: list[str], seconds: float):
    """Build a random graph of steps of these kinds, each after some of those before it."""
    chance = random.Random(seed)
    made = []
    for number in range(nodes):
        kind = chance.choice(kinds)
        key = f"{kind}/{number:02d}"
        after = [each for each in made if chance.random() < 0.3]
        if kind == "gate":
            made.append(build.gate("merge", key=key, after=after))
        elif kind == "code":
            name = f"{seed}"
            made.append(build.call(code, key=key, input={"folder": folder, "run": name, "node": key}, after=after))
        elif kind == "pure":
            made.append(build.call(pure, key=key, input={"folder": folder, "number": number}, after=after))
        elif kind in FAILING:
            made.append(build.call(FAILING[kind], key=key, input={"folder": folder, "after": number}, after=after))
        else:
            given = {"folder": folder, "seconds": chance.uniform(0, seconds), "after": number}
            made.append(build.call(OPERATIONS[kind], key=key, input=given, after=after))
    return {}


@workflow("soak", version=1)
def soak(build, folder: str, seed: int, nodes: int, kinds: list[str], seconds: float):
    """Build a random graph."""
    return random_graph(build, folder, seed, nodes, kinds, seconds)


@workflow("soak-frugal", version=1, limits=RunLimits(budget=Budget(retries=2)))
def frugal(build, folder: str, seed: int, nodes: int, kinds: list[str], seconds: float):
    """Build a random graph in which little may be tried again."""
    return random_graph(build, folder, seed, nodes, kinds, seconds)
