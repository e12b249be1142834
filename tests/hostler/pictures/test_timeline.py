"""What a run did when, from its log."""

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hostler.pictures.timeline import Bar, Phase, Timeline
from store.lifecycle import FINAL, Status
from tests.hostler.pictures.support import CAPACITY, Story, by_chance


def bar(found: Timeline, key: str) -> Bar:
    return next(bar for bar in found.bars if bar.key == key)


def phases(found: Timeline, key: str) -> list[tuple[str, float]]:
    return [(span.phase.value, round(span.length_s, 3)) for span in bar(found, key).spans]


def test_a_node_waits_runs_and_is_checked() -> None:
    story = Story([("a", None, False), ("b", "Second", True)])
    story.claim()
    story.move("a", Status.QUEUED)
    ticket = story.start("a", after_s=2, cpu=2)
    story.move("a", Status.VERIFYING, after_s=3)
    story.release("a", ticket)
    story.move("a", Status.COMPLETED, after_s=0.5)
    story.move("b", Status.READY, after_s=0)
    story.move("b", Status.CANCELLED, after_s=0.25)
    found = story.told(status="completed")
    assert phases(found, "a") == [
        ("waited for room in its host", 0.2), ("waited for the machine", 2), ("ran", 3), ("its result was checked", 0.5),
    ]  # fmt: skip
    assert phases(found, "b") == [("waited for other nodes", 5.7), ("waited for room in its host", 0.25)]
    assert (bar(found, "a").attempts, round(bar(found, "a").ran_s, 6)) == (1, 3)
    (band,) = found.bands
    (step,) = band.steps
    assert (band.resource, step.units, round(step.start_s, 3), round(step.end_s, 3)) == ("cpu", 2, 2.2, 5.2)
    assert round(found.length_s, 3) == 5.95
    assert found.created_at == "2023-11-14T22:13:20.000Z"


def test_a_failed_attempt_waits_and_is_made_again() -> None:
    story = Story([("a", None, False)])
    story.claim()
    story.start("a", 1, cpu=1)
    story.move("a", Status.CORRECTIVE, after_s=1)
    story.move("a", Status.READY, after_s=4)
    story.start("a", 2, after_s=0, cpu=1)
    story.move("a", Status.COMPLETED, after_s=2)
    found = bar(story.told(status="completed"), "a")
    assert [(span.phase, span.attempt) for span in found.spans] == [
        (Phase.ROOM, None), (Phase.FAILED, 1), (Phase.RETRY, None), (Phase.RAN, 2),
    ]  # fmt: skip
    assert (found.attempts, round(found.ran_s, 6)) == (2, 3)


def test_what_a_dead_host_ran_is_lost_from_its_last_event_and_may_hold_on() -> None:
    """Nothing is known of the time between the last word of a host and the next host's first."""
    story = Story([("a", None, False), ("b", None, False)])
    story.claim(0)
    story.start("a", after_s=0, ffmpeg=1)
    story.move("b", Status.QUEUED, after_s=5)
    story.claim(after_s=10)
    story.move("a", Status.READY, after_s=1)
    found = story.told(running=True)
    assert phases(found, "a") == [
        ("ran and was interrupted", 5), ("its host was gone", 11), ("waited for room in its host", 1),
    ]  # fmt: skip
    (absence,) = found.absences
    assert (absence.died, absence.start_s, absence.end_s) == (True, 5, 15)
    (band,) = found.bands
    assert [(step.units, step.perhaps, step.start_s, step.end_s) for step in band.steps] == [
        (1, 0, 0, 5),
        (0, 1, 5, 16),
    ]


def test_a_run_whose_host_has_died_unseen_is_told_as_one_without_a_host() -> None:
    story = Story([("a", None, False)])
    story.claim(0)
    story.start("a", after_s=0)
    found = story.told(running=True, owned=False)
    assert phases(found, "a") == [("ran and was interrupted", 0), ("its host was gone", 1)]
    assert found.absences[0].died


def test_a_run_that_waits_for_a_person_misses_no_host() -> None:
    """A run that rests has been given back, as it should be."""
    story = Story([("gate", None, False)])
    story.claim(0)
    story.move("gate", Status.APPROVAL_REQUIRED, after_s=0)
    story.log("run-released", after_s=0)  # type: ignore[arg-type]
    found = story.told(running=True, owned=False)
    assert found.absences == ()
    assert phases(found, "gate") == [("waited for a person", 1)]
    assert bar(found, "gate").spans[-1].going


def test_bars_come_in_the_order_in_which_they_began_and_what_never_did_last() -> None:
    story = Story([(key, None, key == "c") for key in "abcd"])
    story.claim()
    story.start("d")
    story.start("b")
    story.move("c", Status.SKIPPED)
    assert [each.key for each in story.told().bars] == ["d", "b", "a", "c"]


@settings(max_examples=150)
@given(st.integers(0, 1 << 32))
@example(13028)  # after what is drawn last a host claims the run and dies
def test_whatever_happens_bars_lie_within_the_picture_and_no_stretch_over_another(seed: int) -> None:
    found = by_chance(random.Random(seed))
    for each in found.bars:
        edge = 0.0
        for span in each.spans:
            assert edge <= span.start_s <= span.end_s <= found.length_s
            edge = span.end_s
        going = [span for span in each.spans if span.going]
        assert going in ([], [*each.spans[-1:]])
        assert not going or (each.status not in FINAL and edge == found.length_s)
        if found.status == "running" and each.status not in FINAL:
            assert going
    for band in found.bands:
        assert band.most <= CAPACITY[band.resource]
        assert all(0 <= step.start_s < step.end_s <= found.length_s for step in band.steps)
        assert band.most == max((step.units + step.perhaps for step in band.steps), default=0)
    assert all(0 <= each.start_s < each.end_s <= found.length_s for each in found.absences)
    assert sorted(each.key for each in found.bars) == sorted({each.key for each in found.bars})
