"""The `Build` a workflow function receives: it collects nodes and gives handles that refer to their outputs."""

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

from pydantic import JsonValue

from actors.operations import Compute, Operation
from hostler.agent_nodes import (
    AGENT_INPUT,
    AGENT_OUTPUT,
    AGENT_OUTPUT_BYTES,
    AGENT_SECONDS,
    agent_policy,
)
from hostler.command_nodes import (
    COMMAND_INPUT,
    COMMAND_SECONDS,
    command_output,
    command_policy,
    output_files,
    path_text,
)
from hostler.drafts import Draft
from hostler.handles import NodeHandle
from hostler.limits import MAX_NODES
from hostler.refusals import about, invalid, listed, require_utf8
from hostler.schemas import ANYTHING, input_schema, output_schema
from hostler.written_values import Written
from hostres.errors import HostlerError
from hostres.suggestions import did_you_mean
from store.amounts import Demand
from store.patterns import NODE_KEY_PATTERN
from store.plans import (
    AgentExecutor,
    CommandExecutor,
    ComputeExecutor,
    GateExecutor,
    OperationExecutor,
)
from store.policy import Effect, Heartbeat, Policy, Resume, Retry
from store.terms import Terms
from store.workspace import GitWorkspace

if TYPE_CHECKING:
    from hostler.registry import Registry

GATES: Final = tuple(GateExecutor.model_fields["gate"].annotation.__args__)  # type: ignore[union-attr]


