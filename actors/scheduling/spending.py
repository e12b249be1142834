"""What attempts reserve before they start, spend and give back, and which ready nodes what is left holds back."""

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from actors.actions import AnswerSpending, SpendingRecorded
from actors.messages import SpendingReported
from actors.outcomes import Aborted, Outcome
from actors.scheduling.lanes import BUDGET, Lane
from actors.scheduling.shares import OCCUPYING, Caps, Shares
from store.amounts import LARGEST, NOTHING, Amounts, Usage
from store.budgets import Books, Misfit
from store.clock import unix_ms
from store.contracts import Request
from store.ledgers import Change, Entry
from store.lifecycle import RUN_RESTING, Status
from store.policy import Effect
from store.transactions import Claimed

if TYPE_CHECKING:
    from actors.scheduling.state import NodeState, RunState
    from actors.scheduling.turn import Turn

_HOLDING = frozenset({Status.QUEUED, Status.RUNNING, Status.VERIFYING})
_UNKNOWN = frozenset({Status.AMBIGUOUS, Status.AMBIGUOUS_CODE})


def shares_of(claimed: Claimed) -> Shares | None:
    """Return what the nodes of a claimed run share; None if they share nothing."""
    books, caps = Books(claimed.plan, claimed.ledgers), Caps(claimed.plan)
    if not (books.limited or caps or claimed.ledgers):
        return None
    shares = Shares(books, caps)
    for record in claimed.nodes:
        if record.status in OCCUPYING:
            caps.enter(record.key)
    return shares


def held_at_rest(state: "RunState", node: "NodeState") -> bool:
    """Hold a ready node of a run that rests back again if it still does not fit: nobody has to find that out anew."""
    shares = state.shares
    if shares is None or state.status not in RUN_RESTING:
        return False
    offer = shares.books.offer(node.planned)
    if isinstance(offer, Misfit):
        shares.lanes.put(_lane(offer), _rank(node))
        return True
    return False


# --- before the start ---------------------------------------------------------------------------------------------


def is_capped(turn: "Turn", node: "NodeState") -> bool:
    """Hold *node* back if as many as may be are active for its owner or its parent."""
    shares = turn.state.shares
    lane = None if shares is None else shares.caps.full(node.key, turn.state.deferred)
    if shares is not None and lane is not None:
        shares.lanes.put(lane, _rank(node))
    return lane is not None


def reserve(turn: "Turn", node: "NodeState") -> bool:
    """Reserve for the next attempt of *node*, or hold it back until what it needs is free."""
    shares = turn.state.shares
    if shares is None or not shares.books.limited:
        return True
    offer = shares.books.offer(node.planned)
    if isinstance(offer, Misfit):
        shares.lanes.put(_lane(offer), _rank(node))
        return False
    turn.book(Entry(node=node.key, attempt=node.record.attempt + 1, change=Change.RESERVE, amount=offer))
    return True


def offer_to_workers(turn: "Turn", node: "NodeState") -> None:
    """Let a worker take *node*, which reserves only then, as long as a budget lets it go."""
    shares = turn.state.shares
    if shares is not None and shares.books.limited:
        shares.offered[node.key] = None


def look_at_offers(state: "RunState") -> None:
    """Hold back what no worker could take any more, if nothing comes back: one node that fits ends the looking."""
    shares = state.shares
    while shares is not None and shares.offered and not shares.books.reservations:
        key = next(iter(shares.offered))
        node = state.nodes[key]
        if node.status is Status.READY:
            offer = shares.books.offer(node.planned)
            if not isinstance(offer, Misfit):
                return
            shares.lanes.put(_lane(offer), _rank(node))
        del shares.offered[key]


def looked_at(turn: "Turn", node: "NodeState") -> None:
    """Look at the next node of the lane that *node* was let out of, unless it is back there."""
    shares = turn.state.shares
    lane = None if shares is None else shares.called.pop(node.key, None)
    if lane is not None:
        _call(turn.state, lane)


def _lane(misfit: Misfit) -> Lane:
    return Lane(kind=BUDGET, holder=misfit.holder, counter=misfit.counter, needed=misfit.needed)


