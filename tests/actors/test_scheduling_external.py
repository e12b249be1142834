"""Workers outside, in the core: leases, results, what is given back, and what is not heard of any more."""

from decimal import Decimal
from typing import Any

import pytest

from actors.actions import Abort, Dispatch, EndLeftovers, Judge, LookAtLease, SetTimer, TimerName
from actors.messages import Drain, Due, LeaseSeen
from actors.scheduling.draining import DRAIN
from actors.scheduling.leasing import LEASE
from actors.scheduling.stopping import DEADLINE
from actors.scheduling.turn import Turn
from store.amounts import Ask, Budget, Demand
from store.clock import Stamp
from store.contracts import Request, RequestKind
from store.lifecycle import RunStatus, Status
from store.plans import AgentExecutor, PlannedNode, RunLimits
from store.policy import Effect, Policy, Resume, Retry
from tests.actors.support import HUMAN, RUN_ID, Drive, Model, dispatched, kinds, left, planned, rule, writing

AT = "2026-01-01T00:00:00.000Z"
GIVEN: dict[str, Any] = {"objective": "do it", "argv": None, "env": {}, "value": None}
DONE = {"status": "success", "summary": "done", "usage": {"tokens": 5, "cost": "0.5"}}


def outside(key: str, *after: str, **policy: Any) -> PlannedNode:
    authored = Policy(**{"effect": Effect.LOCAL_DERIVED_WRITE, **policy})
    return planned(key, *after, policy=authored, executor=AgentExecutor(external=True), input=GIVEN)


class Outside(Drive):
    """A run whose workers ask."""

    def take(self, worker: str = "ann", seconds: float = 60.0) -> list:
        return self.request(RequestKind.LEASE_WORK, data={"worker": worker, "seconds": seconds})

    def submit(self, node: str, attempt: int = 1, **result: Any) -> list:
        return self.request(RequestKind.SUBMIT_WORK, node, data={"attempt": attempt, "result": result or DONE})

    def give_back(self, node: str, attempt: int = 1) -> list:
        return self.request(RequestKind.GIVE_BACK_WORK, node, data={"attempt": attempt})

    def workers(self) -> dict[str, str | None]:
        return {key: node.worker for key, node in self.state.nodes.items()}

    def leased(self) -> dict[str, tuple[int, str]]:
        return {lease.node: (lease.attempt, lease.worker) for lease in self.model.claim().leases}


def drive(*nodes: PlannedNode, jobs: int = 4, limits: RunLimits | None = None, **options: Any) -> Outside:
    made = Outside(
        Model(nodes or [outside("a"), writing("b", "a")], limits=limits or RunLimits()), jobs=jobs, **options
    )
    made.begin()
    return made


def told(made: Drive, kind: str, node: str | None = None) -> list:
    return list(made.model.events(kind, node))


def test_nothing_of_external_work_starts_here_and_the_run_goes_on_without_it():
    """It stays ready until somebody takes it; a job of this host is not used up by it."""
    made = drive(outside("a"), writing("b"), jobs=1)
    assert dispatched(made.after) == ["b"]
    assert made.statuses() == {"a": "ready", "b": "running"}
    made.returned("b")
    assert made.state.status is RunStatus.RUNNING
    assert left(made.after) is None


def test_a_worker_takes_the_first_ready_node_and_its_result_completes_it():
    """G18: the attempt is counted and committed with the lease; what was spent is logged."""
    made = drive()
    assert kinds(made.take(), Dispatch) == []
    assert made.statuses() == {"a": "running", "b": "pending"}
    assert made.workers()["a"] == "ann"
    (running,) = told(made, "node-running", "a")
    assert (running["worker"], running["idempotency_key"][-3:]) == ("ann", "a:1")
    assert dispatched(made.submit("a")) == ["b"]
    assert made.status("a") is Status.COMPLETED
    assert made.model.outputs["a"]["summary"] == "done"
    assert told(made, "spending") == [{"change": "spend", "amount": {"tokens": 5, "cost": "0.5"}}]


def test_a_worker_that_asks_again_gets_no_second_node():
    """G18: identical re-delivery; another worker gets the next one."""
    made = drive(outside("a"), outside("b"))
    made.take()
    made.take()
    assert made.workers() == {"a": "ann", "b": None}
    made.take("bob")
    assert made.workers() == {"a": "ann", "b": "bob"}
    made.take("cyd")
    assert [event["message"] for event in told(made, "request-refused")] == ["no work of the run is ready"]


