"""The demo's closing table and its verdict, from made-up events."""

from collections.abc import Mapping
from typing import Any

import pytest

from scripts import demo_report as report

SECOND = 1_000_000_000


def story(
    node: str, queued: float, admitted: float, released: float | None, claims: Mapping[str, int], attempt: int = 1
) -> list[dict[str, Any]]:
    """What a run logs of one node; times in seconds."""

    def event(kind: str, at: float, number: int | None, **data: Any) -> dict[str, Any]:
        return {"kind": kind, "node": node, "attempt": number, "boot_ns": round(at * SECOND), "data": data}

    events = [
        event("node-status", queued, None, status="queued", **{"from": "pending", "via": ["ready"]}),
        event(
            "node-running",
            admitted + 0.01,
            attempt,
            status="running",
            claims=dict(claims),
            ticket=1 if claims else None,
            admitted_boot_ns=round(admitted * SECOND) if claims else None,
        ),
    ]
    if released is not None:
        events.append(event("node-status", released, attempt, status="completed", **{"from": "running"}))
        if claims:
            events.append(
                event("lease-released", released + 0.2, attempt, ticket=1, released_boot_ns=round(released * SECOND))
            )
    return events


CAPACITY = {"cpu": 2, "ffmpeg": 2, "whisper": 1}
SPEECH = {"whisper": 1, "cpu": 1}


def steps(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> list[Any]:
    return [*report.steps_of("one", one), *report.steps_of("two", two)]


def test_waiting_and_running_are_read_from_the_events() -> None:
    """Holding is from the admission to the release, not from when they were written down."""
    [step] = report.steps_of("one", story("text", 1, 3, 5, SPEECH))
    assert (step.key, step.queued_ns, step.admitted_ns, step.released_ns) == ("text", SECOND, 3 * SECOND, 5 * SECOND)
    assert step.claims == SPEECH


def test_a_node_without_claims_runs_from_its_event_to_its_end() -> None:
    """It has no ticket."""
    [step] = report.steps_of("one", story("sum", 1, 3, 5, {}))
    assert (step.admitted_ns, step.released_ns) == (round(3.01 * SECOND), 5 * SECOND)


def test_each_attempt_is_a_step() -> None:
    """A node that was interrupted runs again."""
    events = [*story("text", 1, 2, 3, SPEECH), *story("text", 4, 5, 6, SPEECH, attempt=2)]
    assert [(step.queued_ns, step.admitted_ns) for step in report.steps_of("one", events)] == [
        (1 * SECOND, 2 * SECOND),
        (4 * SECOND, 5 * SECOND),
    ]


def test_whisper_one_after_the_other_is_within_a_capacity_of_one() -> None:
    """Also when the second was admitted in the very nanosecond of the first one's release."""
    seen = steps(story("text", 1, 2, 5, SPEECH), story("text", 1, 5, 8, SPEECH))
    assert report.most_at_once(seen) == {"cpu": 1, "whisper": 1}
    assert report.problems(seen, CAPACITY) == []
    assert report.whisper_sentence(seen, CAPACITY) == "whisper never ran twice at once"


def test_two_whispers_at_once_do_not_pass() -> None:
    """The one thing the demo is there to show."""
    seen = steps(story("text", 1, 2, 5, SPEECH), story("text", 1, 4.9, 8, SPEECH))
    assert report.problems(seen, CAPACITY) == ["2 whisper were held at once where the machine has 1"]


def test_more_units_than_the_machine_has_do_not_pass() -> None:
    """Over all runs together, whatever the resource."""
    seen = steps(
        [*story("a", 0, 1, 4, {"ffmpeg": 1}), *story("b", 0, 1, 4, {"ffmpeg": 1})],
        story("a", 0, 3, 5, {"ffmpeg": 1}),
    )
    assert report.problems(seen, CAPACITY) == ["3 ffmpeg were held at once where the machine has 2"]


def test_a_claim_whose_end_is_not_on_record_does_not_pass() -> None:
    """What is not proved does not hold."""
    seen = steps(story("text", 1, 2, None, SPEECH), [])
    assert report.problems(seen, CAPACITY) == ["no event tells when one/text gave its units back"]


def test_a_machine_that_allows_two_whispers_is_not_blamed_for_it() -> None:
    """Its user said so; the sentence says how many ran."""
    seen = steps(story("text", 1, 2, 5, SPEECH), story("text", 1, 3, 8, SPEECH))
    allowed = {**CAPACITY, "whisper": 2}
    assert report.problems(seen, allowed) == []
    assert report.whisper_sentence(seen, allowed) == "2 whispers ran at once, where this machine allows 2"
    assert report.whisper_sentence([], CAPACITY) == "no step needed whisper"


def test_the_table_shows_who_waited_for_whom() -> None:
    """Steps of one name stand together; the bars have one scale."""
    seen = steps(
        [*story("audio", 0, 0, 1, {"ffmpeg": 1}), *story("text", 1, 1, 4, SPEECH)],
        [*story("audio", 0, 0, 1, {"ffmpeg": 1}), *story("text", 1, 4, 6, SPEECH)],
    )
    assert report.table(seen, CAPACITY) == [
        "step        waited from    for   ran from    for   0 s                            6.0 s",
        "one/audio         0.0 s  0.0 s      0.0 s  1.0 s   ######",
        "two/audio         0.0 s  0.0 s      0.0 s  1.0 s   ######",
        "one/text          1.0 s  0.0 s      1.0 s  3.0 s         ##################",
        "two/text          1.0 s  3.0 s      4.0 s  2.0 s         ..................###########",
        "",
        ". waits for the machine   # runs   most units at once: cpu 1 of 2, ffmpeg 2 of 2, whisper 1 of 1",
    ]
    assert report.table([], CAPACITY) == ["no step ran"]


@pytest.mark.parametrize("queued", [0.0, 5.9999])
def test_a_bar_is_never_empty_nor_beyond_the_scale(queued: float) -> None:
    """A step of a millisecond at either end."""
    seen = steps(story("long", 0, 0, 6, {}), story("short", queued, queued, queued + 0.0001, {}))
    line = next(line for line in report.table(seen, CAPACITY) if "two/short" in line)
    assert line.count("#") == 1
    assert len(line) <= len(report.table(seen, CAPACITY)[0])
