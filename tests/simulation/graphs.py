"""Random graphs: every kind of node, every class of resume, planners and reconcilers, retries, claims and limits."""

import random

from actors.scheduling.state import Port
from store.plans import OperationExecutor, PlannedNode, RunLimits
from store.policy import Effect, Heartbeat, Policy, PreparationKind, Resume, Retry
from store.terms import Owner, Terms
from tests.actors.support import code, gate, planned

OPERATIONS = tuple(OperationExecutor(operation=f"test.op{index}", version=1) for index in range(4))
PORTS = {
    ("test.op0", 1): frozenset[Port](),
    ("test.op1", 1): frozenset({Port.PLAN}),
    ("test.op2", 1): frozenset({Port.PREPARE, Port.RECONCILE}),
    ("test.op3", 1): frozenset(Port),
}

OWNERS = ("ann", "bot", "cat")


def random_graph(chance: random.Random) -> list[PlannedNode]:
    """Return one to fourteen nodes, each after some of those before it."""
    nodes: list[PlannedNode] = []
    for index in range(chance.randint(1, 14)):
        key = f"n{index:02d}"
        after = [node.key for node in nodes if chance.random() < 0.25]
        match chance.randint(0, 9):
            case 0:
                node = gate(key, *after)
            case 1:
                node = code(key, *after)
            case _:
                node = planned(key, *after, policy=random_policy(chance), executor=chance.choice(OPERATIONS))
        terms = random_terms(chance, [each.key for each in nodes])
        nodes.append(node.model_copy(update={"priority": chance.choice([0, 0, 5, -5]), "terms": terms}))
    return nodes


def random_terms(chance: random.Random, before: list[str]) -> Terms | None:
    """Return for whom a node works; most stand for themselves."""
    if chance.random() < 0.6:
        return None
    owner = Owner(role="lead", id=chance.choice(OWNERS))
    return Terms(owner=owner, parent=chance.choice(before) if before and chance.random() < 0.7 else None)


def random_policy(chance: random.Random) -> Policy:
    """Return a policy of an operation."""
    return Policy(
        effect=chance.choice(list(Effect)[:6]),
        resume=chance.choice(list(Resume)[:5]),
        preparation=chance.choice([(), (), (PreparationKind.CAMERA,), (PreparationKind.LOCAL_MEDIA,)]),
        claims=chance.choice([{}, {"ffmpeg": 1}, {"ffmpeg": 2}]),
        cancellable=chance.random() < 0.7,
        retry=Retry(
            attempts=chance.randint(1, 3),
            delays=chance.choice([(), (5.0,)]),
            exhausted=chance.choice(["fail", "block"]),
        ),
        heartbeat=chance.choice(
            [None, None, Heartbeat(seconds=5.0), Heartbeat(seconds=5.0, grace_seconds=20.0)],
        ),
    )


def random_limits(chance: random.Random) -> RunLimits:
    """Return the limits of a run; most have none."""
    return RunLimits(seconds=chance.choice([None, None, None, 60.0]), active=chance.choice([None, None, 2]))
