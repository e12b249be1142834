"""What a view of a running run knows, kept up to date by what is told of it. No terminal here."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from actors.actions import NodeChanged, RunChanged, RunLeft
from actors.host_messages import Report
from actors.messages import Progress
from hostler.views.naming import EXTERNAL, executor_name
from hostler.views.show import seconds_between, seconds_since, seconds_until
from hostler.views.tree import Tree
from hostler.views.waiting import Waiting, waiting_on
from store.contracts import NodeRecord
from store.lifecycle import COUNTED_AS, RESTING, RunStatus, Status
from store.plans import GraphPlan, PlannedNode

_MOVING = frozenset({Status.RUNNING, Status.VERIFYING})
_RANK = {
    **dict.fromkeys(_MOVING, 0),
    **dict.fromkeys(RESTING, 1),
    Status.QUEUED: 2,
    Status.PREPARING: 2,
    Status.FAILED: 3,
    Status.INCOMPATIBLE: 3,
    Status.CORRECTIVE: 3,
    Status.READY: 4,
    Status.COMPLETED: 5,
    Status.CANCELLED: 5,
    Status.SKIPPED: 5,
    Status.PENDING: 6,
}


def _first(planned: PlannedNode) -> NodeRecord:
    return NodeRecord(key=planned.key, status=Status.PENDING if planned.dependencies else Status.READY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the processes of a node use.

    Attributes:
        cpus: CPUs that they keep busy; 1.0 is a whole one.
        memory_bytes: Memory that they have in use.
        stopped: The numbers of those that do nothing until somebody continues them.

    """

    cpus: float
    memory_bytes: int
    stopped: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a look at the machine has shown of a run.

    Attributes:
        usage: Node → what its processes use.
        held: Node that waits for the machine → what it lacks and who has it.

    """

    usage: Mapping[str, Usage] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Line:
    """One node as a view shows it.

    Attributes:
        runs: Its label, else what it runs.
        after: The keys of those it waits for.
        outside: Whether its work is for whoever takes it.
        since_s: When it took its status, monotonic seconds; None for a status from before this view.
        due_s: When it is tried again, monotonic seconds.
        took_s: How long its last status but one had lasted, seconds: of a finished node, how long it ran.
        fraction: Progress from 0 to 1, None if it does not tell.
        speed: Times real time.
        left_s: Time left, seconds.

    """

    key: str
    runs: str
    record: NodeRecord
    order: int
    after: tuple[str, ...] = ()
    outside: bool = False
    since_s: float | None = None
    due_s: float | None = None
    took_s: float | None = None
    fraction: float | None = None
    text: str = ""
    speed: float | None = None
    left_s: float | None = None

    @property
    def status(self) -> Status:
        """Where it stands."""
        return self.record.status

    @property
    def moving(self) -> bool:
        """Whether it runs now."""
        return self.status in _MOVING


@dataclass(slots=True)
class Board:
    """All nodes of a run, in the order of its plan.

    Attributes:
        run_id: The run.
        workflow: Its workflow.
        started_s: When this view began, monotonic seconds.
        status: Of the run.
        ran_before_s: How long before this view the run began, seconds.
        tree: Where each node hangs.
        looked: What the last look at the machine has shown.
        measured: Whether any node ever told how far it is.
        until_s: Returns how many seconds there are to an instant.
        ends_s: When what runs is stopped, monotonic seconds; None as long as nobody wants this host to stop.

    """

    run_id: str
    workflow: str
    started_s: float
    status: RunStatus
    ran_before_s: float = 0.0
    lines: dict[str, Line] = field(default_factory=dict)
    tree: Tree = field(default_factory=Tree)
    looked: Looked = field(default_factory=Looked)
    until_s: Callable[[str], float] = seconds_until
    measured: bool = False
    ends_s: float | None = None
    _plan: GraphPlan | None = None
    _told: dict[str, Progress] = field(default_factory=dict)

    def fill(
        self, plan: GraphPlan, nodes: Iterable[NodeRecord], *, age_s: Callable[[str], float] = seconds_since
    ) -> None:
        """Take in the nodes as they stand in the store.

        Args:
            plan: The graph plan.
            nodes: The records of its nodes; one that has none stands as in a new run.
            age_s: Returns how many seconds ago an instant was.

        """
        records = {node.key: node for node in nodes}
        self._plan, self.tree = plan, Tree.of(plan)
        for order, planned in enumerate(plan.nodes):
            record = records.get(planned.key) or _first(planned)
            line = self.lines[planned.key] = Line(
                key=planned.key,
                runs=planned.label or executor_name(planned.executor),
                record=record,
                order=order,
                after=planned.dependencies,
                outside=executor_name(planned.executor) == EXTERNAL,
            )
            if line.moving and record.started_at is not None:
                line.since_s = self.started_s - age_s(record.started_at)
            elif record.due_at is not None:
                line.due_s = self.started_s + self.until_s(record.due_at)
            elif record.started_at is not None and record.finished_at is not None:
                line.took_s = seconds_between(record.started_at, record.finished_at)

    def apply(self, change: Report, now_s: float) -> Line | None:
        """Take in one change.

        Args:
            change: What the host told.
            now_s: Monotonic seconds.

        Returns:
            The line of the node whose status changed, if one did.

        """
        match change:
            case NodeChanged(record=record):
                return self._node(record, now_s)
            case Progress() as progress:
                self._progress(progress)
            case RunChanged(status=status) | RunLeft(status=status):
                self.status = status
        return None

    def _node(self, record: NodeRecord, now_s: float) -> Line | None:
        line = self.lines[record.key]
        before = line.record
        line.record = record
        if (record.status, record.attempt) == (before.status, before.attempt):
            return None
        line.took_s = None if line.since_s is None else now_s - line.since_s
        line.since_s = now_s
        line.due_s = None if record.due_at is None else now_s + self.until_s(record.due_at)
        line.fraction = line.speed = line.left_s = None
        line.text = ""
        told = self._told.pop(record.key, None)
        if told is not None:
            self._progress(told)
        return line

    def _progress(self, progress: Progress) -> None:
        line = self.lines.get(progress.node)
        if line is None or progress.attempt < line.record.attempt:
            return  # of an attempt that is over
        if line.status is not Status.RUNNING or progress.attempt != line.record.attempt:
            self._told[line.key] = progress  # work is quick, and told of before it is durable that it runs
            return
        line.fraction, line.text = progress.fraction, progress.text
        line.speed, line.left_s = progress.speed, progress.left_s
        self.measured = self.measured or progress.fraction is not None

    @property
    def queued(self) -> bool:
        """Whether anything waits for the machine."""
        return any(line.status is Status.QUEUED for line in self.lines.values())

    def usage(self) -> Usage | None:
        """Return what all processes of the run use; None if there are none."""
        every = [one for key, one in self.looked.usage.items() if key in self.lines and self.lines[key].moving]
        if not every:
            return None
        return Usage(cpus=sum(one.cpus for one in every), memory_bytes=sum(one.memory_bytes for one in every))

    def asks(self) -> list[Waiting]:
        """Return what waits for a person, in the order of the plan."""
        resting = [line.record for line in self.lines.values() if line.status in RESTING]
        return waiting_on(self.run_id, self._plan, resting) if resting and self._plan else []

    def totals(self) -> Counter[str]:
        """Return how many nodes stand under which heading."""
        return Counter(COUNTED_AS[line.status] for line in self.lines.values())

    def most_telling(self, room: int) -> list[Line]:
        """Return at most *room* lines in the order of the plan, those first that run, rest or wait."""
        if len(self.lines) <= room:
            return list(self.lines.values())
        telling = sorted(self.lines.values(), key=lambda line: (_RANK[line.status], -(line.since_s or 0.0), line.order))
        return sorted(telling[:room], key=lambda line: line.order)