def test_work_is_taken_by_priority():
    """As nodes are taken up here."""
    made = drive(outside("a"), outside("b").model_copy(update={"priority": 5}))
    made.take()
    assert made.workers() == {"a": None, "b": "ann"}


def test_a_lease_that_is_over_makes_the_work_available_again():
    """G18: expiry; no failure is counted, the next attempt is another one."""
    made = drive()
    made.take()
    due = Due(timer=TimerName(kind=LEASE, node="a", attempt=1))
    assert kinds(made.send(due), LookAtLease) == [LookAtLease(node="a", attempt=1)]
    again = made.send(LeaseSeen(node="a", attempt=1, left_s=12.5))
    assert [timer.seconds for timer in kinds(again, SetTimer)] == [12.5]
    made.send(LeaseSeen(node="a", attempt=1, left_s=0.0))
    assert made.statuses() == {"a": "ready", "b": "pending"}
    made.take("bob")
    record = made.state.nodes["a"].record
    assert (record.attempt, record.failures, made.workers()["a"]) == (2, 0, "bob")
    made.send(LeaseSeen(node="a", attempt=1, left_s=0.0))
    assert made.workers()["a"] == "bob"


@pytest.mark.parametrize(
    ("resume", "status"),
    [
        (Resume.DETERMINISTIC, "ready"),
        (Resume.AMBIGUOUS_AFTER_DISPATCH, "ambiguous"),
        (Resume.VERIFIED_RECEIPT, "incompatible"),
    ],
)
def test_what_becomes_of_work_that_is_not_heard_of_is_for_its_class(resume, status):
    """G18: as of an attempt whose host died."""
    made = drive(outside("a", resume=resume))
    made.take()
    made.send(LeaseSeen(node="a", attempt=1, left_s=0.0))
    assert made.statuses() == {"a": status}


def test_a_stale_result_is_refused_ignored_and_its_spending_recorded():
    """G17, G18: the attempt was superseded; the one that counts goes on."""
    made = drive()
    made.take()
    made.send(LeaseSeen(node="a", attempt=1, left_s=0.0))
    made.take("bob")
    made.submit("a", 1)
    assert made.status("a") is Status.RUNNING
    assert [event["code"] for event in told(made, "request-refused")] == ["conflict"]
    assert told(made, "late-result") == [{"outcome": "value"}]
    assert told(made, "spending") == [{"change": "spend", "amount": {"tokens": 5, "cost": "0.5"}}]
    made.submit("a", 2)
    assert made.status("a") is Status.COMPLETED


def test_what_is_given_back_is_no_failure_whatever_its_class():
    """The worker says that it has done nothing."""
    made = drive(outside("a", resume=Resume.AMBIGUOUS_AFTER_DISPATCH))
    made.take()
    made.give_back("a")
    record = made.state.nodes["a"].record
    assert (record.status, record.failures, made.workers()["a"]) == (Status.READY, 0, None)
    made.give_back("a")
    assert len(told(made, "request-refused")) == 1


@pytest.mark.parametrize(
    ("said", "status"),
    [("retry", "corrective"), ("failed", "failed"), ("blocked", "blocked"), ("budget-exhausted", "failed")],
)
def test_a_worker_says_how_its_work_ended_as_an_agent_here_does(said, status):
    """The same statuses, the same retry policy."""
    made = drive(outside("a", retry=Retry(attempts=2, delays=(5.0,))))
    made.take()
    made.submit("a", status=said, summary="so it is")
    assert made.status("a").value == status
    failure = made.state.nodes["a"].record.failure
    assert failure is not None
    assert failure.message == "so it is"


@pytest.mark.parametrize("data", [{"result": 5}, {"result": {"status": "odd"}}, {"malformed": {}}, {}])
def test_a_submission_that_is_no_result_is_malformed_output(data):
    """G24: also if whoever posted it did not look."""
    made = drive()
    made.take()
    made.request(RequestKind.SUBMIT_WORK, "a", data={"attempt": 1, **data})
    failure = made.state.nodes["a"].record.failure
    assert failure is not None
    assert failure.code.value == "malformed-output"


