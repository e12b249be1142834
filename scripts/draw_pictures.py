"""The pictures in docs/pictures/: the plan of an example, and the timeline of a run of it that lost its host once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from hostler.compiler import compile_workflow
from hostler.loading import load
from hostler.pictures.chart import plan_chart
from hostler.pictures.chart_drawing import chart_svg
from hostler.pictures.timeline import Subject, timeline
from hostler.pictures.timeline_drawing import timeline_svg
from store.clock import instant, unix_ms
from store.contracts import Event, EventKind
from store.lifecycle import Status
from store.plans import GraphPlan

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = "docs/pictures"
RUN_ID: Final = "run_01k9z0c4m2x7q3v8b5n6t1w0ra"
BEGAN_MS: Final = unix_ms("2026-11-30T09:00:00.000Z")
CAPACITY: Final = {"cpu": 4, "ffmpeg": 2, "local-io": 2, "whisper": 1}


def pictures() -> Mapping[str, str]:
    """Return file → picture."""
    inputs = {"source": "talk.mp4", "out": "published"}
    plan = compile_workflow(load("examples/podcast.py", folder=ROOT), inputs, folder=ROOT).plan
    told = timeline(
        Subject(
            title=f"podcast@1 · {RUN_ID}",
            status="completed",
            nodes=[(node.key, node.label, bool(node.dependencies)) for node in plan.nodes],
            capacity=CAPACITY,
        ),
        _Log(plan).tell(),
    )
    return {
        f"{FOLDER}/plan.svg": chart_svg(plan_chart(plan, asks=(), denied=())),
        f"{FOLDER}/timeline.svg": timeline_svg(told),
    }


class _Log:
    """The log of the run, as far as it was told."""

    def __init__(self, plan: GraphPlan) -> None:
        self._claims = {node.key: dict(node.policy.claims) for node in plan.nodes}
        self._attempts = dict.fromkeys(self._claims, 0)
        self._tickets: dict[str, int] = {}
        self._events: list[Event] = []

    def tell(self) -> list[Event]:
        """Return all of it: a host works, is killed at 13 s, and another goes on at 18 s."""
        self._log(0.0, EventKind.RUN_CREATED)
        self._log(0.2, EventKind.RUN_CLAIMED)
        self._run("probe", 0.2, 0.3, 1.0, releases=("video", "audio"))
        self._start("video", 1.0, 1.1)
        self._run("audio", 1.0, 1.1, 3.2, releases=("text",))
        self._start("text", 3.2, 6.0)
        self._log(13.0, EventKind.NODE_PLAN, "video")
        self._log(18.0, EventKind.RUN_CLAIMED)
        for key in ("video", "text"):
            self._move(18.4, key, Status.READY)
        self._run("video", 18.4, 18.5, 29.0)
        self._run("text", 18.4, 18.5, 26.5, releases=("publish/talk.srt",))
        self._run("publish/talk.srt", 26.5, 26.6, 27.2)
        self._move(29.0, "subtitled", Status.READY)
        self._run("subtitled", 29.0, 29.1, 31.0, releases=("publish/talk.mp4",))
        self._run("publish/talk.mp4", 31.0, 31.1, 32.0)
        self._log(32.0, EventKind.RUN_FINALIZED)
        return sorted(self._events, key=lambda event: event.boot_ns)

    def _run(self, key: str, queued_s: float, start_s: float, end_s: float, releases: tuple[str, ...] = ()) -> None:
        self._start(key, queued_s, start_s)
        at = _boot_ns(end_s - 0.3)
        self._log(end_s - 0.3, EventKind.LEASE_RELEASED, key, ticket=self._tickets[key], released_boot_ns=at)
        self._move(end_s - 0.3, key, Status.VERIFYING)
        self._move(end_s, key, Status.COMPLETED)
        for released in releases:
            self._move(end_s, released, Status.READY)

    def _start(self, key: str, queued_s: float, start_s: float) -> None:
        self._move(queued_s, key, Status.QUEUED)
        self._attempts[key] += 1
        self._tickets[key] = len(self._events)
        self._log(
            start_s,
            EventKind.NODE_RUNNING,
            key,
            status=Status.RUNNING.value,
            ticket=self._tickets[key],
            claims=self._claims[key],
            admitted_boot_ns=_boot_ns(start_s),
        )

    def _move(self, at_s: float, key: str, status: Status) -> None:
        self._log(at_s, EventKind.NODE_STATUS, key, status=status.value)

    def _log(self, at_s: float, kind: EventKind, node: str | None = None, **data: Any) -> None:
        event = Event(
            run_id=RUN_ID,
            seq=len(self._events) + 1,
            at=instant(BEGAN_MS + round(at_s * 1000)),
            boot_ns=_boot_ns(at_s),
            kind=kind,
            node=node,
            attempt=self._attempts.get(node or "") or None,
            data=data,
            prev_sha256="0" * 64,
            sha256="0" * 64,
        )
        self._events.append(event)


def _boot_ns(at_s: float) -> int:
    return 1_000_000_000_000 + round(at_s * 1e9)


def main() -> None:
    """Write them."""
    for name, picture in pictures().items():
        (ROOT / name).parent.mkdir(exist_ok=True)
        (ROOT / name).write_text(picture, encoding="utf-8")
    print(f"scripts/draw-pictures: {FOLDER}/ is current")


if __name__ == "__main__":
    main()
