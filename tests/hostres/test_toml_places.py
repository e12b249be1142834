"""The line in which a key of a configuration stands, however it is written."""

import tomllib
from typing import Any

import pytest

from hostres.toml_places import line_of

WHOLE = """\
# the machine
machine.nice = 3

[machine.capacity]
ffmpeg = 2 # not cpu = 9
"cpu" = 4

[limits] # nodes
nodes = 7

[[authority.rule]]
id = "one"
verdict = '''
id = "verdict"
'''

[[authority.rule]]
# id
id = "two"
preparation = [
  "camera",
  # cost = 1
  "microphone",
]
cost = 3

[service]
log_files = 3
"""
LINES = {
    ("machine",): 2,
    ("machine", "nice"): 2,
    ("machine", "capacity"): 4,
    ("machine", "capacity", "ffmpeg"): 5,
    ("machine", "capacity", "cpu"): 6,
    ("limits",): 8,
    ("limits", "nodes"): 9,
    ("authority",): 11,
    ("authority", "rule"): 11,
    ("authority", "rule", 0): 11,
    ("authority", "rule", 0, "id"): 12,
    ("authority", "rule", 0, "verdict"): 13,
    ("authority", "rule", 1): 17,
    ("authority", "rule", 1, "id"): 19,
    ("authority", "rule", 1, "preparation"): 20,
    ("authority", "rule", 1, "preparation", 1): 21,
    ("authority", "rule", 1, "cost"): 25,
    ("service", "log_files"): 28,
}


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("place", LINES, ids=str)
def test_each_key_of_a_file_is_found_in_its_line(place: tuple[Any, ...], ends: str) -> None:
    """Under tables and arrays of them, dotted, quoted; not where a text or a comment only looks like it."""
    line = LINES[place]
    if place[-1] == 1 and place[-2] == "preparation":  # the statement is told, not the item
        line = 20
    assert line_of(WHOLE.replace("\n", ends), place) == line


@pytest.mark.parametrize(
    ("text", "place", "line"),
    [
        ("x = { a = 1, b = 2 }", ("x", "b"), 1),
        ("x = [\n  { a = 1 },\n  { a = 2 },\n]", ("x", 1, "a"), 3),
        ("x = [\n  { b = 1 },\n  { a = 2 },\n]", ("x", 1, "a"), 3),
        ("x.y.z = 1\nx.y.w = 2", ("x", "y", "w"), 2),
        ("\n\n\nx = 1", ("x",), 4),
        ('"a\\u0062" = 1', ("ab",), 1),
        ('k = 1\n"a\\u0062" = [\n1,\n]', ("ab",), 2),
        ("x = 1\n", ("y",), None),
        ("x = 1\n", ("x", "y"), None),
        ("x = 1\n", (), None),
        ("", ("x",), None),
    ],
)
def test_odd_ways_of_writing(text: str, place: tuple[Any, ...], line: int | None) -> None:
    """In doubt the line in which the statement begins; None for what is not there."""
    tomllib.loads(text)
    assert line_of(text, place) == line


def test_a_line_in_a_large_file_is_found_with_few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halving: a thousand rules are not read a thousand times."""
    text = "".join(f'[[rule]]\nid = "{number}"\n' for number in range(1000))
    looks: list[int] = []
    read = tomllib.loads

    def counted(text: str) -> dict[str, Any]:
        looks.append(len(text))
        return read(text)

    monkeypatch.setattr(tomllib, "loads", counted)
    assert line_of(text, ("rule", 700, "id")) == 1402
    assert len(looks) < 30


def test_a_text_that_takes_too_many_looks_has_no_line() -> None:
    """A line number is not worth seconds."""
    text = "x = [\n" + "1,\n" * 2000 + "]\ny = 1\n"
    assert line_of(text, ("y",)) in (None, 2003)