def _rank(node: "NodeState") -> tuple[float, str]:
    # who was passed over goes before its equals
    return -node.planned.priority - 0.5, node.key


def _call(state: "RunState", lane: Lane) -> None:
    """Let the first node of a lane be looked at, if what holds the lane back does so no longer."""
    shares = state.shares
    if shares is None or not shares.lets_through(lane, state.deferred):
        return
    rank = shares.lanes.first(lane)
    if rank is not None:
        shares.lanes.leave(rank[1])
        shares.called[rank[1]] = lane
        state.push_again(rank)


# --- what moves it ------------------------------------------------------------------------------------------------


def moved(turn: "Turn", node: "NodeState", before: Status) -> None:
    """Take in that *node* has left the status *before*: what it held may go to others."""
    state = turn.state
    shares = state.shares
    if shares is None:
        return
    after = node.status
    if before is Status.READY:
        shares.lanes.leave(node.key)
        looked_at(turn, node)
    if shares.caps and (before in OCCUPYING) is not (after in OCCUPYING):
        if after in OCCUPYING:
            shares.caps.enter(node.key)
        else:
            for lane in shares.caps.leave(node.key):
                _call(state, lane)
    if before in _HOLDING and after not in _HOLDING:
        _settle(turn, node, before)


def set_aside(turn: "Turn", node: "NodeState") -> None:
    """Leave *node* to a later owner: for its owner and its parent another may be active here meanwhile."""
    state = turn.state
    state.deferred.add(node.key)
    if state.shares is not None and state.shares.caps:
        for lane in state.shares.caps.lanes_of(node.key):
            _call(state, lane)


def _settle(turn: "Turn", node: "NodeState", before: Status) -> None:
    """Charge the attempt that is over, and give back what it has not spent."""
    shares = turn.state.shares
    ledger = None if shares is None else shares.books.ledgers.get(node.key)
    if ledger is None or ledger.reserved is None:
        return
    attempt = ledger.reserved.attempt
    if before is Status.QUEUED:
        turn.book(Entry(node=node.key, attempt=attempt, change=Change.SETTLE))
        return
    unknown = (node.unknown or node.status in _UNKNOWN) and not node.told
    turn.book(
        Entry(
            node=node.key,
            attempt=attempt,
            change=Change.SETTLE,
            amount=Amounts(tasks=1, seconds=_elapsed(turn, node)),
            assumed=unknown and (node.planned.policy.effect is Effect.PAID_CLOUD or node.status in _UNKNOWN),
        )
    )


def _elapsed(turn: "Turn", node: "NodeState") -> Decimal:
    """Return how long the attempt ran, seconds; of a dead host's, at most as long as it could."""
    if node.began_ns is not None:
        seconds = Decimal(max(0, turn.stamp.boot_ns - node.began_ns)).scaleb(-9)
    else:
        began = node.record.started_at
        passed = 0 if began is None else max(0, unix_ms(turn.stamp.at) - unix_ms(began))
        seconds = Decimal(min(passed, int(node.planned.policy.max_seconds * 1000))).scaleb(-3)
    return min(seconds, LARGEST)


def ended(node: "NodeState", outcome: Outcome, *, given_up: bool) -> None:
    """Note of an attempt that is over here whether it may have spent what it did not say."""
    interrupted = isinstance(outcome, Aborted) and outcome.dispatched and outcome.reason != "cancel"
    node.unknown = node.unknown or given_up or interrupted


def did_nothing(node: "NodeState") -> None:
    """Note that the attempt was found not to have happened: it has spent nothing."""
    node.told = True


# --- what is said -------------------------------------------------------------------------------------------------


def reported(turn: "Turn", message: SpendingReported) -> None:
    """Record what an attempt has spent, and let it go on when that is durable."""
    report(turn, turn.state.nodes[message.node], message.attempt, message.usage)
    turn.after.append(AnswerSpending(reply_to=message.reply_to, answer=SpendingRecorded()))


