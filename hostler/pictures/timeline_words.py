"""What a timeline says in words. Pure."""

from hostler.pictures.holding import Band, Step
from hostler.pictures.timeline import Bar, Phase, Span, Timeline
from hostler.views.terminal import duration


def summary(timeline: Timeline) -> str:
    """Return in one line where the run stands, how many nodes it has and how long it took."""
    nodes = f"{len(timeline.bars)} node{'' if len(timeline.bars) == 1 else 's'}"
    going = any(span.going for bar in timeline.bars for span in bar.spans)
    length = brief(timeline.length_s)
    took = f"{length} since it was created" if going else f"{length} from its creation to its end"
    ran = any(bar.attempts for bar in timeline.bars)
    return " · ".join([timeline.status, nodes, took if ran or going else "nothing ran"])


def origin(timeline: Timeline) -> str:
    """Return what the time axis counts from."""
    day, _, clock = timeline.created_at.partition("T")
    at = f", on {day} at {clock[:8]} UTC" if clock else ""
    return f"time since the run was created{at}"


def brief(s: float) -> str:
    """Return how long something took as people say it; what is shorter than a second in milliseconds."""
    return f"{s * 1000:.0f} ms" if round(s, 3) < 1 else duration(s)


def outcome(bar: Bar) -> str:
    """Return what became of a node, how often it was tried and how long it ran, in few words."""
    parts = [bar.status.value]
    if bar.attempts > 1:
        parts.append(f"{bar.attempts} tries")
    if bar.attempts:
        parts.append(brief(bar.ran_s))
    return ", ".join(parts)


def span_tip(bar: Bar, span: Span) -> str:
    """Return what a stretch of a bar tells where a pointer rests."""
    attempt = f", attempt {span.attempt}" if span.attempt is not None and bar.attempts > 1 else ""
    going = ", and goes on" if span.going else ""
    return f"{bar.key} {_did(span.phase)}{attempt}{going}: {stretch(span.start_s, span.end_s)}"


def _did(phase: Phase) -> str:
    return f"– {phase}" if phase in (Phase.CHECKED, Phase.LOST) else phase.value


def step_tip(band: Band, step: Step) -> str:
    """Return what a stretch of a band tells where a pointer rests."""
    perhaps = f", and perhaps {step.perhaps} more" if step.perhaps else ""
    names = ", ".join(step.nodes[:5]) + (f" and {len(step.nodes) - 5} more" if len(step.nodes) > 5 else "")
    return f"{band.resource}: {step.units} held{perhaps} by {names}: {stretch(step.start_s, step.end_s)}"


def stretch(start_s: float, end_s: float) -> str:
    """Return how long something was, from when to when; seconds in, words out."""
    return f"{brief(end_s - start_s)}, from {start_s:.3f} s to {end_s:.3f} s"
