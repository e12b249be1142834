"""The authority section of the configuration file: the user's own rules, and how an approval is confirmed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from hostler.refusals import first_problem, invalid
from store.amounts import Amount
from store.fields import Contract, Id
from store.lazy_dataclass import dataclass
from store.policy import Effect, PreparationKind
from store.rules import DEFAULT, GATE_RULE, NO_RULE, Action, Rule, Verdict

MOST_RULES: Final = 1000
TAKEN: Final = frozenset({GATE_RULE, NO_RULE})
TODO: Final = "compare it with docs/governance.md"

Pattern = Annotated[str, Field(min_length=1, max_length=1024)]


class Line(Contract):
    """One `[[authority.rule]]`."""

    id: Id
    verdict: Verdict = Field(strict=False)
    principal: Literal["human", "agent", "service"] | None = None
    action: Action | None = Field(default=None, strict=False)
    effect: Effect | None = Field(default=None, strict=False)
    preparation: tuple[Annotated[PreparationKind, Field(strict=False)], ...] | None = Field(
        default=None, min_length=1, strict=False
    )
    operation: Pattern | None = None
    resource: Pattern | None = None
    cost: Amount | None = None

    def rule(self) -> Rule:
        """Return the rule that it writes."""
        return Rule(
            id=self.id,
            verdict=self.verdict,
            principal_kind=self.principal,
            action=self.action,
            effect=self.effect,
            preparation=None if self.preparation is None else frozenset(self.preparation),
            operation=self.operation,
            resource=self.resource,
            cost=self.cost,
        )


class Section(Contract):
    """All of `[authority]`."""

    confirm: Literal["plan", "terminal"] = "plan"
    rule: tuple[Line, ...] = Field(default=(), max_length=MOST_RULES, strict=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What the file says of authority.

    Attributes:
        rules: The user's own rules, in order; the default ones come after them.
        on_terminal: Whether every approval is confirmed on the terminal, also of a plan that was named.

    """

    rules: tuple[Rule, ...] = ()
    on_terminal: bool = False


def read_authority(settings: Mapping[str, Any], path: Path) -> Authority:
    """Return what the section `authority` says.

    Args:
        settings: The whole file.
        path: Of the file, for errors.

    Raises:
        HostlerError: invalid-data, with the place of what is wrong.

    """
    given = settings.get("authority", {})
    try:
        section = Section.model_validate(given)
    except ValidationError as error:
        problem = first_problem(error, inside=("authority",))
        raise invalid(f"configuration {path}: {problem}", TODO) from None
    seen: set[str] = set()
    for index, line in enumerate(section.rule):
        where = f"configuration {path}: authority.rule[{index}]"
        if line.id in seen:
            raise invalid(f"{where}: there is a rule {line.id} before it", "give each rule its own id")
        if line.id.startswith(DEFAULT) or line.id in TAKEN:
            raise invalid(f"{where}: {line.id} is the name of a rule of Hostler's own", "give it another id")
        seen.add(line.id)
    return Authority(rules=tuple(line.rule() for line in section.rule), on_terminal=section.confirm == "terminal")
