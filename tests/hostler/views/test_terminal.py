"""Text on a terminal."""

import io

import pytest

from hostler.views.terminal import console, cut, duration, harmless, is_terminal, shown_path, table


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe → 漢字 🎬", "größe → 漢字 🎬"),
        ("\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"),
        ("two\nlines\tand a tab", "two\\x0alines\\x09and a tab"),
        ("\x9b31m", "\\x9b31m"),
        ("txt\u202egpj", "txt\\u202egpj"),
        ("\udcff", "\\udcff"),
        ("\u2028", "\\u2028"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_nothing_in_user_data_can_command_a_terminal(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_lines_of_a_log_stay_lines() -> None:
    assert harmless("one\r\ntwo\rthree\n\x07", lines=True) == "one\ntwo\nthree\n\\x07"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-1, "0.0 s"),
        (0.44, "0.4 s"),
        (12.4, "12 s"),
        (59.7, "1 m 00 s"),
        (185, "3 m 05 s"),
        (7380, "2 h 03 m"),
    ],
)
def test_a_length_of_time_is_readable(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_a_long_text_is_cut_with_a_mark() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 4) == "abc…"


def test_a_path_is_shown_without_its_detours_and_other_text_as_it_is() -> None:
    assert shown_path("/a/b/../c/./d") == "/a/c/d"
    for text in ("../c", "a/../b", "", "/a/b\n/../c"):
        assert shown_path(text) == text


def test_a_table_is_aligned_and_harmless() -> None:
    assert table(("A", "BB", "C"), [("1", "2", "3\x1b"), ("long", "", "")]) == "A     BB  C\n1     2   3\\x1b\nlong"


def test_a_pipe_gets_no_escapes() -> None:
    pipe = io.StringIO()
    assert not is_terminal(pipe)
    console(pipe).print("text", style="bold red")
    assert pipe.getvalue() == "text\n"
