"""Whether a node still shows that it lives, what is done when it does not, and when somebody says that it has got stuck."""

from typing import Any

import pytest

from actors.actions import Abort, AskPlanner, AskProbe, Dispatch, EndLeftovers, Reconcile, SetTimer, TakePulse
from actors.messages import Due, LeftoversEnded, PlannerAnswered, Probed, PulseTaken, Returned
from actors.outcomes import Aborted, Failed
from actors.scheduling.liveness import first_look_s, look_again_s
from actors.scheduling.operators import as_value
from actors.scheduling.retrying import RETRY
from actors.scheduling.state import Port
from actors.scheduling.stopping import OVERDUE, STALL
from store.contracts import RequestKind
from store.lifecycle import RunStatus, Status
from store.plans import PlannedNode
from store.policy import FailureCode, Heartbeat, Policy, Resume, Retry
from store.terms import Owner, Terms
from tests.actors.support import Drive, Model, code, dispatched, kinds, planned, writing

EVERY_SECOND = Heartbeat(seconds=1.0)


def begun(*nodes: PlannedNode, **options: Any) -> Drive:
    made = Drive(Model(nodes), **options)
    made.begin()
    return made


def beating(key: str, *after: str, heartbeat: Heartbeat = EVERY_SECOND, **policy: Any) -> PlannedNode:
    return writing(key, *after, heartbeat=heartbeat, **policy)


def stall_timers(actions: list) -> list[float]:
    return [action.seconds for action in kinds(actions, SetTimer) if action.timer.kind == STALL]


def seen(made: Drive, node: str = "a", *, attempt: int | None = None, **pulse: Any) -> list:
    """Let its timer run out, and tell what the host has seen of the attempt."""
    number = attempt or made.state.nodes[node].record.attempt
    (timer,) = {
        action.timer
        for action in kinds([*made.now, *made.after], SetTimer)
        if (action.timer.kind, action.timer.node, action.timer.attempt) == (STALL, node, number)
    }
    made.send(Due(timer=timer))
    given = {"beats": 1, "late_s": 0.0, "running": True, **pulse}
    return made.send(PulseTaken(node=node, attempt=number, **given))


def aborts(actions: list) -> list[str]:
    return [action.reason for action in kinds(actions, Abort)]


def test_two_intervals_without_a_beat_are_a_stall_and_a_thousandth_less_is_none():
    """G14: alive at 1.999 s, stalled after 2 s; its processes are ended; the replacement starts its own sequence."""
    made = begun(beating("a", retry=Retry(attempts=2)))
    assert stall_timers(made.after) == [2.0]
    actions = seen(made, silent_s=1.999)
    assert aborts(actions) == []
    assert stall_timers(actions) == [pytest.approx(0.001)]
    actions = seen(made, silent_s=2.0)
    assert aborts(actions) == [STALL]
    assert made.status("a") is Status.RUNNING, "until its processes have ended"
    actions = made.returned("a", Aborted(reason=STALL))
    assert dispatched(actions) == ["a"]
    assert made.model.records["a"].attempt == 2
    assert stall_timers(actions) == [2.0], "the next attempt has its own time, whatever the first one did"
    made.send(PulseTaken(node="a", attempt=1, beats=7, silent_s=99.0))
    assert made.status("a") is Status.RUNNING
    assert made.state.nodes["a"].stopping is None, "what is seen of the old attempt does not count for the new one"


def test_a_worker_that_never_beats_is_extended_while_it_runs_if_its_first_beat_has_grace():
    """G15: never a beat, but at work: looked at again after as long; only what is not there any more is stopped."""
    heartbeat = Heartbeat(seconds=1.0, grace_seconds=30.0)
    made = begun(beating("a", heartbeat=heartbeat))
    assert stall_timers(made.after) == [30.0]
    for silent_s in (30.0, 60.0, 90.0):
        actions = seen(made, beats=0, silent_s=silent_s)
        assert aborts(actions) == []
        assert stall_timers(actions) == [30.0]
    assert aborts(seen(made, beats=0, silent_s=120.0, running=False)) == [STALL]


def test_a_probe_that_says_running_extends_and_only_one_that_says_absent_reclaims():
    """Where an operation can look, it is asked once at a time; no answer is none."""
    made = begun(beating("a"), ports={("test.work", 1): frozenset({Port.PROBE})})
    for said in (True, None):
        actions = seen(made, silent_s=2.0)
        assert (len(kinds(actions, AskProbe)), aborts(actions), stall_timers(actions)) == (1, [], [2.0])
        waiting = seen(made, silent_s=4.0)
        assert (kinds(waiting, AskProbe), aborts(waiting), stall_timers(waiting)) == ([], [], [2.0])
        assert aborts(made.send(Probed(node="a", attempt=1, running=said))) == []
    seen(made, silent_s=9.0)
    assert aborts(made.send(Probed(node="a", attempt=2, running=False))) == [], "of another attempt"
    assert aborts(made.send(Probed(node="a", attempt=1, running=False))) == [STALL]


