"""The authority section of the configuration file: the user's own rules, and how an approval is confirmed."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from store.amounts import Amount
from store.lazy_dataclass import dataclass
from store.policy import Effect, PreparationKind
from store.rules import Rule, Verdict

_AMOUNT: Final[TypeAdapter[Decimal]] = TypeAdapter(Amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What the file says of authority.

    Attributes:
        rules: The user's own rules, in order; the default ones come after them.
        on_terminal: Whether every approval is confirmed on the terminal, also of a plan that was named.

    """

    rules: tuple[Rule, ...] = ()
    on_terminal: bool = False


def read_authority(settings: Mapping[str, Any]) -> Authority:
    """Return what the section `authority` says.

    Args:
        settings: The whole file, which is right.

    """
    section = settings.get("authority", {})
    return Authority(
        rules=tuple(map(_rule, section.get("rule", ()))), on_terminal=section.get("confirm", "plan") == "terminal"
    )


def is_amount(value: Any) -> bool:
    """Say whether a value of the file is an amount of money."""
    try:
        _AMOUNT.validate_python(value)
    except ValidationError:
        return False
    return True


def _rule(line: Mapping[str, Any]) -> Rule:
    """Return the rule that a `[[authority.rule]]` writes."""
    effect, kinds, cost = line.get("effect"), line.get("preparation"), line.get("cost")
    return Rule(
        id=line["id"],
        verdict=Verdict(line["verdict"]),
        principal_kind=line.get("principal"),
        action=line.get("action"),
        effect=None if effect is None else Effect(effect),
        preparation=None if kinds is None else frozenset(map(PreparationKind, kinds)),
        operation=line.get("operation"),
        resource=line.get("resource"),
        cost=None if cost is None else _AMOUNT.validate_python(cost),
    )
