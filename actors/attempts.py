"""Attempts as a host makes them: what the core dispatches, with its code, its place and its host around it."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from actors.actions import Address, Dispatch, Reconcile
from actors.assignment import Assignment
from actors.control import Control
from actors.dependencies import KeptFile, kept_files
from actors.executor import Executor, Port
from actors.host_messages import Adopt
from actors.operations import Compute, Operation, Previous
from actors.pulse import Pulse
from actors.scheduling.state import RunState
from actors.services import Services
from actors.work import Job, write_log
from actors.workspaces import opened
from actors.worktrees import Tree
from hostres.errors import HostlerError
from hostres.lease import Lease
from store.plans import CommandExecutor, ComputeExecutor, OperationExecutor
from store.references import references

RECONCILER: Final = "\nThen its reconciler was asked what the attempt had done:\n\n"
"""Between what an attempt says in a log and what its reconciler, when it was last asked, says there."""

log = logging.getLogger(__name__)


class Attempts:
    """Makes the executors of one run.

    Args:
        state: The run.
        adopt: What it is worked on with.
        services: What this host has.
        scheduler: Where an attempt answers.

    """

    def __init__(self, *, state: RunState, adopt: Adopt, services: Services, scheduler: Address) -> None:
        self._state = state
        self._adopt = adopt
        self._services = services
        self._scheduler = scheduler
        self._run_id = state.run_id
        self._folder = Path(state.record.folder)

    def executor(
        self, action: Dispatch | Reconcile, *, lease: Lease | None, pulse: Pulse | None, previous: Previous | None
    ) -> Executor:
        """Return the executor of an attempt, which is not started yet.

        Args:
            action: Which attempt of what.
            lease: What it holds on the machine.
            pulse: Where its signs of life are noted, if it gives any.
            previous: The attempt whose outcome is to be found out; None makes one.

        """
        control = Control()
        home = self._services.home
        reconciling = previous is not None

        def logs(stream: str) -> Path:
            return home.log_path(self._run_id, action.node, action.attempt, stream)

        def keep(stream: str, text: str) -> None:
            try:
                path = logs(stream)
            except (OSError, HostlerError):  # no fault of the node, whose own one is told without its log
                log.warning("there is no place for a log of %s", action.node, exc_info=True)
            else:
                before = f"{_said_before(path)}{RECONCILER}" if reconciling else ""
                write_log(path, f"{before}{job.mask().text(text)}")

        port = Port(
            node=action.node,
            attempt=action.attempt,
            scheduler=self._scheduler,
            control=control,
            logs=logs,
            workspace=self._workspace(action, control, reconciling=reconciling),
            reconciling=reconciling,
            pulse=pulse,
        )
        job = Job(
            plan=action.plan,
            authored=self._state.nodes[action.node].planned.input,
            given=action.given if isinstance(action, Dispatch) else None,
            code=self._code(action),
            previous=previous,
            entry=self._adopt.entry,
            files=() if reconciling else self._files(action),
            task=action.task if isinstance(action, Dispatch) else None,
            write_log=keep,
            assignment=Assignment(
                run_id=self._run_id,
                node=action.node,
                attempt=action.attempt,
                folder=self._folder,
                niceness=self._services.niceness,
                beats=pulse is not None,
                in_repository=action.plan.workspace is not None,
                envelope=self._state.nodes[action.node].envelope,
                kept=(home.root, self._services.machine_folder),
            ),
            host=port,
            lease=lease,
        )
        return Executor(
            job=job,
            control=control,
            lease=lease,
            threads=self._services.threads,
            scheduler=self._scheduler,
            node=action.node,
            attempt=action.attempt,
        )

    def _workspace(self, action: Dispatch | Reconcile, control: Control, *, reconciling: bool) -> Callable[[], Path]:
        """Return what gives the workspace of an attempt, as it begins with it, on the thread of its work."""
        home, worktrees, planned = self._services.home, self._adopt.worktrees, action.plan.workspace
        if planned is None:
            return lambda: opened(
                home.workspace(self._run_id, action.node, action.plan_sha256),
                reconciling=reconciling,
                between=control.check,
            )
        tree = Tree(
            run_id=self._run_id,
            node=action.node,
            attempt=action.attempt,
            plan_sha256=action.plan_sha256,
            folder=self._folder,
            workspace=planned,
            paths=None,
        )
        return lambda: worktrees.open(tree, control, anew=not reconciling)

    def _files(self, action: Dispatch | Reconcile) -> tuple[KeptFile, ...]:
        """Return the files of those commands whose output its input refers to.

        Only what lies in a workspace: where a person settled a command as completed, its output is that person's word.
        """
        state = self._state
        commands = [
            key for key in action.plan.dependencies if isinstance(state.nodes[key].planned.executor, CommandExecutor)
        ]
        if not commands:
            return ()
        used = {reference.node for reference in references(state.nodes[action.node].planned.input)}
        return tuple(
            file
            for key in commands
            if key in used
            for file in kept_files(key, state.outputs[key], hashed=key in state.reused)
            if file.path.is_relative_to(self._services.home.staging)
        )

    def _code(self, action: Dispatch | Reconcile) -> Operation | Compute | None:
        match action.plan.executor:
            case OperationExecutor(operation=kind, version=version):
                operation: Operation | None = self._adopt.operations.get((kind, version))
                return operation
            case ComputeExecutor(compute=name):
                compute: Compute | None = self._adopt.computes.get(name)
                return compute
            case _:
                return None


def _said_before(path: Path) -> str:
    """Return what an attempt itself has said in a log that its reconciler goes on with."""
    try:
        text = path.read_text("utf-8", "backslashreplace")
    except OSError:
        return ""
    return text.partition(RECONCILER)[0]