def test_a_malformed_answer_is_told_with_its_excerpt_and_what_it_spent():
    """G24: what the sender found, masked by it."""
    made = drive()
    made.take()
    said = {"why": "it is no JSON", "excerpt": "Hello", "usage": {"tokens": 3}}
    made.request(RequestKind.SUBMIT_WORK, "a", data={"attempt": 1, "malformed": said})
    failure = made.state.nodes["a"].record.failure
    assert failure is not None
    assert (failure.code.value, failure.message) == (
        "malformed-output", "its answer cannot be used: it is no JSON: Hello",
    )  # fmt: skip
    assert told(made, "spending") == [{"change": "spend", "amount": {"tokens": 3}}]


def test_the_time_limit_ends_an_attempt_whatever_its_lease_says():
    """A worker that beats for ever is out of time all the same."""
    made = drive(outside("a", max_seconds=30))
    timers = {timer.timer.kind: timer.seconds for timer in kinds(made.take(), SetTimer)}
    assert timers == {LEASE: 60.0, DEADLINE: 30}
    actions = made.send(Due(timer=TimerName(kind=DEADLINE, node="a", attempt=1)))
    assert kinds(actions, Abort) == []
    failure = made.state.nodes["a"].record.failure
    assert failure is not None
    assert (made.status("a"), failure.code.value) == (Status.FAILED, "timeout")


def test_a_cancel_takes_the_work_from_its_worker_at_once():
    """Nothing runs here that could be waited for; its late result is refused."""
    made = drive()
    made.take()
    actions = made.request(RequestKind.CANCEL)
    assert kinds(actions, Abort) == []
    assert made.statuses() == {"a": "cancelled", "b": "cancelled"}
    assert left(actions) is not None


def test_work_that_may_not_be_cancelled_is_let_finish():
    """Or expire, and then it is cancelled."""
    made = drive(outside("a", cancellable=False))
    made.take()
    made.request(RequestKind.CANCEL)
    assert made.status("a") is Status.RUNNING
    made.send(LeaseSeen(node="a", attempt=1, left_s=0.0))
    assert made.status("a") is Status.CANCELLED


def test_a_new_host_goes_on_with_a_lease_and_looks_for_no_leftovers():
    """The worker notices nothing."""
    made = drive()
    made.take()
    other = Outside(made.model)
    actions = other.begin()
    assert kinds(actions, EndLeftovers) == []
    assert [timer.timer.kind for timer in kinds(actions, SetTimer)] == [LEASE, DEADLINE]
    assert other.workers()["a"] == "ann"
    assert dispatched(other.submit("a")) == ["b"]


def test_a_drained_host_leaves_the_work_with_its_worker():
    """The run is handed back at once; the lease stands in the store."""
    made = drive(outside("a"))
    made.take()
    assert left(made.send(Drain(grace_s=5))) is not None
    assert made.leased() == {"a": (1, "ann")}


def test_a_drained_host_stops_its_own_work_and_not_that_of_workers():
    """What it cannot stop it does not wait for either."""
    made = drive(outside("a"), writing("b"))
    made.take()
    made.send(Drain(grace_s=5))
    actions = made.send(Due(timer=TimerName(kind=DRAIN)))
    assert [action.node for action in kinds(actions, Abort)] == ["b"]
    assert {timer.timer.node for timer in kinds(actions, SetTimer)} == {"b"}


def test_a_host_that_only_settles_requests_gives_and_takes_work():
    """A command claims the run for that alone, and starts nothing."""
    model = Model([outside("a"), writing("b", "a")])
    take = {"kind": RequestKind.LEASE_WORK, "data": {"worker": "ann", "seconds": 60.0}}
    submit = {"kind": RequestKind.SUBMIT_WORK, "node": "a", "data": {"attempt": 1, "result": DONE}}
    for number, asks in enumerate((take, submit)):
        model.post(Request(request_id=f"r{number}", run_id=RUN_ID, principal=HUMAN, at=AT, **asks))
        made = Outside(model, jobs=0)
        actions = [action for case in kinds(made.begin(), Judge) for action in made.send(rule(case))]
        assert left(actions) is not None
        assert dispatched([*made.now, *made.after]) == []
    assert made.statuses() == {"a": "completed", "b": "ready"}


