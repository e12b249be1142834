"""The authority section of the configuration file: the user's own rules, and how an approval is confirmed."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from hostres.configuration import wrong_at
from hostres.keys import Key, Several, Text, Words, name_of
from store.amounts import PLACES, Amount
from store.lazy_dataclass import dataclass
from store.policy import Effect, PreparationKind
from store.rules import DEFAULT, GATE_RULE, NO_RULE, Action, Rule, Verdict

MOST_RULES: Final = 1000
TAKEN: Final = frozenset({GATE_RULE, NO_RULE})
RULES: Final = ("authority", "rule")


class Sum(NamedTuple):
    """An amount of money that is not negative, a number or a text."""

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        try:
            _AMOUNT.validate_python(value)
        except ValidationError:
            return False
        return True

    @property
    def right(self) -> str:
        """What is right, in words."""
        return f"a number of at least 0, of at most {PLACES} decimal places"


_AMOUNT: Final[TypeAdapter[Decimal]] = TypeAdapter(Amount)
_PATTERN: Final = "a pattern with * and ?"


def _words(words: Iterable[str]) -> Words:
    return Words(tuple(str(word) for word in words))


AUTHORITY_KEYS: Final = (
    Key(
        "authority.confirm",
        Words(("plan", "terminal")),
        "whether an approval that names its plan counts at once, or is confirmed on the terminal",
        default='"plan"',
    ),
    Key(
        "authority.rule[].id",
        Text("a name of its own, as ask-before-commands"),
        "recorded with what it allows",
        required=True,
    ),
    Key("authority.rule[].verdict", _words(Verdict), "what the rule says", required=True),
    Key("authority.rule[].principal", Words(("human", "agent", "service")), "only what such a one wants"),
    Key("authority.rule[].action", _words(Action), "only this action"),
    Key("authority.rule[].effect", _words(Effect), "only nodes of this effect"),
    Key("authority.rule[].preparation", Several(_words(PreparationKind)), "only what looks at one of these"),
    Key("authority.rule[].operation", Text(_PATTERN), "only operations of such a kind, as media.*"),
    Key("authority.rule[].resource", Text(_PATTERN), "only what claims or publishes such a thing, as file:/films/*"),
    Key("authority.rule[].cost", Sum(), "only what may cost so much or more"),
)


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
        settings: The whole file, whose keys and values are right, each by itself.
        path: Of the file, for errors.

    Raises:
        HostlerError: invalid-data, with the place of what is wrong.

    """
    section = settings.get("authority", {})
    lines = section.get("rule", ())
    if len(lines) > MOST_RULES:
        what = f"there are {len(lines):,} rules, more than {MOST_RULES:,}"
        raise wrong_at(path, (*RULES, MOST_RULES), what, "let one rule speak of several things, with a pattern")
    seen: set[str] = set()
    for number, line in enumerate(lines):
        place = (*RULES, number, "id")
        name = line["id"]
        if name in seen:
            what = f"{name_of(place)}: there is a rule {name} before it"
            raise wrong_at(path, place, what, "give each rule its own id")
        if name.startswith(DEFAULT) or name in TAKEN:
            what = f"{name_of(place)}: {name} is the name of a rule of Hostler's own"
            raise wrong_at(path, place, what, "give it another id")
        seen.add(name)
    return Authority(
        rules=tuple(_rule(line) for line in lines), on_terminal=section.get("confirm", "plan") == "terminal"
    )


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