def test_the_grace_is_for_the_first_beat_alone():
    """Who has beaten once is held to the interval, however long the grace; who has no grace from the start."""
    graced, plain = Heartbeat(seconds=1.0, grace_seconds=30.0), Heartbeat(seconds=1.0)
    assert (first_look_s(graced), first_look_s(plain)) == (30.0, 2.0)

    def again(heartbeat: Heartbeat, **pulse: Any) -> float | None:
        return look_again_s(heartbeat, PulseTaken(node="a", attempt=1, **pulse))

    assert again(graced, beats=0, silent_s=29.0) == 1.0
    assert again(graced, beats=1, silent_s=2.0) is None
    assert again(plain, beats=0, silent_s=2.0) is None
    assert again(plain, beats=0, silent_s=0.5) == 1.5


def test_a_host_that_was_held_up_itself_looks_once_more_before_it_believes_the_silence():
    """Beats may wait to be read where the host was stopped for a while."""
    made = begun(beating("a"))
    actions = seen(made, silent_s=60.0, late_s=58.0)
    assert aborts(actions) == []
    assert stall_timers(actions) == [1.0]
    assert aborts(seen(made, silent_s=61.0)) == [STALL]


def test_a_stall_is_a_failure_like_any_other_to_the_rule_of_retries():
    """Corrective while its policy has a try left, then failed or blocked."""
    for exhausted, status in (("fail", Status.FAILED), ("block", Status.BLOCKED)):
        made = begun(beating("a", retry=Retry(attempts=2, delays=(5.0,), exhausted=exhausted)))
        seen(made, silent_s=2.0)
        made.returned("a", Aborted(reason=STALL))
        assert made.status("a") is Status.CORRECTIVE
        (*_, timer) = [action.timer for action in kinds(made.now, SetTimer) if action.timer.kind == RETRY]
        made.send(Due(timer=timer))
        seen(made, silent_s=2.5)
        made.returned("a", Aborted(reason=STALL))
        assert made.status("a") is status
        assert made.model.records["a"].failure.code is FailureCode.STALLED
    unlisted = begun(beating("a", retry=Retry(attempts=2, codes=(FailureCode.TIMEOUT,))))
    seen(unlisted, silent_s=2.0)
    unlisted.returned("a", Aborted(reason=STALL))
    assert unlisted.status("a") is Status.FAILED


def test_a_stalled_effect_that_may_have_happened_is_not_tried_again_by_itself():
    """A stall says nothing of what was done."""
    policy = Policy(effect="local-read", resume=Resume.AMBIGUOUS_AFTER_DISPATCH, heartbeat=EVERY_SECOND)
    made = begun(planned("a", policy=policy.model_copy(update={"retry": Retry(attempts=9)})))
    seen(made, silent_s=2.0)
    made.returned("a", Aborted(reason=STALL))
    assert made.status("a") is Status.AMBIGUOUS


def test_a_good_result_of_a_stalled_attempt_counts_if_it_comes_before_the_attempt_is_given_up_on():
    """It was silent, and right."""
    made = begun(beating("a"))
    seen(made, silent_s=2.0)
    made.returned("a")
    assert made.status("a") is Status.COMPLETED


def test_a_superseded_attempt_that_succeeds_late_is_logged_and_ignored():
    """G17: attempt 1 was given up on and ends well too late; attempt 2 completes the node."""
    made = begun(beating("a", retry=Retry(attempts=3, delays=(5.0,))))
    seen(made, silent_s=2.0)
    made.send(Due(timer=next(a.timer for a in kinds(made.now, SetTimer) if a.timer.kind == OVERDUE)))
    assert made.status("a") is Status.CORRECTIVE
    made.returned("a", as_value({"by": "the first"}), attempt=1)
    assert made.model.events("late-result", "a") == [{"outcome": "value"}]
    (*_, timer) = [action.timer for action in kinds(made.now, SetTimer) if action.timer.kind == RETRY]
    made.send(Due(timer=timer))
    made.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert made.model.records["a"].attempt == 2
    made.returned("a", as_value({"by": "the first"}), attempt=1)
    assert made.status("a") is Status.RUNNING
    made.returned("a", as_value({"by": "the second"}))
    assert made.model.outputs["a"] == {"by": "the second"}
    assert made.model.records["a"].attempt == 2


