"""What a node will exactly do is worked out and frozen: its preparation, where it has one, then its effect."""

from typing import Final

from pydantic import JsonValue

from actors.actions import AskPlanner, ForgetPlanner, SetTimer, TimerName
from actors.messages import PlannerAnswered
from actors.outcomes import Exact, Failed, Prepared
from actors.scheduling.endings import forget
from actors.scheduling.outcomes import failure_of
from actors.scheduling.retrying import fail_or_retry
from actors.scheduling.state import NodeState, Port, RunState
from actors.scheduling.turn import Turn
from hostres.errors import Code, HostlerError
from store.contracts import EventKind
from store.lifecycle import Status
from store.limits import VALUE_BYTES
from store.plans import AgentExecutor, CommandExecutor, NodePlan, PlanPhase
from store.policy import FailureCode, Policy
from store.publication import LONGEST_KEY, MOST_KEYS, SHORTER, impossible_name, publication_keys
from store.references import resolve
from store.values import Domain, canonical, digest_bytes
from store.words import words_of

PLANNING: Final = "planning"
PLANNERS: Final = frozenset({Port.PREPARE, Port.PLAN})
"""What an operation brings that works out its exact plan itself."""


def asks_planner(turn: Turn, node: NodeState) -> bool:
    """Take the plan of *node* one step further.

    Args:
        turn: The turn.
        node: A ready node whose effect is not planned yet; its preparation, if it has one, is authorized.

    Returns:
        Whether its planner was asked. Otherwise the node has a further plan now.

    Raises:
        HostlerError: Its input cannot be resolved, or is too large.

    """
    state, preparation = turn.state, node.plan
    if preparation is None:
        plan, data = _resolved(state, node)
        if plan.phase is PlanPhase.PREPARATION and state.has(node, Port.PREPARE):
            _ask(turn, node, plan.input, None)
            return True
        freeze(turn, node, plan, data)
        return False
    if state.has(node, Port.PLAN):
        _ask(turn, node, preparation.input, preparation)
        return True
    freeze(turn, node, *_effect(state, node, preparation, preparation.input, ()))
    return False


def answered(turn: Turn, message: PlannerAnswered) -> None:
    """Freeze what a planner worked out; the node is ready for its next step."""
    state = turn.state
    node = state.nodes[message.node]
    if node.status is not Status.PREPARING or message.number != node.asked:
        return
    state.active -= 1
    forget(turn, node, message.number, [PLANNING])
    answer = message.answer
    try:
        match answer:
            case Failed():
                fail_or_retry(turn, node, failure_of(answer))
                return
            case Prepared():
                _check_bounds(node, answer)
                plan, data = _resolved(state, node)
                plan = plan.model_copy(
                    update={
                        "descriptors": answer.descriptors,
                        "max_input_bytes": answer.max_input_bytes,
                        "max_seconds": answer.max_seconds,
                    }
                )
            case Exact():
                if node.plan is None:
                    raise AssertionError(node.key)
                plan, data = _effect(state, node, node.plan, answer.input, answer.keys)
        freeze(turn, node, plan, data)
    except HostlerError as error:
        refused = Failed(code=FailureCode.INVALID_DATA, message=error.what, todo=error.todo)
        fail_or_retry(turn, node, failure_of(refused))
        return
    turn.move(node, Status.READY, failure=None)
    state.push_ready(node)


def unask(turn: Turn, node: NodeState) -> None:
    """Let the planner of a preparing node go: nobody waits for its answer."""
    turn.state.active -= 1
    forget(turn, node, node.asked, [PLANNING])
    turn.after.append(ForgetPlanner(node=node.key, number=node.asked))


def overdue(turn: Turn, node: NodeState, number: int) -> None:
    """Stop waiting for a planner that does not answer."""
    if node.status is not Status.PREPARING or number != node.asked:
        return
    unask(turn, node)
    late = Failed(
        code=FailureCode.TIMEOUT,
        message=f"its planner did not answer within {node.planned.policy.max_seconds:g} s",
        todo="raise its max_seconds, or mend its planner",
    )
    fail_or_retry(turn, node, failure_of(late))


def freeze(turn: Turn, node: NodeState, plan: NodePlan, data: bytes) -> None:
    """Store *plan* as what *node* does next, unless it is stored already.

    Args:
        turn: The turn.
        node: A ready node.
        plan: Its preparation, or its effect.
        data: Canonical bytes of the input of that.

    Raises:
        HostlerError: It is too large, or nested too deeply, to be stored.

    """
    frozen = node.family.shared.frozen(plan, data)
    if len(frozen.data) > VALUE_BYTES:
        what = f"its {plan.phase} plan is too large: {len(frozen.data)} bytes, {VALUE_BYTES} are allowed"
        raise HostlerError(Code.INVALID_DATA, what, "put what is large into a file and name that")
    node.plan, node.given = plan, data
    field = "plan_sha256" if plan.phase is PlanPhase.EFFECT else "preparation_sha256"
    if getattr(node.record, field) == frozen.sha256:
        return
    turn.freeze(frozen)
    turn.event(
        EventKind.NODE_PLAN,
        node,
        plan_sha256=frozen.sha256,
        input_sha256=plan.input_sha256,
        phase=plan.phase._value_,
    )
    turn.change(node, **{field: frozen.sha256})


