"""What a JSON schema tells about a value before there is one; where it tells nothing, nothing is claimed."""

from __future__ import annotations

import datetime as dt
import enum
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, TypeAdapter

from hostler.schemas import ANYTHING, NoSuchFieldError, follow, kinds, output_schema, takes_text


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Tree(BaseModel):
    name: str
    children: list[Tree] = []
    parent: Tree | None = None
    pet: Cat | Dog | None = Field(default=None, discriminator="kind")
    sizes: dict[str, int] = {}
    pair: tuple[int, str] = (0, "")
    anything: Any = None


TREE = output_schema(Tree)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), {"object"}),
        (("name",), {"scalar"}),
        (("children",), {"array"}),
        (("children", 5, "children", 0, "parent", "name"), {"scalar"}),
        (("parent",), {"object", "null"}),
        (("pet", "lives"), {"scalar"}),
        (("pet", "tricks", 0), {"scalar"}),
        (("pet", "kind"), {"scalar"}),
        (("sizes", "any name"), {"scalar"}),
        (("pair", 1), {"scalar"}),
        (("anything", "deep", 3, "inside"), None),
    ],
)
def test_a_path_leads_to_what_the_model_says(path: tuple[str | int, ...], expected: set[str] | None) -> None:
    assert kinds(follow(TREE, path)) == expected


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (("nam",), "it has no field nam, only name, children, parent, pet"),
        (("name", 0), "it is string and has no element 0"),
        (("children", "name"), "it is array and has no field name"),
        (("pet", "wings"), "it has no field wings, only kind, lives"),
        (("sizes", "x", "y"), "it is integer and has no field y"),
        (("pair", 2), "it has no element 2, only 2"),
        (("parent", "parent", "nam"), "it has no field nam"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_there_is(path: tuple[str | int, ...], says: str) -> None:
    with pytest.raises(NoSuchFieldError, match=says):
        follow(TREE, path)


def test_nothing_is_claimed_where_nothing_is_known() -> None:
    assert follow(ANYTHING, ("a", 0)) == {"$defs": {}}
    assert kinds(ANYTHING) is None
    assert kinds({"$ref": "https://elsewhere"}) is None
    assert kinds({"$ref": "#/$defs/me", "$defs": {"me": {"$ref": "#/$defs/me"}}}) is None


class Word(enum.StrEnum):
    A = "a"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (str, True),
        (str | None, True),
        (Path, True),
        (Word, True),
        (Literal["a", "b"], True),
        (Literal["a"] | None, True),
        (Literal["a", 1], False),
        (dt.date, True),
        (int, False),
        (int | str, False),
        (list[str], False),
        (None, False),
        (Any, False),
        (Tree, False),
    ],
)
def test_texts_are_told_from_everything_else(kind: Any, *, text: bool) -> None:
    assert takes_text(TypeAdapter(kind).json_schema()) is text