def test_without_a_heartbeat_nothing_is_looked_at():
    """A node that never said that it beats is never stalled."""
    made = begun(writing("a"))
    assert stall_timers([*made.now, *made.after]) == []
    made.send(PulseTaken(node="a", attempt=1, beats=0, silent_s=1e6))
    assert made.state.nodes["a"].stopping is None


def test_a_preparation_that_always_fails_is_tried_as_often_as_its_policy_says():
    """G13: two attempts, two preparations, no start; then failed or blocked."""
    for exhausted, status in (("fail", Status.FAILED), ("block", Status.BLOCKED)):
        node = writing("a", retry=Retry(attempts=2, exhausted=exhausted))
        made = begun(node, ports={("test.work", 1): frozenset({Port.PREPARE})})
        refusal = Failed(code=FailureCode.UNAVAILABLE, message="m", todo="t", dispatched=False)
        made.send(PlannerAnswered(node="a", number=1, answer=refusal))
        made.send(PlannerAnswered(node="a", number=2, answer=refusal))
        assert len(kinds(made.after, AskPlanner)) == 2
        assert not kinds([*made.now, *made.after], Dispatch)
        assert (made.status("a"), made.model.records["a"].attempt) == (status, 0)


def test_a_retry_without_delay_completes_and_one_with_a_delay_is_not_made_before_it():
    """G11: attempt 2 completes; 100 ms count from the failure, also for the host that takes the run over."""
    at_once = begun(writing("a", retry=Retry(attempts=2)))
    at_once.failed("a")
    at_once.returned("a")
    assert (at_once.status("a"), at_once.model.records["a"].attempt) == (Status.COMPLETED, 2)
    made = begun(writing("a", retry=Retry(attempts=2, delays=(0.1,))))
    failed = made.failed("a")
    assert not dispatched(failed)
    assert [action.seconds for action in kinds(failed, SetTimer) if action.timer.kind == RETRY] == [0.1]
    assert made.model.records["a"].due_at == "2026-01-01T00:00:02.100Z"
    again = made.crash()
    again.clock = 1
    (timer,) = [action for action in kinds(again.begin(), SetTimer) if action.timer.kind == RETRY]
    assert timer.seconds == 0.1
    assert again.status("a") is Status.CORRECTIVE
    again.send(Due(timer=timer.timer))
    again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert (again.status("a"), again.model.records["a"].attempt) == (Status.RUNNING, 2)


# --- recovering what somebody says has got stuck ----------------------------------------------------------------------


def test_a_recovered_node_is_stopped_and_made_again_whatever_its_policy_says():
    """Somebody asked for it, with a reason: its failures are counted anew and it does not wait."""
    made = begun(writing("a", cancellable=False), writing("b", "a"))
    assert aborts(made.request(RequestKind.RECOVER, "a", reason="it hangs")) == ["recover"]
    actions = made.returned("a", Aborted(reason="recover"))
    assert dispatched(actions) == ["a"]
    record = made.model.records["a"]
    assert (record.attempt, record.failures) == (2, 0)
    (event,) = made.model.events("request", "a")
    assert (event["request"], event["reason"]) == ("recover", "it hangs")
    made.failed("a")
    assert made.status("a") is Status.FAILED, "asked for once, and not for ever"


def test_only_people_and_the_owner_of_the_parent_recover_and_only_what_runs():
    """As for a retry."""
    lead = writing("p").model_copy(update={"terms": Terms(owner=Owner(role="lead", id="lead"))})
    child = writing("a", "p").model_copy(update={"terms": Terms(parent="p")})
    made = begun(lead, child)
    made.request(RequestKind.RECOVER, "a")
    assert "node a is pending; there is nothing to recover" in made.model.events("request-refused", "a")[0]["message"]
    made.returned("p")
    assert not aborts(made.request(RequestKind.RECOVER, "a", principal="agent:other"))
    assert aborts(made.request(RequestKind.RECOVER, "a", principal="agent:lead")) == ["recover"]
    again = made.request(RequestKind.RECOVER, "a")
    assert not aborts(again)
    assert "is being stopped already (recover)" in made.model.events("request-refused", "a")[-1]["message"]


