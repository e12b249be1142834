"""What a page shows: read from the store and the machine the moment it is asked for, and never written."""

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from hostler.dashboard.guard import Kind, Page
from hostler.dashboard.pages import (
    EVENTS_SHOWN,
    command,
    document,
    machine_page,
    node_page,
    refused_page,
    run_page,
    runs_page,
)
from hostler.log_streams import said
from hostler.pictures.chart_drawing import chart_svg
from hostler.pictures.page import safe
from hostler.pictures.timeline_drawing import timeline_svg
from hostler.run_pictures import chart_of, timeline_of
from hostler.scenes import scene_of
from hostler.stored_runs import node_of
from hostler.views.budgets import waits
from hostler.views.why import Scene
from hostres.errors import Code, HostlerError
from hostres.folders import machine_folder
from hostres.logs import read_log
from hostres.top import snapshot
from store.home import Home
from store.lifecycle import RUN_FINAL, Status
from store.reader import Reader

RUNS_A_PAGE: Final = 100
MAX_EVENTS: Final = 20_000
"""A run with more is not drawn here: nobody waits for it between two looks."""
LOG_TAIL_BYTES: Final = 64 << 10
EVERY_MS: Final = 2000
REST: Final = 20
"""A page that takes long is asked for less often, so that looking on costs at most a twentieth of a CPU."""

HTML: Final = "text/html; charset=utf-8"
_ASSETS: Final = {Kind.STYLE: "text/css; charset=utf-8", Kind.SCRIPT: "text/javascript; charset=utf-8"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """An answer.

    Attributes:
        status: Of HTTP.
        kind: Its media type.
        data: What is sent.

    """

    status: int
    kind: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Body:
    title: str
    html: str
    live: bool = True


class Looking:
    """Answers requests that were let in.

    Args:
        folder: The state folder, which may be made only later.
        root: The path under which all pages are, with a slash at its end.

    """

    def __init__(self, folder: Path, root: str) -> None:
        self._folder = folder
        self._root = root

    def show(self, page: Page) -> Shown:
        """Return what a page shows now; what is wrong with the store is a page too."""
        if page.kind in _ASSETS:
            data = resources.files("hostler.dashboard").joinpath(page.kind.value).read_bytes()
            return Shown(status=200, kind=_ASSETS[page.kind], data=data)
        began_s = time.monotonic()
        status = 200
        try:
            body = self._body(page)
        except HostlerError as error:
            status = 404 if error.code is Code.NOT_FOUND else 503
            body = _Body(title="Not shown", html=refused_page(error.what, error.todo), live=status != 404)
        every_ms = max(EVERY_MS, int((time.monotonic() - began_s) * 1000 * REST)) if body.live else 0
        text = document(body.title, body.html, root=self._root, every_ms=every_ms)
        return Shown(status=status, kind=HTML, data=text.encode())

    def _body(self, page: Page) -> _Body:
        if page.kind is Kind.MACHINE:
            return _Body(title="Machine", html=machine_page(snapshot(machine_folder(os.environ))))
        home = Home.open(self._folder, create=False)
        with Reader.open(home) as reader:
            match page.kind:
                case Kind.RUN:
                    return self._run(home, reader, page.run)
                case Kind.NODE:
                    return self._node(home, reader, page.run, page.node)
                case _:
                    rows = reader.runs(limit=RUNS_A_PAGE, before=page.before)
                    damage = reader.damage.what if reader.damage is not None else ""
                    return _Body(title="Runs", html=runs_page(rows, root=self._root, limit=RUNS_A_PAGE, damage=damage))

    def _run(self, home: Home, reader: Reader, run_id: str) -> _Body:
        scene = scene_of(home, reader, run_id, load=False)
        events = list(itertools.islice(reader.events(run_id), MAX_EVENTS + 1))
        drawn = len(events) <= MAX_EVENTS
        html = run_page(
            scene,
            root=self._root,
            waits=waits(scene.run, scene.plan, scene.nodes),
            timeline=_picture(lambda: timeline_svg(timeline_of(reader, run_id))) if drawn else _too_long(run_id),
            graph=_picture(lambda: chart_svg(chart_of(reader, run_id))),
            events=events[-EVENTS_SHOWN:] if drawn else (),
        )
        return _Body(title=f"{scene.run.record.workflow} {run_id}", html=html, live=_may_change(scene))

    def _node(self, home: Home, reader: Reader, run_id: str, key: str) -> _Body:
        node = node_of(reader, run_id, key)
        scene = scene_of(home, reader, run_id, load=False)
        logs = home.logs_of(run_id, key, node.attempt)
        shown = {stream: text for stream in said(logs) if (text := _tail(logs[stream]))}
        html = node_page(scene, key, root=self._root, logs=shown)
        return _Body(title=f"{key} of {run_id}", html=html, live=_may_change(scene))


def _may_change(scene: Scene) -> bool:
    """Say whether a run may still go on, as one that has ended does where a failed node is retried."""
    if scene.run.imported:
        return False
    return scene.run.status not in RUN_FINAL or any(node.status is Status.FAILED for node in scene.nodes)


def _picture(draw: Callable[[], str]) -> str:
    """Return a picture, or how to have pictures where their libraries are not installed."""
    try:
        return draw().partition("\n")[2]  # without the XML declaration
    except HostlerError as error:
        if error.code is not Code.UNAVAILABLE:
            raise
        return f"<p>{safe(error.what)}.</p>{command(error.todo)}"


def _too_long(run_id: str) -> str:
    return f"<p>Its log is too long to be drawn on a live page.</p>{command(f'hostler timeline {run_id} -o run.svg')}"


def _tail(path: Path) -> str:
    try:
        data = b"".join(read_log(path))
    except FileNotFoundError:  # it went while we looked
        return ""
    if len(data) <= LOG_TAIL_BYTES:
        return data.decode(errors="replace")
    cut = data[-LOG_TAIL_BYTES:].partition(b"\n")[2]
    return f"… {len(data) - len(cut)} bytes before this\n{cut.decode(errors='replace')}"
