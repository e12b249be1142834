"""A node is worked on by a worker outside: what begins and ends that, and the timers that go with it."""

from typing import Final

from actors.actions import SetTimer, TimerName
from actors.scheduling.agent_terms import allowance
from actors.scheduling.endings import fail, forget
from actors.scheduling.outcomes import interrupted
from actors.scheduling.state import NodeState
from actors.scheduling.stopping import DEADLINE
from actors.scheduling.taking_up import idempotency_key
from actors.scheduling.turn import Turn
from store.clock import unix_ms
from store.leases import NewLease
from store.lifecycle import Status

LEASE: Final = "lease"
"""Kind of the timer after which a worker's lease is looked at."""


def give_to_worker(turn: Turn, node: NodeState, worker: str, seconds: float) -> None:
    """Let a worker have a ready node whose plan is authorized: its attempt starts.

    Args:
        turn: The turn.
        node: The node.
        worker: Who.
        seconds: How long the lease lasts.

    """
    attempt = node.record.attempt + 1
    node.told = node.unknown = False
    node.began_ns = turn.stamp.boot_ns
    turn.move(
        node,
        Status.QUEUED,
        Status.RUNNING,
        data={
            "ticket": None,
            "claims": {},
            "admitted_boot_ns": None,
            "idempotency_key": idempotency_key(turn.state, node, attempt),
            "worker": worker,
            "lease_s": seconds,
        },
        attempt=attempt,
        gate_passed=False,
        started_at=turn.stamp.at,
        finished_at=None,
        failure=None,
    )
    node.worker = worker
    turn.state.leased += 1
    budget = allowance(turn.state, node)
    turn.lease(NewLease(node=node.key, attempt=attempt, worker=worker, seconds=seconds, budget=budget))
    look_after(turn, node, seconds)
    _limit(turn, node, node.planned.policy.max_seconds)


def follow_worker(turn: Turn, node: NodeState) -> None:
    """Go on with a lease that another host gave; the clock on the wall can only shorten its deadline."""
    look_after(turn, node, node.leased_s)
    limit, began = node.planned.policy.max_seconds, node.record.started_at
    passed = 0 if began is None else max(0, unix_ms(turn.stamp.at) - unix_ms(began)) / 1000
    _limit(turn, node, max(0.0, limit - passed))


def look_after(turn: Turn, node: NodeState, seconds: float) -> None:
    """Look at the lease of *node* when it should be over."""
    timer = TimerName(kind=LEASE, node=node.key, attempt=node.record.attempt)
    turn.after.append(SetTimer(timer=timer, seconds=seconds))


def take_from_worker(turn: Turn, node: NodeState) -> None:
    """End the lease of *node*; where it goes from there is for the caller to say."""
    turn.end_lease(node)
    forget(turn, node, node.record.attempt, [LEASE, DEADLINE])


def _limit(turn: Turn, node: NodeState, seconds: float) -> None:
    timer = TimerName(kind=DEADLINE, node=node.key, attempt=node.record.attempt)
    turn.after.append(SetTimer(timer=timer, seconds=seconds))


def expire(turn: Turn, node: NodeState) -> None:
    """Take a node from a worker that is not heard of any more; its class says whether another may have it."""
    worker = node.worker
    take_from_worker(turn, node)
    status, failure = interrupted(resume=node.planned.policy.resume, trusted=False, cancelling=node.record.cancelling)
    if status is Status.READY:
        turn.move(node, Status.READY, data={"lease": "expired", "worker": worker})
        turn.state.push_ready(node)
    else:
        fail(turn, node, status, failure)
