"""Changing one key of a configuration leaves the rest of its text as it is."""

import tomllib

import pytest

from hostres.errors import Code, HostlerError
from hostres.toml_text import with_capacity


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", "[machine.capacity]\nx = 7\n"),
        ("# mine\n[limits]\nnodes = 5", "# mine\n[limits]\nnodes = 5\n\n[machine.capacity]\nx = 7\n"),
        ("[machine.capacity]\nx = 1  # one\ny = 2\n", "[machine.capacity]\nx = 7  # one\ny = 2\n"),
        ('[ machine . "capacity" ]\n"x"=0x1\n', '[ machine . "capacity" ]\n"x"=7\n'),
        (
            "[machine.capacity]\ny = 2\n\n# next\n[limits]\nnodes = 5\n",
            "[machine.capacity]\ny = 2\n\n# next\nx = 7\n[limits]\nnodes = 5\n",
        ),
        ("[machine.capacity]\r\ny = 2\r\n", "[machine.capacity]\r\ny = 2\r\nx = 7\r\n"),
        ("[machine.capacity]", "[machine.capacity]\nx = 7\n"),
        ("[machine]\ncapacity.y = 2\n", "[machine]\ncapacity.y = 2\ncapacity.x = 7\n"),
        ("[machine]\ncapacity.x = 1_0\n", "[machine]\ncapacity.x = 7\n"),
        ("[machine]\ncapacity = { y = 2 }\n", "[machine]\ncapacity = { x = 7, y = 2 }\n"),
        ("[machine]\ncapacity = { x = 2, y = 2 }\n", "[machine]\ncapacity = { x = 7, y = 2 }\n"),
        ("[machine]\ncapacity = {}\n", "[machine]\ncapacity = { x = 7 }\n"),
        ("machine.capacity.x = 1\n", "machine.capacity.x = 7\n"),
        ("machine.capacity.y = 1\n[limits]\n", "machine.capacity.x = 7\nmachine.capacity.y = 1\n[limits]\n"),
        ("[x]\nx = 1\n[machine.capacity]\nx = 1\n", "[x]\nx = 1\n[machine.capacity]\nx = 7\n"),
        ('t = """\n[machine.capacity]\nx = 1\n"""\n', 't = """\n[machine.capacity]\nx = 1\n"""\n\n[machine.capacity]\nx = 7\n'),
    ],
)  # fmt: skip
def test_a_capacity_is_set_where_it_belongs(text: str, changed: str) -> None:
    assert with_capacity(text, "x", 7) == changed
    assert tomllib.loads(changed)["machine"]["capacity"]["x"] == 7
    assert with_capacity(changed, "x", 7) == changed


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("[machine.capacity]\nx = 1  # one\ny = 2\n", "[machine.capacity]\ny = 2\n"),
        ("a = 1\n[machine.capacity]\nx = 1", "a = 1\n[machine.capacity]\n"),
        ("[machine]\ncapacity = { x = 2, y = 2 }\n", "[machine]\ncapacity = { y = 2 }\n"),
        ("[machine]\ncapacity = { y = 2, x = 2 }\n", "[machine]\ncapacity = { y = 2 }\n"),
        ("[machine]\ncapacity = { x = 2 }\nz = 1\n", "[machine]\nz = 1\n"),
        ("machine.capacity.x = 1\na = 2\n", "a = 2\n"),
        ("[machine.capacity]\ny = 2\n", "[machine.capacity]\ny = 2\n"),
        ("", ""),
    ],
)
def test_a_capacity_is_taken_out(text: str, changed: str) -> None:
    assert with_capacity(text, "x", None) == changed


def test_a_name_that_is_no_bare_key_is_quoted() -> None:
    changed = with_capacity("", "a.b", 1)
    assert changed == '[machine.capacity]\n"a.b" = 1\n'
    assert with_capacity(changed, "a.b", 2) == '[machine.capacity]\n"a.b" = 2\n'


def test_what_cannot_be_changed_here_is_left_to_the_person() -> None:
    odd = '[machine.capacity]\n"\\u0078" = 1\n'
    with pytest.raises(HostlerError, match="by hand", check=lambda error: error.code is Code.INVALID_DATA):
        with_capacity(odd, "x", 2)
