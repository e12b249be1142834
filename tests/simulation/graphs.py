"""Random graphs: every kind of node, every class of resume, planners and reconcilers, retries, claims and limits."""

import random
from typing import Any

from actors.scheduling.state import Port
from store.plans import OperationExecutor, PlannedNode, RunLimits
from store.policy import Effect, Policy, PreparationKind, Resume, Retry
from store.terms import Evidence, EvidenceType, Terms
from store.workspace import GitWorkspace
from tests.actors.support import code, gate, planned

OPERATIONS = tuple(OperationExecutor(operation=f"test.op{index}", version=1) for index in range(4))
PORTS = {
    ("test.op0", 1): frozenset[Port](),
    ("test.op1", 1): frozenset({Port.PLAN}),
    ("test.op2", 1): frozenset({Port.PREPARE, Port.RECONCILE}),
    ("test.op3", 1): frozenset(Port),
}


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
        more: dict[str, Any] = {"priority": chance.choice([0, 0, 5, -5]), "terms": random_terms(chance, node)}
        if isinstance(node.executor, OperationExecutor) and node.policy.effect is not Effect.PURE:
            more["workspace"] = chance.choice([None, None, None, TREE])
        nodes.append(node.model_copy(update=more))
    return nodes


TREE = GitWorkspace(repository="repository", base="main")
SUITE = Evidence(id="suite", type=EvidenceType.TEST)
APPROVAL = Evidence(id="look", type=EvidenceType.HUMAN_APPROVAL)


def random_terms(chance: random.Random, node: PlannedNode) -> Terms | None:
    """Return which evidence is due of a node; of most none."""
    if chance.random() < 0.75:
        return None
    brings = isinstance(node.executor, OperationExecutor)
    return Terms(evidence=chance.choice([(SUITE,), (SUITE, APPROVAL), (APPROVAL,)] if brings else [(APPROVAL,)]))


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
    )


def random_limits(chance: random.Random) -> RunLimits:
    """Return the limits of a run; most have none."""
    return RunLimits(seconds=chance.choice([None, None, None, 60.0]), active=chance.choice([None, None, 2]))
