"""Why a node, or a whole run, does not move: in plain words, with the command that would move it. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

from hostler.views.budgets import waits
from hostler.views.deferred import deferred_text
from hostler.views.naming import EXTERNAL, claims_text, executor_name
from hostler.views.readiness import readiness_text
from hostler.views.show import may_be_retried
from hostler.views.terminal import duration, harmless
from hostres.leftovers import Leftover
from hostres.rows import ADMITTED, Row
from store.contracts import NodeRecord
from store.lazy_dataclass import dataclass
from store.lifecycle import FINAL, LIVE, RUN_FINAL, RUN_RESTING, Status
from store.plans import GraphPlan, PlannedNode
from store.run_view import RunView

_RECORD: Final = "The run was imported: a record of what was done elsewhere, with which nobody goes on."


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why something stands where it stands.

    Attributes:
        node: The node, None for the run.
        status: Its status.
        text: One paragraph.
        command: What to type to move it, None where nothing is to be done.
        otherwise: What else could be typed instead.

    """

    node: str | None
    status: str
    text: str
    command: str | None = None
    otherwise: tuple[str, ...] = ()

    @property
    def commands(self) -> list[str]:
        """All that may be typed, first what is offered first."""
        return [] if self.command is None else [self.command, *self.otherwise]

    def to_json(self, run_id: str) -> dict[str, Any]:
        """Return it in the shape of `why --json`."""
        shape: dict[str, Any] = {"run_id": run_id, "status": self.status, "why": self.text}
        if self.node is not None:
            shape["node"] = self.node
        if self.command is not None:
            shape["command"] = self.command
        if self.otherwise:
            shape["otherwise"] = list(self.otherwise)
        return shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is known of a run when somebody asks why.

    Attributes:
        tickets: What the machine holds or makes wait for it, by node.
        missing: What this program lacks to work on it, one line; None if nothing.
        stopped: Processes of the run that do nothing until somebody continues them.
        stopped_host: The process of its host, if that is stopped likewise.
        deferred: By node, why it could not be found out what its last attempt did.
        given_up: Why its last host gave it up, None if that did not.

    """

    run: RunView
    plan: GraphPlan
    nodes: Sequence[NodeRecord]
    tickets: Mapping[str, Row]
    missing: str | None = None
    stopped: Sequence[Leftover] = ()
    stopped_host: int | None = None
    deferred: Mapping[str, str] = field(default_factory=dict)
    given_up: str | None = None

    @property
    def run_id(self) -> str:
        """The run."""
        return self.run.record.run_id

    @property
    def owned(self) -> bool:
        """Whether a live host works on it."""
        return self.run.owned

    def node(self, key: str) -> NodeRecord:
        """Return a node of it."""
        return next(node for node in self.nodes if node.key == key)

    def planned(self, key: str) -> PlannedNode:
        """Return what is planned for a node of it."""
        return next(node for node in self.plan.nodes if node.key == key)


def why_run(scene: Scene) -> Why:
    """Say why a run stands where it stands."""
    run, run_id = scene.run, scene.run_id
    resting = waits(run, scene.plan, scene.nodes)
    command: str | None = None
    if run.imported:
        text = _RECORD
    elif run.status in RUN_FINAL:
        failed = [node.key for node in scene.nodes if node.status in (Status.FAILED, Status.INCOMPATIBLE)]
        text = f"It has ended, {run.status}" + (f": {_listed(failed)} failed." if failed else ".")
        command = f"hostler why {run_id} {failed[0]}" if failed else None
    elif resting and run.status in RUN_RESTING:
        several = f" and {len(resting) - 1} more" if len(resting) > 1 else ""
        text = f"It waits for a person: {resting[0].node}: {resting[0].message}{several}."
        if scene.missing is not None:
            text = f"{text} {_cannot(scene)}"
        command = resting[0].command
    elif not scene.owned:
        text, command = _nobody(scene)
        text = " ".join([text, *(f"As to {key}: {_deferred(scene, key)}" for key in scene.deferred)])
    else:
        moving = [node for node in scene.nodes if node.status in LIVE - {Status.PENDING}]
        text = " ".join([_owner(scene), *(f"{node.key} is {node.status}." for node in moving[:5])])
        text = " ".join([text, *(f"As to {key}: {_deferred(scene, key)}" for key in scene.deferred)])
        command = f"hostler why {run_id} {moving[0].key}" if moving else _watch(scene)
        text, command = _unless_stopped(scene, text, command)
    return _why(scene, None, run.status.value, text, command)


def why_node(scene: Scene, key: str) -> Why:
    """Say why a node of a run stands where it stands."""
    node = scene.node(key)
    text, command = _of_status(scene, node)
    if scene.run.imported:
        text, command = f"{text} {_RECORD}", None
    elif node.status in LIVE and not scene.owned and scene.run.status not in RUN_FINAL | RUN_RESTING:
        nobody, resume = _nobody(scene)
        outside = node.status in (Status.READY, Status.RUNNING) and _is_for_workers(scene, node)
        text, command = f"{text} {nobody}", command if outside else resume  # a worker moves the run itself
    elif node.status in LIVE:
        text, command = _unless_stopped(scene, text, command)
    return _why(scene, key, node.status.value, text, command)


def _unless_stopped(scene: Scene, text: str, command: str | None) -> tuple[str, str | None]:
    """Say that somebody has stopped its host, and how that goes on, where it is so."""
    if scene.stopped_host is None:
        return text, command
    stopped = f"Somebody has stopped its host (pid {scene.stopped_host}): it does nothing until it is continued."
    return f"{text} {stopped}", f"kill -CONT {scene.stopped_host}"


def _why(scene: Scene, node: str | None, status: str, text: str, command: str | None) -> Why:
    """Return it with what else may be typed where *command* is what moves a node that waits for a person."""
    waiting = () if command is None else waits(scene.run, scene.plan, scene.nodes)
    otherwise = next((each.otherwise for each in waiting if each.command == command), ())
    return Why(node=node, status=status, text=harmless(text), command=command, otherwise=otherwise)


SENTENCES: Final[Mapping[Status, str]] = MappingProxyType(
    {
        Status.PREPARING: "Its planner is working out what exactly it will do.",
        Status.VERIFYING: "Its result is there and is being checked.",
        Status.COMPLETED: "It has completed and will not run again.",
        Status.CANCELLED: "It was cancelled, or what it depends on was, and will not run; a new run is a new chance.",
    }
)
"""Statuses that need no more than a sentence."""


def _of_status(scene: Scene, node: NodeRecord) -> tuple[str, str | None]:
    for each in waits(scene.run, scene.plan, [node]):
        return f"It waits for a person: {each.message}.", each.command
    match node.status:
        case Status.PENDING:
            return _pending(scene, node)
        case Status.READY | Status.RUNNING if _is_for_workers(scene, node):
            return _outside(scene, node)
        case Status.READY:
            return readiness_text(scene.plan, scene.nodes, node.key), _watch(scene)
        case Status.QUEUED:
            return _queued(scene, node), "hostler top"
        case Status.RUNNING:
            return _running(scene, node)
        case Status.CORRECTIVE:
            return f"It failed ({_failure(node)}) and is tried again at {node.due_at}.", _watch(scene)
        case Status.SKIPPED | Status.FAILED | Status.INCOMPATIBLE:
            return _skipped(scene, node) if node.status is Status.SKIPPED else _failed(scene, node)
        case _:
            return SENTENCES[node.status], _watch(scene) if node.status in LIVE else None


def _is_for_workers(scene: Scene, node: NodeRecord) -> bool:
    return executor_name(scene.planned(node.key).executor) == EXTERNAL


def _outside(scene: Scene, node: NodeRecord) -> tuple[str, str | None]:
    """Say that it waits for a worker, or that one has it."""
    if node.status is Status.READY:
        take = f"hostler work next --worker NAME --run {scene.run_id}"
        return "It waits for a worker to take it.", take
    key = f"{scene.run_id}:{node.key}:{node.attempt}"
    text = f"A worker has had attempt {node.attempt} since {node.started_at}; it goes on when that brings its result."
    return text, f"hostler work submit {key} --result FILE"


def _pending(scene: Scene, node: NodeRecord) -> tuple[str, str | None]:
    """Name what it waits for, and of that what is first to blame."""
    missing = [key for key in scene.planned(node.key).dependencies if scene.node(key).status is not Status.COMPLETED]
    if not missing:
        return "All it waits for has just completed.", _watch(scene)
    text = f"It waits for {_listed([f'{key} ({scene.node(key).status})' for key in missing])}."
    root = missing[0]
    while scene.node(root).status is Status.PENDING:
        root = next(key for key in scene.planned(root).dependencies if scene.node(key).status is not Status.COMPLETED)
    if root == missing[0] and len(missing) > 1:
        return text, f"hostler why {scene.run_id} {root}"
    about, command = _of_status(scene, scene.node(root))
    return f"{text} As to {root}: {about[:1].lower()}{about[1:]}", command


def _queued(scene: Scene, node: NodeRecord) -> str:
    claims = claims_text(scene.planned(node.key).policy.claims)
    row = scene.tickets.get(node.key)
    if row is None:
        return f"It waits for the machine to admit {claims}."
    reasons = "; ".join(str(reason) for reason in row.blocked_by) or "it is about to be admitted"
    return f"It has waited {duration(row.for_s)} with ticket {row.ticket} for {claims}: {reasons}."


def _deferred(scene: Scene, key: str) -> str:
    return deferred_text(scene.node(key), scene.deferred[key], scene.plan, owned=scene.owned)


def _running(scene: Scene, node: NodeRecord) -> tuple[str, str | None]:
    if node.key in scene.deferred:
        return _deferred(scene, node.key), f"hostler recover {scene.run_id} {node.key}"
    stopped = [process for process in scene.stopped if process.node == node.key]
    go_on = "kill -CONT " + " ".join(str(process.pid) for process in stopped)
    look = f"hostler logs {scene.run_id} {node.key} --follow"
    return _at_work(scene, node, stopped), go_on if stopped else look


def _at_work(scene: Scene, node: NodeRecord, stopped: Sequence[Leftover]) -> str:
    row = scene.tickets.get(node.key)
    text = f"Attempt {node.attempt} has run since {node.started_at}"
    if row is not None and row.state == ADMITTED:
        processes = _listed([f"{process.command} (pid {process.pid})" for process in row.processes]) or "no process"
        text = f"{text} and holds {claims_text(row.claims)} with ticket {row.ticket}: {processes}"
    sentences = [f"{text}."]
    if node.cancelling and scene.planned(node.key).policy.cancellable:
        sentences.append("It is being cancelled, and will be once nothing of it lives.")
    elif node.cancelling:
        sentences.append("It was cancelled, but may not be interrupted, so that it is let finish.")
    if stopped:
        names = _listed([f"{' '.join(process.command)} (pid {process.pid})" for process in stopped])
        sentences.append(f"Somebody has stopped {names}: nothing of that goes on until it is continued.")
    return " ".join(sentences)


def _failed(scene: Scene, node: NodeRecord) -> tuple[str, str | None]:
    again = f"hostler retry {scene.run_id} {node.key}" if may_be_retried(scene.run, node) else None
    end = "" if again else " It will not run any more; a new run is a new chance."
    return f"It is {node.status}: {_failure(node)}.{end}", again


def _skipped(scene: Scene, node: NodeRecord) -> tuple[str, str | None]:
    """Name what failed before it."""
    frontier, seen = [node.key], {node.key}
    while frontier:
        for key in scene.planned(frontier.pop()).dependencies:
            source = scene.node(key)
            if source.status in (Status.FAILED, Status.INCOMPATIBLE):
                again = f"hostler retry {scene.run_id} {key}" if may_be_retried(scene.run, source) else None
                return f"It was skipped because {key} is {source.status}: {_failure(source)}.", again
            if source.status in FINAL and key not in seen:
                seen.add(key)
                frontier.append(key)
    return "It was skipped because something before it failed.", None


def _nobody(scene: Scene) -> tuple[str, str | None]:
    """Say that no host works on the run, and what this one lacks for it, if anything."""
    owner = scene.run.owner
    gone = f": {owner.host} is gone" if owner is not None else ""
    if scene.given_up is not None:
        gone = f": {scene.given_up}"
    if scene.missing is not None:
        return f"No host works on the run{gone}. {_cannot(scene)}", None
    return f"No host works on the run{gone}.", f"hostler resume {scene.run_id}"


def _cannot(scene: Scene) -> str:
    """Say what this program lacks to go on with the run, and what a person can do."""
    accept = f"hostler resume {scene.run_id} --accept-incompatible"
    return f"This program cannot go on with it: {scene.missing}; bring that back, or go on without: {accept}."


def _watch(scene: Scene) -> str:
    """Return what shows how something goes on by itself."""
    return f"hostler watch {scene.run_id}"


def _owner(scene: Scene) -> str:
    owner = scene.run.owner
    return f"Host {owner.host} works on it." if owner is not None else ""


def _failure(node: NodeRecord) -> str:
    if node.failure is None:
        return "no reason is kept"
    times = f" ({node.failures} times)" if node.failures > 1 else ""
    return f"{node.failure.code}{times}: {node.failure.message}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
