"""The keys of `[authority]`, and what is wrong with its rules as a whole.

It imports nothing of the rules themselves: `hostler exec` checks a file that it is otherwise done with in no time. That
the words are those of the rules says a test.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from hostres.configuration import wrong_at
from hostres.keys import Key, Several, Text, Words, name_of
from store.rule_names import DEFAULT, GATE_RULE, NO_RULE

MOST_RULES: Final = 1000
TAKEN: Final = frozenset({GATE_RULE, NO_RULE})
RULES: Final = ("authority", "rule")
VERDICTS: Final = ("allow", "ask", "deny")
ACTIONS: Final = (
    "prepare", "effect", "approve", "retry", "replay", "settle", "correct", "cancel", "recover", "budget", "work",
)  # fmt: skip
EFFECTS: Final = (
    "pure", "local-read", "local-derived-write", "project-mutation", "paid-cloud", "live-control", "trusted-code",
)  # fmt: skip
PREPARATIONS: Final = (
    "project-state", "recording-metadata", "screen-capture", "camera", "microphone", "system-audio", "typed-text",
    "window-metadata", "local-media", "provider-options",
)  # fmt: skip
NEVER_ASKED: Final = frozenset({"settle", "correct", "cancel", "recover", "budget", "work"})
"""Actions that are done or refused: nobody is asked for them."""
BY_RECEIPT: Final = frozenset({"approve", "retry", "replay"})
"""Actions for which a person is asked for a receipt, which a rule about people would not let be given."""
_PATTERN: Final = "a pattern with * and ?"


class Sum(NamedTuple):
    """An amount of money that is not negative, a number or a text."""

    def fits(self, value: Any) -> bool:
        """Return whether it is one."""
        from hostler.authority import is_amount  # noqa: PLC0415 - slow, and few rules are of money

        return is_amount(value)

    @property
    def right(self) -> str:
        """What is right, in words."""
        from store.amounts import PLACES  # noqa: PLC0415 - likewise

        return f"a number of at least 0, of at most {PLACES} decimal places"


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
    Key("authority.rule[].verdict", Words(VERDICTS), "what the rule says", required=True),
    Key("authority.rule[].principal", Words(("human", "agent", "service")), "only what such a one wants"),
    Key("authority.rule[].action", Words(ACTIONS), "only this action"),
    Key("authority.rule[].effect", Words(EFFECTS), "only nodes of this effect"),
    Key("authority.rule[].preparation", Several(Words(PREPARATIONS)), "only what looks at one of these"),
    Key("authority.rule[].operation", Text(_PATTERN), "only operations of such a kind, as media.*"),
    Key("authority.rule[].resource", Text(_PATTERN), "only what claims or publishes such a thing, as file:/films/*"),
    Key("authority.rule[].cost", Sum(), "only what may cost so much or more"),
)


def check_rules(settings: Mapping[str, Any], path: Path) -> None:
    """Refuse rules that are right each by itself, and not beside each other or those of Hostler's own.

    Args:
        settings: The whole file, whose keys and values are right, each by itself.
        path: Of the file, for errors.

    Raises:
        HostlerError: invalid-data, with the place of what is wrong.

    """
    lines = settings.get("authority", {}).get("rule", ())
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
        _check_asking(line, (*RULES, number, "verdict"), path)


def _check_asking(line: Mapping[str, Any], place: tuple[str | int, ...], path: Path) -> None:
    """Refuse a rule that asks where nobody can be asked: it would deny."""
    action = line.get("action")
    if line["verdict"] != "ask" or not (
        action in NEVER_ASKED or (action in BY_RECEIPT and line.get("principal") == "human")
    ):
        return
    whom = " by people" if action in BY_RECEIPT else ""
    what = f"{name_of(place)}: nobody can be asked for the action {action}{whom}"
    raise wrong_at(path, place, what, 'write "deny", which it would mean, or "allow"')
