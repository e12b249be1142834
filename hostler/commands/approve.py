"""`hostler approve`: answer what waits for a person."""

import argparse
import contextlib
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from hostler.asking import Subject, ask
from hostler.commands.answering import add_receipt, with_receipt
from hostler.commands.arguments import add_json, add_reason, add_run, command_parser, positive
from hostler.commands.endings import RESTS
from hostler.commands.output import print_json, print_line
from hostler.commands.posting import have_it_answered, look_at, next_step
from hostler.commands.teletype import Teletype, needed_terminal
from hostler.config import Config
from hostler.stored_runs import reading
from hostler.views.approval import node_plan_json, node_plan_text, result_text
from hostler.views.terminal import harmless
from hostler.views.waiting import Waiting, waiting_on
from hostres.errors import Code, HostlerError
from store.approvals import ATTEMPT
from store.contracts import NodeRecord, RequestKind
from store.evidence import awaits_approval
from store.heads import refuse_if_imported
from store.home import Home
from store.reader import Reader

if TYPE_CHECKING:
    from hostler.commands.arguments import Subparsers

ANSWERS: Final = {
    "y": RequestKind.APPROVE,
    "yes": RequestKind.APPROVE,
    "d": RequestKind.DENY,
    "deny": RequestKind.DENY,
}


