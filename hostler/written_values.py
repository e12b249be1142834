"""The values that an author wrote of a node, as templates: references stand where handles of other nodes stood."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from hostler.handles import NodeHandle
from hostler.refusals import about, first_problem, invalid, place
from hostler.templates import as_template
from hostres.errors import HostlerError
from store.plans import MAX_PRIORITY
from store.program_words import check_objective, check_variable, check_word
from store.references import SECRET
from store.terms import Terms
from store.words import secret_named
from store.workspace import GitWorkspace

Part = TypeVar("Part", bound=BaseModel)


class Written:
    """What an author wrote of one node, or of the workflow; whatever is wrong with it names that.

    Attributes:
        subject: Whom an error names.

    Args:
        build: Whose handles may stand in it: those of another build refer to nothing here.
        subject: Whom an error names.

    """

    def __init__(self, build: object, subject: str) -> None:
        self._build = build
        self.subject = subject

    def template(self, value: Any, *at: str | int) -> JsonValue:
        """Return a value as a template.

        Args:
            value: What was written.
            at: Which part of it this is.

        Raises:
            HostlerError: It cannot be written as JSON, or holds a handle of another build (invalid-data).

        """

        def convert(other: Any) -> Any:
            return self._own(other).as_reference() if isinstance(other, NodeHandle) else NotImplemented

        try:
            return as_template(value, convert, at)
        except HostlerError as error:
            raise error if error.what.startswith(self.subject) else about(self.subject, error) from error

    def word(self, value: Any, *at: str | int, text_only: bool = False) -> JsonValue:
        """Return one word of a command; *text_only* refuses numbers.

        Raises:
            HostlerError: It is none (invalid-data).

        """
        word = self.template(value, *at)
        check_word(word, f"{self.subject}: {place(at)}", text_only=text_only)
        return word

    def objective(self, value: Any) -> JsonValue:
        """Return what an agent is asked to do.

        Raises:
            HostlerError: It is no text, or too long (invalid-data).

        """
        asked = self.template(value, "objective")
        check_objective(asked, f"{self.subject}: objective", f"{self.subject}: its objective")
        return asked

    def words(self, argv: Sequence[Any]) -> list[JsonValue]:
        """Return a program and its arguments.

        Raises:
            HostlerError: One of them is no word (invalid-data).

        """
        return [self.word(word, "argv", index) for index, word in enumerate(argv)]

    def variables(self, env: Mapping[str, Any] | None) -> dict[str, JsonValue]:
        """Return variables of a program: words, or names of secrets that it gets only when it starts.

        Raises:
            HostlerError: A name or a value is not allowed (invalid-data).

        """
        variables = env or {}
        for name in variables:
            check_variable(name, self.subject)
        return {name: self._variable(value, name) for name, value in variables.items()}

    def _variable(self, value: Any, name: str) -> JsonValue:
        secret = secret_named(value)
        if secret is None:
            return self.word(value, "env", name)
        check_variable(secret, f"{self.subject}: env.{name}")
        return {SECRET: secret}

    def keys(self, after: Sequence[NodeHandle | str]) -> tuple[str, ...]:
        """Return the keys of nodes that are named by handle or key.

        Raises:
            HostlerError: Something is no node, or one of another build (invalid-data).

        """
        if isinstance(after, str | NodeHandle):
            after = (after,)
        keys = []
        for each in after:
            key: Any = self._own(each).key if isinstance(each, NodeHandle) else each
            if not isinstance(key, str):
                raise invalid(f"{self.subject}: {key!r} in after is no node", "name nodes by handle or key")
            keys.append(key)
        return tuple(keys)

    def priority(self, priority: Any) -> int:
        """Return a priority.

        Raises:
            HostlerError: It is none (invalid-data).

        """
        if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > MAX_PRIORITY:
            raise invalid(
                f"{self.subject}: priority {priority!r} is no whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}",
                "give it one, or leave it out",
            )
        return priority

    def terms(self, terms: Terms | Mapping[str, Any] | None) -> Terms | None:
        """Return the terms on which it works.

        Raises:
            HostlerError: They are none (invalid-data).

        """
        return self._part(Terms, terms, "see docs/graph-files.md for what it can be", named="terms {!r} are", at="")

    def workspace(self, workspace: GitWorkspace | Mapping[str, Any] | None) -> GitWorkspace | None:
        """Return the repository in whose worktree it works.

        Raises:
            HostlerError: It is none (invalid-data).

        """
        todo = "give {repository, base, integrate}"
        return self._part(GitWorkspace, workspace, todo, named="workspace {!r} is", at="workspace: ")

    def _part(
        self, model: type[Part], given: Part | Mapping[str, Any] | None, todo: str, *, named: str, at: str
    ) -> Part | None:
        """Return what is a model, or an object that fits one."""
        if given is None or isinstance(given, model):
            return given
        try:
            return model.model_validate(dict(given))
        except ValidationError as error:
            raise invalid(f"{self.subject}: {at}{first_problem(error)}", todo) from error
        except (TypeError, ValueError) as error:
            what = f"{self.subject}: {named.format(given)} no object"
            raise invalid(what, "give an object, or leave it out") from error

    def _own(self, handle: NodeHandle) -> NodeHandle:
        if handle.build is not self._build:
            what = f"{self.subject}: the handle of node {handle.key} belongs to another workflow"
            raise invalid(what, "use handles of this build")
        return handle