def report(turn: "Turn", node: "NodeState", attempt: int, usage: Usage | None) -> None:
    """Record what an attempt says that it has spent, whatever has become of it."""
    if usage is None:
        return
    node.told = node.told or attempt == node.record.attempt
    _say(turn, node, attempt, Amounts(tokens=usage.tokens, cost=usage.cost))


def settled_by_person(turn: "Turn", node: "NodeState", request: Request) -> None:
    """Take a person's word for what an attempt has spent, in place of what was assumed of it.

    Without a word of it, what did not happen has spent nothing, and anything else what was assumed.
    """
    shares, attempt = turn.state.shares, node.record.attempt
    ledger = None if shares is None else shares.books.ledgers.get(node.key)
    assumed = [] if ledger is None else [kept.amount for kept in ledger.assumed if kept.attempt == attempt]
    stated = request.data.get("spent")
    if stated is not None:
        usage = Usage.model_validate(stated)
        amount = Amounts(tokens=usage.tokens, cost=usage.cost)
    elif request.data.get("outcome") == "retry" or not assumed:
        amount = NOTHING
    else:
        amount = assumed[0]
    _say(turn, node, attempt, amount, principal=request.principal)


def _say(turn: "Turn", node: "NodeState", attempt: int, amount: Amounts, *, principal: str | None = None) -> None:
    state = turn.state
    if state.shares is None:
        if amount == NOTHING:
            return
        state.shares = Shares(Books(state.plan), Caps(state.plan))
    ledger = state.shares.books.ledgers.get(node.key)
    assumed = ledger is not None and any(kept.attempt == attempt for kept in ledger.assumed)
    if assumed or amount != NOTHING:
        change = Change.CORRECT if assumed else Change.SPEND
        turn.book(Entry(node=node.key, attempt=attempt, change=change, amount=amount), principal=principal)


# --- retries, and more of it --------------------------------------------------------------------------------------


def retry_misfit(state: "RunState", node: "NodeState") -> Misfit | None:
    """Say why no budget has a retry of *node* left; None if they have, or count none."""
    return None if state.shares is None else state.shares.books.retry_misfit(node.key)


def charge_retry(turn: "Turn", node: "NodeState") -> None:
    """Charge a retry of *node* to every budget that it draws on."""
    shares = turn.state.shares
    if shares is not None and shares.books.limited:
        attempt = node.record.attempt or None
        turn.book(Entry(node=node.key, attempt=attempt, change=Change.SPEND, amount=Amounts(retries=1)))


def addition_refused(state: "RunState", request: Request) -> str | None:
    """Say why nothing can be added as *request* wants; None if it can."""
    whose = "the run" if request.node is None else f"node {request.node}"
    books = None if state.shares is None else state.shares.books
    amount = Amounts.model_validate(request.data.get("add"))
    odd = [name for name in amount.but_nothing() if books is None or books.limit(request.node, name) is None]
    return f"the budget of {whose} does not limit {', '.join(odd)}" if odd else None


def add(turn: "Turn", request: Request) -> None:
    """Add to the budget of the run or of a node, and let go what fits now."""
    amount = Amounts.model_validate(request.data.get("add"))
    turn.book(Entry(node=request.node, change=Change.ADD, amount=amount), principal=request.principal)


def book(turn: "Turn", entry: Entry) -> Any:
    """Post *entry*, and let go what it makes room for.

    Returns:
        The ledger after it.

    """
    shares = turn.state.shares
    if shares is None:
        raise AssertionError(entry)
    ledger, eased = shares.books.post(entry)
    for lane in shares.lanes.of(BUDGET, eased) if eased else ():
        _call(turn.state, lane)
    return ledger


def shortages(state: "RunState") -> list[tuple[str, Misfit]]:
    """Return the ready nodes that no budget lets go any more, and why, in the order of the plan."""
    shares = state.shares
    if shares is None or not shares.short:
        return []
    found = [
        (node.key, shares.books.offer(node.planned)) for node in state.nodes.values() if node.status is Status.READY
    ]
    return [(key, offer) for key, offer in found if isinstance(offer, Misfit)]