@pytest.mark.parametrize(
    ("node", "status"),
    [
        (planned("a", policy=Policy(effect="local-read", resume=Resume.AMBIGUOUS_AFTER_DISPATCH)), Status.AMBIGUOUS),
        (code("a"), Status.AMBIGUOUS_CODE),
    ],
)
def test_recovering_makes_nothing_again_that_may_have_happened(node, status):
    """It is stopped all the same, and a person says what became of it."""
    made = begun(node)
    made.request(RequestKind.RECOVER, "a")
    made.returned("a", Aborted(reason="recover"))
    assert made.status("a") is status


def test_a_node_whose_host_has_died_is_recovered_once():
    """Whoever takes the run over recovers it anyway; that somebody asked for it as well changes nothing."""
    made = begun(writing("a"))
    made.state.left = False
    again = made.crash()
    again.begin()
    again.request(RequestKind.RECOVER, "a")
    assert again.model.events("request", "a")
    actions = again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert dispatched(actions) == ["a"]
    assert again.model.records["a"].attempt == 2


def test_what_could_not_be_found_out_is_asked_again_when_somebody_recovers_it():
    """A deferred node waits for a later owner, or for a person; nothing is asked beside what still lives of it."""
    policy = Policy(effect="local-derived-write", resume=Resume.RECOVERABLE_TRANSACTION)
    made = begun(planned("a", policy=policy), writing("long"), ports={("test.work", 1): frozenset({Port.RECONCILE})})
    again = made.crash(ports={("test.work", 1): frozenset({Port.RECONCILE})})
    again.begin()
    actions = again.send(LeftoversEnded(nodes=("a", "long"), ended={}, remaining={}))
    assert len(kinds(actions, Reconcile)) == 1
    failed = Failed(code=FailureCode.UNAVAILABLE, message="m", todo="t")
    deferred = again.model.records["a"].attempt
    again.send(Returned(node="a", attempt=deferred, outcome=failed, release=None, reconciling=True))
    assert "a" in again.state.deferred
    asked = again.request(RequestKind.RECOVER, "a")
    assert (kinds(asked, EndLeftovers), kinds(asked, Reconcile)) == ([EndLeftovers(nodes=("a",))], [])
    actions = again.send(LeftoversEnded(nodes=("a",), ended={}, remaining={}))
    assert len(kinds(actions, Reconcile)) == 1
    again.request(RequestKind.RECOVER, "a")
    assert "is being found out already" in again.model.events("request-refused", "a")[-1]["message"]
    again.send(Returned(node="a", attempt=deferred, outcome=as_value({"done": True}), release=None, reconciling=True))
    assert again.status("a") is Status.COMPLETED


# --- cancelling -------------------------------------------------------------------------------------------------------


def test_a_cancelled_node_takes_what_depends_on_it_with_it_and_nothing_else():
    """G20: transitive dependents alone; what has completed stays; a retry that was due is cleared."""
    retry = Retry(attempts=3, delays=(60.0,))
    made = begun(writing("x"), writing("a", "x", retry=retry), writing("b", "a"), writing("c", "b"), writing("y"))
    made.returned("x")
    made.failed("a")
    assert made.model.records["a"].due_at is not None
    made.request(RequestKind.CANCEL, "a")
    assert made.statuses() == {
        "x": "completed", "a": "cancelled", "b": "cancelled", "c": "cancelled", "y": "running",
    }  # fmt: skip
    record = made.model.records["a"]
    assert (record.due_at, record.delay_ms) == (None, 0)
    assert made.model.outputs["x"] == {"by": "x"}
    (*_, timer) = [action.timer for action in kinds(made.now, SetTimer) if action.timer.kind == RETRY]
    made.send(Due(timer=timer))
    assert made.status("a") is Status.CANCELLED


def test_a_cancelled_run_that_has_a_failed_node_ends():
    """G20: no path leaves a run that can never end."""
    made = begun(writing("a"), writing("b", "a"), writing("y"))
    made.failed("a")
    made.request(RequestKind.CANCEL)
    made.returned("y", Aborted(reason="cancel"))
    assert made.state.status is RunStatus.CANCELLED
    assert made.statuses() == {"a": "failed", "b": "skipped", "y": "cancelled"}


def test_a_pulse_is_taken_only_of_an_attempt_that_is_at_work():
    """Neither of one that is being stopped nor of a reconciliation."""
    made = begun(beating("a"))
    (timer,) = [action.timer for action in kinds(made.after, SetTimer) if action.timer.kind == STALL]
    assert len(kinds(made.send(Due(timer=timer)), TakePulse)) == 1
    made.request(RequestKind.CANCEL, "a")
    assert not kinds(made.send(PulseTaken(node="a", attempt=1, beats=1, silent_s=9.0)), Abort)
