"""What nodes of a run have in common that do the same thing under the same policy, worked out once for all of them."""

from dataclasses import dataclass, field

from store.exact_plans import Shared
from store.plans import AgentExecutor, ComputeExecutor, Executor, GateExecutor, OperationExecutor, PlannedNode
from store.policy import Effect, Policy, Resume
from store.rules import Verdict


@dataclass(slots=True, eq=False)
class Family:
    """Nodes with the same executor and the same policy.

    Attributes:
        executor: What runs.
        policy: What it may do.
        shared: What their exact plans share.
        trusted: Whether they run code of the workflow itself, which no class of resume covers.
        is_gate: Whether nothing runs and only a person's grant completes them.
        is_external: Whether they are worked on by whoever takes them, and nothing of them runs here.
        noticeable: Whether anybody could notice that one ran; only then must its intent be durable before it starts.
        ruling: What the rules say of the effect of one without terms and keys of its own, and which rule; None until
            they were asked.

    """

    executor: Executor
    policy: Policy
    shared: Shared
    trusted: bool = field(init=False)
    is_gate: bool = field(init=False)
    is_external: bool = field(init=False)
    noticeable: bool = field(init=False)
    ruling: tuple[Verdict, str] | None = None

    def __post_init__(self) -> None:
        """Work out what follows from both."""
        executor, policy = self.executor, self.policy
        self.trusted = isinstance(executor, ComputeExecutor)
        self.is_gate = isinstance(executor, GateExecutor)
        self.is_external = isinstance(executor, AgentExecutor) and executor.external
        self.noticeable = not (
            policy.effect is Effect.PURE
            and policy.resume is Resume.DETERMINISTIC
            and isinstance(executor, OperationExecutor)
        )


class Families:
    """The families of one run.

    Args:
        run_id: The run.

    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._last: dict[tuple[str, int], Family] = {}

    def of(self, planned: PlannedNode) -> Family:
        """Return the family of a node: that of the last one with the same operation, if their policies are alike."""
        executor, policy = planned.executor, planned.policy
        if not isinstance(executor, OperationExecutor):
            return self._new(executor, policy)
        name = executor.operation, executor.version
        family = self._last.get(name)
        if family is None or family.policy != policy:
            family = self._last[name] = self._new(executor, policy)
        return family

    def _new(self, executor: Executor, policy: Policy) -> Family:
        return Family(executor, policy, Shared(self._run_id, executor, policy))
