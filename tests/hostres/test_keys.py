"""The table of keys: what is right for each kind, and the first thing that is wrong."""

import tomllib
from typing import Any

import pytest

from hostres.keys import Either, Key, Kind, Number, Several, Table, Text, Whole, Words, first_problem, name_of, written
from hostres.machine_keys import MACHINE_KEYS

KEYS = (
    Key("a.whole", Whole(1, 3), "x", required=True),
    Key("a.word", Words(("on", "off")), "x"),
    Key("any.*", Number(0), "x", names=("one",), form=Text("a short name", "[a-z]+", 3), example="one = 1"),
    Key("line[].id", Text("a name"), "x", required=True),
    Key("line[].kinds", Several(Words(("p", "q"))), "x"),
    Key("other", Table(), "x"),
)


@pytest.mark.parametrize(
    ("kind", "fits", "not_"),
    [
        (Whole(0, 3), [0, 3], [-1, 4, True, 1.0, "1", None, [1]]),
        (Whole(1), [1, 2**53 - 1], [0, 2**53]),
        (Number(0.5, 2), [0.5, 1, 2.0], [0.4, 2.1, float("nan"), float("inf"), True, "1"]),
        (Words(("a", "b")), ["a"], ["", "c", 1, True, ["a"]]),
        (Text("x"), ["x", " \n"], ["", 1, "y" * 1025]),
        (Text("x", "[a-z]+", 2), ["ab"], ["abc", "a1", "a\n"]),
        (Several(Words(("a", "b"))), [["a"], ["a", "b"]], [[], ["c"], "a", {}]),
        (Either((Words(("idle",)), Whole(0, 7))), ["idle", 7], ["idl", 8, None]),
        (Table(), [{}, {"x": 1}], [[], 1, "x"]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, tuple) else None,
)
def test_what_fits_a_kind_and_what_does_not(kind: Kind, fits: list[Any], not_: list[Any]) -> None:
    """A boolean is no number, a number no text; bounds belong to it."""
    assert all(kind.fits(value) for value in fits)
    assert not any(kind.fits(value) for value in not_)


@pytest.mark.parametrize(
    ("settings", "place", "what", "todo"),
    [
        ({"a": {"whole": 9}}, ("a", "whole"), "a.whole = 9 is not right", "write a whole number from 1 to 3"),
        ({"a": {}}, ("a",), "a has no whole", "give it one: a whole number from 1 to 3"),
        ({"a": {"whole": 1, "word": "of"}}, ("a", "word"), 'a.word = "of" is not right', 'write "on" or "off"'),
        ({"a": {"whole": 1, "wrd": "on"}}, ("a", "wrd"), "there is no key a.wrd", "did you mean a.word?"),
        ({"whole": 1}, ("whole",), "there is no key whole", "did you mean a.whole?"),
        ({"one": 1}, ("one",), "there is no key one", "did you mean any.one?"),
        ({"a": 3}, ("a",), "a is not a table", "write [a] and its keys below: whole, word"),
        ({"any": 3}, ("any",), "any is not a table", "write [any] and below it lines as one = 1"),
        ({"any": {"long": 1}}, ("any", "long"), "any.long is no such name", "write a short name"),
        ({"any": {"*": 1}}, ("any", "*"), "there is no key any.*", "take it out; here may stand *"),
        ({"line": {}}, ("line",), "line is not an array of tables", "write [[line]] before each of them"),
        ({"line": [{"id": "x"}, {}]}, ("line", 1), "line[1] has no id", "give it one: a name"),
        (
            {"line": [{"id": "x", "ids": 1}]},
            ("line", 0, "ids"),
            "there is no key line[0].ids",
            "did you mean line[0].id?",
        ),
        ({"other": 1}, ("other",), "other = 1 is not right", "write a table"),
        ({"qqq": 1}, ("qqq",), "there is no key qqq", "take it out; here may stand a, any, line, other"),
    ],
)
def test_the_first_problem_has_its_place_and_says_what_is_right(
    settings: dict[str, Any], place: tuple[Any, ...], what: str, todo: str
) -> None:
    """In words that name the key as people write it."""
    problem = first_problem(settings, KEYS)
    assert problem is not None
    assert (problem.place, problem.what, problem.todo) == (place, what, todo)
    assert problem.unknown is what.startswith("there is no key")


def test_nothing_is_wrong_with_what_is_right() -> None:
    """Also not with nothing at all."""
    right = {"a": {"whole": 2}, "any": {"x": 0.5}, "line": [{"id": "x", "kinds": ["p"]}], "other": {"y": 1}}
    assert first_problem(right, KEYS) is None
    assert first_problem({}, KEYS) is None


def test_every_key_of_the_machine_says_what_it_is_for_and_its_default_is_right() -> None:
    """A default that the table itself would refuse could not be written down."""
    for key in MACHINE_KEYS:
        assert key.meaning
        if key.default and not key.default.startswith("see "):
            assert key.kind.fits(tomllib.loads(f"x = {key.default}")["x"]), key.path


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (1.5, "1.5"),
        ('a"\\\n', '"a\\"\\\\\\u000A"'),
        ([1, "x"], '[1, "x"]'),
        ({"a b": 1}, '{ "a b" = 1 }'),
        ("x" * 90, '"' + "x" * 58 + "…"),
    ],
)
def test_a_value_is_shown_as_it_is_written_within_one_short_line(value: object, shown: str) -> None:
    """Nothing of it can break the line."""
    assert written(value) == shown


def test_a_place_is_shown_as_it_is_written() -> None:
    """With brackets for places in an array, quotes where a name needs them."""
    assert name_of(("authority", "rule", 0, "id")) == "authority.rule[0].id"
    assert name_of(("machine", "a b")) == 'machine."a b"'