def add(subparsers: "Subparsers") -> None:
    """Add the command."""
    parser = command_parser(
        subparsers,
        "approve",
        description="answer what waits for a person",
        example="- publish --plan 3f2a…",
        more=("-", '- publish --deny --reason "not today"'),
    )
    add_run(parser)
    parser.add_argument(
        "node",
        metavar="NODE",
        nargs="?",
        help="key of the node; without it, all that waits is listed and asked",
    )
    parser.add_argument("--plan", metavar="HASH", help="approve exactly this node plan, without asking")
    parser.add_argument(
        "--attempt",
        type=positive,
        metavar="N",
        help="approve exactly the result that this attempt gave, with --plan or --receipt",
    )
    add_receipt(parser)
    parser.add_argument("--deny", action="store_true", help="say no; the node fails")
    add_reason(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Answer, or show what waits."""
    with reading(to_write=True) as (home, reader):
        subject = look_at(reader, args.run)
        refuse_if_imported(subject.run_id, imported=subject.run.imported)  # before anything is shown to be answered
        desk = _Desk(home, reader, subject, deny=args.deny, reason=args.reason, json=args.json)
        for option, given in (("--plan names the plan", args.plan), ("--receipt names a receipt", args.receipt)):
            if args.node is None and given is not None:
                raise HostlerError(Code.INVALID_DATA, f"{option} of one node, and no node is named", "give NODE")
        if args.receipt is not None and args.deny:
            raise HostlerError(Code.INVALID_DATA, "a receipt gives leave, and --deny refuses it", "leave one out")
        if args.attempt is not None and args.plan is None and args.receipt is None:
            what = "--attempt names one of several results of the same plan, and no plan is named"
            raise HostlerError(Code.INVALID_DATA, what, "give --plan or --receipt")
        if args.node is None:
            return desk.all_that_waits()
        node = subject.node(args.node)
        if args.receipt is not None:
            plan = node.frozen_sha256 if args.plan is None else args.plan
            attempt = desk.attempt_of(node, args.attempt)
            return desk.answered([desk.answer(node, plan, attempt=attempt, data=with_receipt(args))])
        if args.plan is not None:
            attempt = desk.attempt_of(node, args.attempt)
            if not args.deny and Config.load().on_terminal:
                return desk.confirmed(node, args.plan, attempt)
            return desk.answered([desk.answer(node, args.plan, attempt=attempt)])
        return desk.one(node)


class _Desk:
    """Where the questions of one run are answered."""

    def __init__(self, home: Home, reader: Reader, subject: Subject, *, deny: bool, reason: str, json: bool) -> None:
        self._home = home
        self._reader = reader
        self._subject = subject
        self._kind = RequestKind.DENY if deny else RequestKind.APPROVE
        self._reason = reason
        self._json = json
        self._asked: list[str] = []

    def attempt_of(self, node: NodeRecord, attempt: int | None) -> int | None:
        """Return which attempt gave the result that is to be approved, None if no result is.

        Args:
            node: Whose it is.
            attempt: What is named; the result of a first attempt is the only one that anybody can have seen.

        Raises:
            HostlerError: conflict: others came before it, and none is named: a plan alone names those of all of them.

        """
        if attempt is not None or not awaits_approval(node) or self._kind is not RequestKind.APPROVE:
            return attempt
        if node.attempt > 1:
            what = (
                f"node {node.key} waits with the result of attempt {node.attempt}, which its plan alone does not name"
            )
            todo = f"look at it with `hostler approve {self._subject.run_id} {node.key}` and give --attempt"
            raise HostlerError(Code.CONFLICT, what, todo)
        return node.attempt

    def all_that_waits(self) -> int:
        """List what waits for approval; on a terminal, ask one by one."""
        subject = self._subject
        waits = [
            waiting
            for waiting in waiting_on(subject.run_id, subject.plan, subject.nodes.values())
            if waiting.approvable
        ]
        if not waits and not self._json:
            print_line(f"nothing of {subject.run_id} waits for approval")
            return 0
        return self._question([subject.nodes[waiting.node] for waiting in waits], waits)

    def one(self, node: NodeRecord) -> int:
        """Show the exact plan of a node and ask."""
        subject = self._subject
        waits = [waiting for waiting in waiting_on(subject.run_id, subject.plan, [node]) if waiting.approvable]
        if not waits:
            # Says that there is nothing to answer, or that this principal may not.
            self.answer(node, node.frozen_sha256)
        return self._question([node], waits)

    def confirmed(self, node: NodeRecord, plan_sha256: str, attempt: int | None) -> int:
        """Approve exactly that plan once a person has confirmed it on the terminal, which alone counts here."""
        if node.frozen_sha256 != plan_sha256:
            return self.answered([self.answer(node, plan_sha256)])  # says that it is another plan
        with needed_terminal("have a person give a receipt") as terminal:
            terminal.show("\n".join(self._shown(node, plan_sha256)))
            if terminal.ask("approve? [y/N] ") not in {"y", "yes"}:
                print_line(f"nothing was decided of {node.key}; it still waits")
                return RESTS
        return self.answered([self.answer(node, plan_sha256, attempt=attempt)])

    def answer(
        self,
        node: NodeRecord,
        plan_sha256: str | None,
        kind: RequestKind | None = None,
        *,
        attempt: int | None = None,
        data: dict[str, Any] | None = None,
    ) -> dict[str, str]:
        """Post the answer to one node, for exactly that plan, and of a result for exactly that attempt."""
        chosen = kind or self._kind
        if attempt is not None:
            data = {**(data or {}), ATTEMPT: attempt}
        asked = ask(self._home, self._subject, chosen, node, plan_sha256=plan_sha256, reason=self._reason, data=data)
        self._asked.append(asked)
        return {"node": node.key, "answer": chosen.value, "plan_sha256": plan_sha256 or ""}

    def answered(self, answers: list[dict[str, str]]) -> int:
        """Let the answers take effect and say so."""
        heard = have_it_answered(self._reader, self._subject, self._asked)
        if self._json:
            heard.check()
            shape = {"run_id": self._subject.run_id, "answers": answers, "answered": not heard.unanswered}
            print_json(shape)
            return 0
        for request_id, answer in zip(self._asked, answers, strict=True):
            if request_id in heard.unanswered:
                print_line(f"{answer['answer']} of {answer['node']} asked for; {heard.late}")
            elif request_id not in heard.refused:
                done = "denied" if answer["answer"] == RequestKind.DENY else "approved"
                print_line(f"{done} {answer['node']} with plan {answer['plan_sha256']}")
        heard.check()
        if not heard.unanswered:
            print_line(next_step(self._subject, here=heard.here))
        return 0

    def _question(self, nodes: list[NodeRecord], waits: list[Waiting]) -> int:
        if self._json:
            print_json({"run_id": self._subject.run_id, "waiting_on": [self._json_of(waiting) for waiting in waits]})
            return RESTS if waits else 0
        terminal = Teletype.open() if sys.stdout.isatty() else None
        with terminal or contextlib.nullcontext():
            return self._ask_about(nodes, waits, terminal)

    def _ask_about(self, nodes: list[NodeRecord], waits: list[Waiting], terminal: Teletype | None) -> int:
        answers = []
        for node, waiting in zip(nodes, waits, strict=True):
            plan_sha256 = waiting.plan_sha256
            for text in self._shown(node, plan_sha256):
                print_line(text)
            print_line(f"  {harmless(waiting.message)}")
            if terminal is None:
                print_line(f"nothing was decided; to {self._kind} it:\n  {self._command(waiting)}")
                continue
            kind = _asked(terminal, self._kind)
            if kind is None:
                print_line(f"nothing was decided of {node.key}; it still waits")
            else:
                attempt = node.attempt if awaits_approval(node) else None
                answers.append(self.answer(node, plan_sha256, kind, attempt=attempt))
        if not answers:
            return RESTS
        self.answered(answers)
        return 0 if len(answers) == len(nodes) else RESTS

    def _shown(self, node: NodeRecord, plan_sha256: str | None) -> Iterator[str]:
        """Yield what a person must see before an answer: the exact plan, and the result if there is one."""
        if plan_sha256 is not None:
            yield node_plan_text(self._reader.node_plan(plan_sha256), plan_sha256)
        if node.output_sha256 is not None:
            yield result_text(node, self._reader.output(self._subject.run_id, node.key))

    def _command(self, waiting: Waiting) -> str:
        """Return what to type for the answer that was meant."""
        deny = " --deny" if self._kind is RequestKind.DENY else ""
        reason = f" --reason {shlex.quote(self._reason)}" if self._reason else ""
        return harmless(f"{waiting.command}{deny}{reason}")

    def _json_of(self, waiting: Waiting) -> dict[str, object]:
        shape = waiting.to_json() | {"command": self._command(waiting)}
        if waiting.plan_sha256 is not None:
            shape |= node_plan_json(self._reader.node_plan(waiting.plan_sha256), waiting.plan_sha256)
        return shape


def _asked(terminal: Teletype, kind: RequestKind) -> RequestKind | None:
    if kind is RequestKind.DENY:
        return RequestKind.DENY if terminal.ask("deny? [y/N] ") in {"y", "yes"} else None
    return ANSWERS.get(terminal.ask("approve? [y]es, [d]eny, [N]ot now: "))
