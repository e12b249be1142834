"""What is done for a run beside its attempts: planners and probes are asked, branches moved, leftovers ended."""

from pathlib import Path

from actors.actions import Address, AskPlanner, AskProbe, ForgetPlanner, Integrate
from actors.control import Control
from actors.host_messages import Adopt
from actors.messages import IntegrationEnded, PlannerAnswered, Probed
from actors.operations import Operation
from actors.planner import Planning, Question, answer, still_runs
from actors.services import Services
from actors.shell import tell
from actors.worktrees import Tree, integrated
from store.contracts import RunRecord
from store.plans import Executor, OperationExecutor


class Errands:
    """Runs the errands of one scheduler, each on a thread of its own, and answers by message.

    Args:
        record: The run.
        adopt: What it is worked on with.
        services: What this host has.
        scheduler: Where the answers go.

    """

    def __init__(self, *, record: RunRecord, adopt: Adopt, services: Services, scheduler: Address) -> None:
        self._run_id = record.run_id
        self._folder = Path(record.folder)
        self._adopt = adopt
        self._services = services
        self._scheduler = scheduler
        self._planners: dict[tuple[str, int], Control] = {}
        self._probes: dict[tuple[str, int], Control] = {}

    def ask_planner(self, action: AskPlanner, executor: Executor) -> None:
        """Have the planner of a node answer, whose executor is given."""
        address, control = self._scheduler, Control()
        question = Question(
            operation=self._operation(executor, f"{action.node} has no planner"),
            input=action.input,
            preparation=action.preparation,
        )
        planning = self._planning(action.node, control)
        self._planners[action.node, action.number] = control

        def work() -> None:
            said = answer(question, planning)
            tell(address, PlannerAnswered(node=action.node, number=action.number, answer=said))

        self._services.threads.start(work)

    def planner_answered(self, node: str, number: int) -> None:
        """Take note that this question has its answer."""
        self._planners.pop((node, number), None)

    def forget_planner(self, action: ForgetPlanner) -> None:
        """Let a planner know that nobody waits for its answer."""
        _forget(self._planners, (action.node, action.number))

    def ask_probe(self, action: AskProbe, executor: Executor) -> None:
        """Have the probe of an attempt look whether it still runs; the executor of its node is given."""
        address, control = self._scheduler, Control()
        operation = self._operation(executor, f"{action.node} has no probe")
        planning = self._planning(action.node, control)
        self._probes[action.node, action.attempt] = control

        def work() -> None:
            said = still_runs(operation, action.input, planning)
            tell(address, Probed(node=action.node, attempt=action.attempt, running=said))

        self._services.threads.start(work)

    def forget_probe(self, node: str, attempt: int) -> None:
        """Let the probe of an attempt that has ended know that nobody waits for its answer."""
        _forget(self._probes, (node, attempt))

    def integrate(self, action: Integrate) -> None:
        """Have the branch of an attempt moved."""
        address, worktrees = self._scheduler, self._adopt.worktrees
        tree = Tree(
            run_id=self._run_id,
            node=action.node,
            attempt=action.attempt,
            plan_sha256=action.plan_sha256,
            folder=self._folder,
            workspace=action.workspace,
            paths=action.paths,
        )

        def work() -> None:
            answer = integrated(worktrees, tree, begin=action.begin)
            tell(address, IntegrationEnded(node=action.node, attempt=action.attempt, answer=answer))

        self._services.threads.start(work)

    def end_leftovers(self, nodes: tuple[str, ...]) -> None:
        """Have what dead hosts left of these nodes ended."""
        run_id, address, machine = self._run_id, self._scheduler, self._services.machine_folder

        def work() -> None:
            from actors.leftovers import ended_leftovers  # noqa: PLC0415 - most runs leave none

            tell(address, ended_leftovers(run_id, nodes, machine))

        self._services.threads.start(work)

    def abort(self) -> None:
        """Let all that were asked know that nobody waits for an answer any more."""
        for control in (*self._planners.values(), *self._probes.values()):
            control.abort("drain", grace_s=0.0)

    def _operation(self, executor: Executor, refusal: str) -> Operation:
        if not isinstance(executor, OperationExecutor):
            raise TypeError(refusal)
        operation: Operation = self._adopt.operations[executor.operation, executor.version]
        return operation

    def _planning(self, node: str, control: Control) -> Planning:
        return Planning(run_id=self._run_id, node=node, folder=self._folder, control=control)


def _forget(asked: dict[tuple[str, int], Control], question: tuple[str, int]) -> None:
    control = asked.pop(question, None)
    if control is not None:
        control.abort("cancel", grace_s=0.0)