def _ask(turn: Turn, node: NodeState, value: JsonValue, preparation: NodePlan | None) -> None:
    turn.state.active += 1
    node.asked += 1
    turn.move(node, Status.PREPARING, failure=None)
    turn.after.append(AskPlanner(node=node.key, number=node.asked, input=value, preparation=preparation))
    timer = TimerName(kind=PLANNING, node=node.key, attempt=node.asked)
    turn.after.append(SetTimer(timer=timer, seconds=node.planned.policy.max_seconds))


def _resolved(state: RunState, node: NodeState) -> tuple[NodePlan, bytes]:
    """Return the first plan of *node*: what its operation is given, and what it depends on; and that input's bytes."""
    planned, policy = node.planned, node.planned.policy
    value = resolve(planned.input, state.outputs)
    if planned.dependencies and isinstance(planned.executor, CommandExecutor | AgentExecutor):
        # what cannot be a word of a program is refused before anybody is asked
        words_of(planned.executor, planned.input, value)
    data = _within(value, policy.max_input_bytes)
    prepares = not PLANNERS.isdisjoint(state.ports_of(node) or ()) or bool(policy.preparation)
    plan = NodePlan.of_known(
        run_id=state.run_id,
        node=node.key,
        phase=PlanPhase.PREPARATION if prepares else PlanPhase.EFFECT,
        executor=planned.executor,
        input=value,
        input_sha256=digest_bytes(Domain.INPUT, data),
        dependencies={key: state.nodes[key].record.output_sha256 or "" for key in planned.dependencies},
        policy=policy,
        keys=() if prepares else _published(state, policy, value),
        descriptors=None,
        max_input_bytes=None,
        max_seconds=None,
        preparation_sha256=None,
        revision=node.record.revision,
        workspace=planned.workspace,
    )
    return plan, data


def _published(state: RunState, policy: Policy, value: JsonValue) -> tuple[str, ...]:
    if not policy.publishes:
        return ()
    fault = impossible_name(state.record.folder, policy.publishes, value)
    if fault is not None:
        raise HostlerError(Code.INVALID_DATA, fault, SHORTER)
    return publication_keys(state.record.folder, policy.publishes, value)


def _effect(
    state: RunState, node: NodeState, preparation: NodePlan, value: JsonValue, keys: tuple[str, ...]
) -> tuple[NodePlan, bytes]:
    policy = node.planned.policy
    published = tuple(sorted({*keys, *_published(state, policy, value)}))
    odd = [key for key in published if not 0 < len(key) <= LONGEST_KEY]
    if odd or len(published) > MOST_KEYS:
        what = f"its planner names {len(published)} publication keys" if not odd else "a publication key is too long"
        raise HostlerError(Code.INVALID_DATA, what, f"name at most {MOST_KEYS} of 1 to {LONGEST_KEY} characters")
    data = _within(value, preparation.max_input_bytes or policy.max_input_bytes)
    plan = preparation.model_copy(
        update={
            "phase": PlanPhase.EFFECT,
            "input": value,
            "input_sha256": digest_bytes(Domain.INPUT, data),
            "keys": published,
            "descriptors": None,
            "preparation_sha256": node.record.preparation_sha256,
        }
    )
    return plan, data


def _check_bounds(node: NodeState, answer: Prepared) -> None:
    """Refuse bounds beyond the policy's, which is what people have seen."""
    policy = node.planned.policy
    for name, bound, limit in (
        ("max_input_bytes", answer.max_input_bytes, policy.max_input_bytes),
        ("max_seconds", answer.max_seconds, policy.max_seconds),
    ):
        if bound is not None and not 0 < bound <= limit:
            what = f"its planner asks for {name} {bound:g}, its policy allows {limit:g}"
            raise HostlerError(Code.INVALID_DATA, what, "keep the preparation within the policy")


def _within(value: JsonValue, limit: int) -> bytes:
    """Return the canonical bytes of an input, at most *limit* of them."""
    data = canonical(value)
    if len(data) > limit:
        raise HostlerError(Code.INVALID_DATA, f"input too large: {len(data)} bytes, limit {limit}", "put it in a file")
    return data