def test_a_result_that_waits_counts_also_if_its_lease_is_over_and_nobody_else_has_the_work():
    """A good late result is kept: the new host looks at it before it lets another have the work."""
    made = drive()
    made.take()
    submit = {"kind": RequestKind.SUBMIT_WORK, "node": "a", "data": {"attempt": 1, "result": DONE}}
    made.model.post(Request(request_id="late", run_id=RUN_ID, principal=HUMAN, at=AT, **submit))
    other = Outside(made.model)
    other.state.nodes["a"].leased_s = 0.0
    for case in kinds(other.begin(), Judge):
        other.send(rule(case))
    assert other.statuses() == {"a": "completed", "b": "running"}


def test_a_new_host_lets_another_have_work_whose_lease_is_over():
    """The host that gave it is gone, and so may be its worker."""
    made = drive()
    made.take()
    other = Outside(made.model)
    other.state.nodes["a"].leased_s = 0.0
    other.begin()
    assert other.statuses() == {"a": "ready", "b": "pending"}
    assert other.leased() == {}


def test_the_limit_of_active_nodes_counts_what_workers_have():
    """Whatever is worked on, and wherever."""
    made = drive(outside("a"), outside("b"), writing("c"), limits=RunLimits(active=2))
    assert dispatched(made.after) == ["c"]
    made.take()
    made.take("bob")
    assert made.workers() == {"a": "ann", "b": None, "c": None}
    made.returned("c")
    made.take("bob")
    assert made.workers() == {"a": "ann", "b": "bob", "c": None}


def test_work_that_costs_money_is_approved_before_anybody_gets_it():
    """Authority is asked as for any other node."""
    made = drive(outside("a", effect=Effect.PAID_CLOUD))
    assert made.status("a") is Status.APPROVAL_REQUIRED
    made.take()
    assert made.workers()["a"] is None
    made.approve("a")
    made.take()
    assert made.workers()["a"] == "ann"


def test_what_was_spent_is_exact():
    """A decimal as text."""
    made = drive()
    made.take()
    made.submit("a", status="failed", usage={"cost": "0.1"})
    (spent,) = told(made, "spending")
    assert Decimal(spent["amount"]["cost"]) == Decimal("0.1")


@pytest.mark.parametrize("data", [{}, {"worker": ""}, {"worker": "ann", "seconds": 0}, {"worker": "ann"}])
def test_a_lease_that_cannot_be_is_refused(data):
    """Whoever posted it."""
    made = drive()
    made.request(RequestKind.LEASE_WORK, data=data)
    assert made.status("a") is Status.READY
    assert len(told(made, "request-refused")) == 1


def test_whatever_moves_a_node_on_ends_its_lease():
    """A lease of what does not run would be damage: the run could not be claimed any more."""
    made = drive()
    made.take()
    turn = Turn(made.state, Stamp(at=AT, boot_ns=1))
    turn.move(made.state.nodes["a"], Status.FAILED)
    assert made.workers()["a"] is None
    transaction = turn.decision().transaction
    assert transaction is not None
    assert transaction.unleased == ("a",)


def test_work_that_no_budget_lets_go_does_not_wait_for_a_worker():
    """The run is exhausted at once, not when a worker asks; more of the budget lets it go on."""
    made = drive(outside("a", budget=Demand(ask=Ask(tokens=10))), limits=RunLimits(budget=Budget(tokens=9)))
    assert made.state.status is RunStatus.BUDGET_EXHAUSTED
    made.request(RequestKind.BUDGET, data={"add": {"tokens": 1}})
    assert made.state.status is RunStatus.RUNNING
    made.take()
    assert made.workers() == {"a": "ann"}


def test_work_waits_for_workers_until_nothing_of_it_fits_any_more():
    """What one worker spends may be what the next one needs; as long as one fits the run goes on."""
    demand = Demand(ask=Ask(tokens=4))
    nodes = [outside("a", budget=demand), outside("b", budget=demand)]
    made = drive(*nodes, outside("c", budget=Demand(ask=Ask(tokens=1))), limits=RunLimits(budget=Budget(tokens=8)))
    made.take()
    assert made.state.status is RunStatus.RUNNING
    made.submit("a", status="success", usage={"tokens": 6})
    assert made.state.status is RunStatus.RUNNING, "c fits"
    made = drive(*nodes, limits=RunLimits(budget=Budget(tokens=8)))
    made.take()
    made.submit("a", status="success", usage={"tokens": 6})
    assert made.statuses() == {"a": "completed", "b": "ready"}
    assert made.state.status is RunStatus.BUDGET_EXHAUSTED
    assert [one["node"] for one in made.model.events("run-status")[-1]["short"]] == ["b"]
