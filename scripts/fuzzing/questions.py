"""Everything that reads runs, asked one after the other."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from hostres.errors import HostlerError
from scripts.fuzzing.promises import check_clean
from scripts.fuzzing.template import AT, HUMAN, OTHER, RUN, request_of
from store.clock import SystemClock
from store.contracts import EventKind, Grant, GrantAction, RequestKind
from store.home import Home
from store.hosts import HostIdentity
from store.lifecycle import Status
from store.reader import Reader
from store.requests import post
from store.run_store import RunStore
from store.transactions import Claimed, NewEvent, Transaction


def looks(home: Home) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield everything a reader can be asked, by name."""
    reader = Reader.open(home)
    with closing(reader):
        yield "runs", reader.runs
        yield "find", lambda: reader.find(RUN)
        for run_id in (RUN, OTHER):
            yield f"run {run_id}", lambda run_id=run_id: reader.run(run_id)
            yield f"nodes {run_id}", lambda run_id=run_id: reader.nodes(run_id)
            yield f"grants {run_id}", lambda run_id=run_id: reader.grants(run_id)
            yield f"requests {run_id}", lambda run_id=run_id: reader.requests(run_id)
            yield f"events {run_id}", lambda run_id=run_id: list(reader.events(run_id))
            for key in ("a", "b"):
                yield f"output {run_id} {key}", lambda run_id=run_id, key=key: reader.output(run_id, key)

            def plans(run_id: str = run_id) -> Any:
                record = reader.run(run_id).record
                nodes = reader.nodes(run_id)
                return (
                    reader.plan(record.plan_sha256),
                    reader.bundle(record.bundle_sha256 or ""),
                    [reader.node_plan(node.plan_sha256) for node in nodes if node.plan_sha256],
                )

            yield f"plans {run_id}", plans


def works(home: Home) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what a host does with the runs, by name."""
    store = RunStore.open(home, clock=SystemClock())
    with closing(store), closing(HostIdentity.register(home)) as identity:
        yield "unowned", store.unowned
        yield "waiting", lambda: store.requests([RUN, OTHER])
        for run_id in (RUN, OTHER):
            claims: list[Claimed] = []

            def claim(run_id: str = run_id, claims: list[Claimed] = claims) -> Any:
                claimed = store.claim(run_id, identity)
                claims.append(claimed)
                return (
                    claimed.record, claimed.plan, claimed.status, claimed.started_at, claimed.nodes, claimed.outputs,
                    claimed.grants, claimed.requests,
                )  # fmt: skip

            def write(claims: list[Claimed] = claims) -> Any:
                for claimed in claims:
                    event = NewEvent(kind=EventKind.NODE_STATUS, node="a")
                    moment = SystemClock().now()
                    nodes = tuple(node.model_copy(update={"status": Status.READY}) for node in claimed.nodes[1:])
                    grant = Grant(
                        grant_id="new", run_id=claimed.fence.run_id, node="b", action=GrantAction.SETTLE,
                        plan_sha256="0" * 64, allowed=True, principal=HUMAN, rule="r", at=AT,
                    )  # fmt: skip
                    for parts in ({"nodes": nodes}, {"grants": (grant,)}, {"events": (event,)}, {"release": True}):
                        refused = store.write([Transaction(fence=claimed.fence, stamp=moment, **parts)])[0]
                        if refused is not None:
                            check_clean(refused)

            yield f"claim {run_id}", claim
            yield f"write {run_id}", write
            another = request_of(run_id, RequestKind.APPROVE, "another")
            yield f"post {run_id}", lambda another=another: post(home, another, clock=SystemClock())


def ask(folder: Path) -> dict[str, Any]:
    """Ask everything of the store in *folder*.

    Returns:
        By name, the answer, or the error.

    Raises:
        FuzzError: Something broke in any other way.

    """
    answers: dict[str, Any] = {}
    try:
        home = Home.open(folder, create=True)
        for questions in (looks, works):
            for name, question in questions(home):
                try:
                    answers[name] = question()
                except HostlerError as error:
                    check_clean(error)
                    answers[name] = error
    except HostlerError as error:
        check_clean(error)
        answers["open"] = error
    return answers
