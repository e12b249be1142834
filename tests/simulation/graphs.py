"""Random graphs: every kind of node, every class of resume, planners and reconcilers, retries, claims and limits."""

import random
from decimal import Decimal
from typing import Any

from pydantic import JsonValue

from actors.scheduling.state import Port
from store.amounts import Ask, Budget, Demand
from store.plans import AgentExecutor, OperationExecutor, PlannedNode, RunLimits
from store.policy import Effect, Heartbeat, Policy, PreparationKind, Resume, Retry
from store.terms import Evidence, EvidenceType, Owner, Terms
from store.workspace import GitWorkspace
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
            case 2:
                node = outside(key, *after, policy=random_policy(chance).model_copy(update={"claims": {}}))
            case _:
                node = planned(key, *after, policy=random_policy(chance), executor=chance.choice(OPERATIONS))
        more: dict[str, Any] = {"priority": chance.choice([0, 0, 5, -5]), "terms": random_terms(chance, node, nodes)}
        if isinstance(node.executor, OperationExecutor) and node.policy.effect is not Effect.PURE:
            more["workspace"] = chance.choice([None, None, None, TREE])
        nodes.append(node.model_copy(update=more))
    return [with_budget(chance, node) for node in nodes] if chance.random() < 0.4 else nodes


def with_budget(chance: random.Random, node: PlannedNode) -> PlannedNode:
    """Return *node* with a budget and what it asks of that, each by chance."""
    terms = (node.terms or Terms()).model_copy(update={"budget": chance.choice([None, None, random_budget(chance)])})
    ask = Ask(tokens=chance.choice([0, 5]), cost=chance.choice([Decimal(0), Decimal("0.3")]))
    demand = chance.choice([None, Demand(ask=ask), Demand(ask=ask, minimum=Ask())])
    policy = node.policy.model_copy(update={"budget": demand})
    return node.model_copy(update={"terms": terms, "policy": policy})


def random_budget(chance: random.Random) -> Budget:
    """Return a budget that may be too small for anything."""
    return Budget(
        tokens=chance.choice([None, 4, 20]),
        cost=chance.choice([None, Decimal("0.2"), Decimal("1.5")]),
        seconds=chance.choice([None, Decimal(3)]),
        tasks=chance.choice([None, 0, 1, 6]),
        retries=chance.choice([None, 0, 2]),
    )


TREE = GitWorkspace(repository="repository", base="main")
SUITE = Evidence(id="suite", type=EvidenceType.TEST)
APPROVAL = Evidence(id="look", type=EvidenceType.HUMAN_APPROVAL)


def random_terms(chance: random.Random, node: PlannedNode, earlier: list[PlannedNode]) -> Terms | None:
    """Return for whom a node works and which evidence is due of it; most stand for themselves and bring none."""
    brings = isinstance(node.executor, OperationExecutor)
    due = chance.choice([(SUITE,), (SUITE, APPROVAL), (APPROVAL,)] if brings else [(APPROVAL,)])
    delegated = chance.random() < 0.4
    terms = Terms(
        owner=Owner(role="lead", id=chance.choice(OWNERS)) if delegated else None,
        parent=chance.choice(earlier).key if delegated and earlier and chance.random() < 0.7 else None,
        evidence=due if chance.random() < 0.25 else (),
    )
    return None if terms == Terms() else terms


def outside(key: str, *after: str, policy: Policy) -> PlannedNode:
    """Return an agent's node that workers of other processes work on."""
    given: dict[str, JsonValue] = {"objective": "do it", "argv": None, "env": {}, "value": None}
    return planned(key, *after, policy=policy, executor=AgentExecutor(external=True), input=given)


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
    return RunLimits(
        seconds=chance.choice([None, None, None, 60.0]),
        active=chance.choice([None, None, 2]),
        per_owner=chance.choice([None, None, 1]),
        per_parent=chance.choice([None, None, 1]),
        budget=random_budget(chance) if chance.random() < 0.3 else None,
    )