class Build:
    """Collects the nodes of a workflow; a workflow function receives one as its first argument.

    Attributes:
        drafts: The nodes so far, by key, in the order in which they were authored.

    """

    def __init__(self, *, registry: "Registry", max_nodes: int = MAX_NODES) -> None:
        self.drafts: dict[str, Draft] = {}
        self._registry = registry
        self._max_nodes = max_nodes
        self._codes: dict[tuple[str, int], Operation | Compute] = {}

    def call(
        self,
        code: Operation | Compute | str,
        *,
        key: str,
        input: Any = None,
        after: Sequence[NodeHandle | str] = (),
        label: str | None = None,
        priority: int = 0,
        terms: Terms | Mapping[str, Any] | None = None,
        workspace: GitWorkspace | Mapping[str, Any] | None = None,
    ) -> NodeHandle:
        """Add a node that runs an operation or a compute function.

        Args:
            code: What runs; `"kind@version"` names a registered operation.
            key: The node's name, lower-case segments joined by "/".
            input: Its input; handles in it refer to outputs of other nodes.
            after: Nodes it also waits for.
            label: For people.
            priority: -10 to 10; of the nodes that are ready at once, the highest is taken up first.
            terms: On what terms it works: its parent, owner, budget, authority and the evidence due.
            workspace: {repository, base, integrate} of a git worktree to work in; by default a private folder.

        Returns:
            A handle of its output.

        Raises:
            HostlerError: The key is taken or not allowed, or the input does not fit (invalid-data naming the node).

        """
        written = self._node(key)
        subject = written.subject
        executor: OperationExecutor | ComputeExecutor
        if isinstance(code, str):
            try:
                code = self._registry.named(code)
            except HostlerError as error:
                raise about(subject, error) from error
        if isinstance(code, Operation):
            executor = OperationExecutor(operation=code.kind, version=code.version)
            self._keep_apart((code.kind, code.version), code, subject)
            given = {} if input is None else input
        elif isinstance(code, Compute):
            executor = ComputeExecutor(compute=code.name)
            self._keep_apart((code.name, 0), code, subject)
            given = input
        else:
            raise invalid(
                f"{subject}: {getattr(code, '__name__', repr(code))} is neither an operation nor a compute function",
                "decorate it with @operation or @compute",
            )
        return self._add(
            Draft(
                key=key,
                label=label,
                executor=executor,
                input=written.template(given, "input"),
                after=written.keys(after),
                policy=code.policy,
                priority=written.priority(priority),
                terms=written.terms(terms),
                workspace=written.workspace(workspace),
                code=code,
                accepts=input_schema(code.input_type) if code.input_type else ANYTHING,
                output=output_schema(code.output_type) if code.output_type else ANYTHING,
            )
        )

    def command(  # noqa: PLR0913 - the words of a graph file
        self,
        argv: Sequence[Any],
        *,
        key: str,
        outputs: Mapping[str, str | PathLike[str]] | None = None,
        claims: Mapping[str, int] | None = None,
        effect: Effect | str = Effect.LOCAL_DERIVED_WRITE,
        resume: Resume | str | None = None,
        max_seconds: float = COMMAND_SECONDS,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, Any] | None = None,
        stdin: Any = None,
        retry: Retry | Mapping[str, Any] | None = None,
        heartbeat: Heartbeat | Mapping[str, Any] | None = None,
        budget: Demand | Mapping[str, Any] | None = None,
        input: Any = None,
        after: Sequence[NodeHandle | str] = (),
        label: str | None = None,
        priority: int = 0,
        terms: Terms | Mapping[str, Any] | None = None,
        workspace: GitWorkspace | Mapping[str, Any] | None = None,
    ) -> NodeHandle:
        """Add a node that runs a program. Its output is {exit_code, outputs: {name: {path, bytes, sha256}}}.

        Args:
            argv: Program and arguments: strings, numbers, references; never a shell string.
            key: The node's name.
            outputs: Name → path, in the node's workspace, of each file it must leave.
            claims: Machine resources it holds, in units.
            effect: What it does to the world.
            resume: What may be done after an interruption; by default it runs again, unless its effect is paid or live:
                then it rests until a person settles it.
            max_seconds: Time limit from admission, seconds.
            cwd: Where it runs: absolute, or relative to the run's folder; by default the node's workspace.
            env: Added to its environment.
            stdin: A text it reads; by default nothing.
            retry: When a failed attempt is made again by itself; by default never.
            heartbeat: How often the program shows that it lives; by default its process is sign enough.
            budget: What each attempt reserves of its budgets before it starts.
            input: A further value that belongs to the node's plan.
            after: Nodes it also waits for.
            label: For people.
            priority: As of `call`.
            terms: As of `call`.
            workspace: As of `call`.

        Returns:
            A handle of its output.

        Raises:
            HostlerError: Something in it is not allowed (invalid-data or invalid-claims, naming the node).

        """
        written = self._node(key)
        subject = written.subject
        words: Any = argv
        if isinstance(words, str | Mapping) or not words:
            raise invalid(
                f"{subject}: argv must be a list of at least the program", "write it as a list, one word each"
            )
        files = output_files(outputs or {}, subject)
        policy = command_policy(
            {
                "claims": dict(claims or {}),
                "effect": effect,
                "resume": resume,
                "max_seconds": max_seconds,
                "retry": retry or Retry(),
                "heartbeat": heartbeat,
                "budget": budget,
            },
            subject,
        )
        template: dict[str, JsonValue] = {
            "argv": written.words(words),
            "env": written.variables(env),
            "stdin": None if stdin is None else written.word(stdin, "stdin", text_only=True),
            "value": written.template(input, "input"),
        }
        where = None if cwd is None else path_text(cwd, f"{subject}: cwd")
        return self._add(
            Draft(
                key=key,
                label=label,
                executor=CommandExecutor(cwd=where, outputs=files),
                input=template,
                after=written.keys(after),
                policy=policy,
                priority=written.priority(priority),
                terms=written.terms(terms),
                workspace=written.workspace(workspace),
                accepts=COMMAND_INPUT,
                output=command_output(files),
            )
        )

    def agent(  # noqa: PLR0913 - the words of a graph file
        self,
        objective: Any,
        *,
        key: str,
        argv: Sequence[Any] | None = None,
        claims: Mapping[str, int] | None = None,
        effect: Effect | str = Effect.LOCAL_DERIVED_WRITE,
        resume: Resume | str | None = None,
        max_seconds: float = AGENT_SECONDS,
        max_output_bytes: int = AGENT_OUTPUT_BYTES,
        cwd: str | PathLike[str] | None = None,
        env: Mapping[str, Any] | None = None,
        retry: Retry | Mapping[str, Any] | None = None,
        budget: Demand | Mapping[str, Any] | None = None,
        input: Any = None,
        after: Sequence[NodeHandle | str] = (),
        label: str | None = None,
        priority: int = 0,
        terms: Terms | Mapping[str, Any] | None = None,
        workspace: GitWorkspace | Mapping[str, Any] | None = None,
    ) -> NodeHandle:
        """Add a node that an agent works on. Its output is {summary, evidence, output}.

        Args:
            objective: What it is to do: a text or a reference to one.
            key: The node's name.
            argv: Program and arguments: strings, numbers, references; it reads a request and writes a result. Without
                one, a worker of any process takes the work: `hostler work next`.
            claims: Machine resources that its program holds, in units.
            effect: What it does to the world.
            resume: As of `command`.
            max_seconds: Time limit from its start, seconds.
            max_output_bytes: Limit of its result, bytes.
            cwd: Where its program runs: absolute, or relative to the run's folder; by default the node's workspace.
            env: Added to the environment of its program.
            retry: When a failed attempt is made again by itself; by default never.
            budget: What each attempt reserves of its budgets before it starts.
            input: A value that it is given.
            after: Nodes it also waits for.
            label: For people.
            priority: As of `call`.
            terms: As of `call`.
            workspace: As of `call`; only an agent with a program has one.

        Returns:
            A handle of its output.

        Raises:
            HostlerError: Something in it is not allowed (invalid-data or invalid-claims, naming the node).

        """
        written = self._node(key)
        subject = written.subject
        words: Any = argv
        if isinstance(words, str | Mapping) or (words is not None and not words):
            raise invalid(
                f"{subject}: argv must be a list of at least the program",
                "write it as a list, or leave it out for work that others take",
            )
        external = words is None
        if external and (cwd is not None or env):
            raise invalid(
                f"{subject}: cwd and env are for its program, and it has none", "give argv, or leave them out"
            )
        policy = agent_policy(
            {
                "claims": dict(claims or {}),
                "effect": effect,
                "resume": resume,
                "max_seconds": max_seconds,
                "max_output_bytes": max_output_bytes,
                "retry": retry or Retry(),
                "budget": budget,
            },
            subject,
            external=external,
        )
        template: dict[str, JsonValue] = {
            "objective": written.objective(objective),
            "argv": None if words is None else written.words(words),
            "env": written.variables(env),
            "value": written.template(input, "input"),
        }
        where = None if cwd is None else path_text(cwd, f"{subject}: cwd")
        return self._add(
            Draft(
                key=key,
                label=label,
                executor=AgentExecutor(external=external, cwd=where),
                input=template,
                after=written.keys(after),
                policy=policy,
                priority=written.priority(priority),
                terms=written.terms(terms),
                workspace=written.workspace(workspace),
                accepts=AGENT_INPUT,
                output=AGENT_OUTPUT,
            )
        )

    def gate(
        self,
        kind: str,
        *,
        key: str,
        input: Any = None,
        after: Sequence[NodeHandle | str] = (),
        label: str | None = None,
        terms: Terms | Mapping[str, Any] | None = None,
    ) -> NodeHandle:
        """Add a node at which the run waits for a person.

        Args:
            kind: What the person lets through: activation, merge, deploy, publication…
            key: The node's name.
            input: What the person looks at before answering; handles in it refer to outputs of other nodes.
            after: Nodes it also waits for.
            label: For people.
            terms: As of `call`.

        Raises:
            HostlerError: There is no such gate, or the key is taken (invalid-data naming the node).

        """
        written = self._node(key)
        subject = written.subject
        if kind not in GATES:
            todo = did_you_mean(str(kind), GATES, f"use one of: {listed(GATES, limit=20)}")
            raise invalid(f"{subject}: there is no gate {kind!r}", todo)
        executor = GateExecutor.model_validate({"gate": kind})
        return self._add(
            Draft(
                key=key,
                label=label,
                executor=executor,
                input=written.template(input, "input"),
                after=written.keys(after),
                policy=Policy(),
                terms=written.terms(terms),
                output={"type": "null"},
            )
        )

    def _keep_apart(self, name: tuple[str, int], code: Operation | Compute, subject: str) -> None:
        if self._codes.setdefault(name, code) is not code:
            shown = f"operation {name[0]}@{name[1]}" if name[1] else f"compute {name[0]}"
            raise invalid(f"{subject}: there are two different definitions of {shown}", "give one another name")

    def _node(self, key: str) -> Written:
        """Begin a node: what is written of it is converted, and refused, in its name."""
        given: Any = key
        subject = f"node {given}"
        if not isinstance(given, str) or len(key) > 255 or not re.fullmatch(NODE_KEY_PATTERN, key):
            raise invalid(
                f"node {key!r}: a key is 1 to 255 characters, lower-case segments joined by /",
                "use a key like audio/left",
            )
        if key in self.drafts:
            raise invalid(f"{subject}: there are two nodes of that key", "give one another key")
        if len(self.drafts) >= self._max_nodes:
            raise invalid(
                f"{subject}: the workflow has more than {self._max_nodes} nodes",
                "make it smaller, or raise nodes in the section [limits] of the configuration",
            )
        return Written(self, subject)

    def _add(self, draft: Draft) -> NodeHandle:
        label: Any = draft.label
        if label is not None and (not isinstance(label, str) or len(label) > 255):
            raise invalid(f"node {draft.key}: its label is no text of at most 255 characters", "shorten it")
        require_utf8(label or "", f"node {draft.key}: its label")
        self.drafts[draft.key] = draft
        return NodeHandle(draft.key, (), self)
