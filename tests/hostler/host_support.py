"""Operations and workflows for a host in the same program, and what is seen of their runs."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from hostler import OperationFailed, Policy, operation, workflow
from hostler.config import Config
from store.home import Home
from store.policy import FailureCode
from store.reader import Reader


class Number(BaseModel):
    n: int = 0


@operation("test.add", version=1, policy=Policy())
def add(ctx, input: Number) -> Number:
    return Number(n=input.n + 1)


@operation("test.read", version=1, policy=Policy(effect="local-read"))
def read(ctx, input: Number) -> Number:
    return Number(n=input.n + 1)


@operation("test.paid", version=1, policy=Policy(effect="paid-cloud", resume="ambiguous-after-dispatch"))
def paid(ctx, input: Number) -> Number:
    return Number(n=100)


@operation("test.breaks", version=1, policy=Policy(effect="local-read"))
def breaks(ctx, input: Number) -> Number:
    raise OperationFailed(FailureCode.UNAVAILABLE, "no such camera", "plug it in")


@operation("test.raises", version=1, policy=Policy(effect="local-read"))
def raises(ctx, input: Number) -> Number:
    raise SystemExit(4)


@operation("test.sleeps", version=1, policy=Policy(effect="local-derived-write", max_seconds=60))
def sleeps(ctx, input: Number) -> Number:
    ctx.run(["sleep", "60"])
    return Number(n=1)


@workflow("chain", version=1)
def chain(build, length: int):
    last: Any = None
    for index in range(length):
        last = build.call(add, key=f"n{index:04d}", input={"n": 0 if last is None else last["n"]})
    return {"n": last["n"]}


@workflow("buys", version=1)
def buys(build):
    bought = build.call(paid, key="buy", input={"n": 1})
    after = build.call(add, key="after", input={"n": bought["n"]})
    build.call(add, key="other", input={"n": 1})
    return {"n": after["n"]}


@workflow("breaking", version=1)
def breaking(build):
    bad = build.call(breaks, key="bad", input={"n": 1})
    build.call(add, key="after", input={"n": bad["n"]})
    build.call(raises, key="worse", input={"n": 1})
    build.call(add, key="good", input={"n": 1})
    return {}


@workflow("long", version=1)
def long(build):
    build.call(sleeps, key="long", input={"n": 1})
    return {}


def reader() -> Reader:
    return Reader.open(Home.open(Config.load().home, create=False))


def node_status(run_id: str, node: str) -> str:
    with reader() as store:
        return next(each.status.value for each in store.nodes(run_id) if each.key == node)


def sleepers(run_id: str) -> list[str]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"HOSTLER_RUN={run_id}".encode() in environ.read_bytes().split(b"\0"):
                found.append(environ.parent.name)
        except OSError:
            continue
    return found
