"""The pages that are written from code say what the code says now."""

import argparse
import ast
import re
import shlex
import tomllib
from typing import Final

import pytest

from scripts.reference import PAGES, current, now
from scripts.reference.commands import below, whole_parser
from scripts.reference.events import KINDS
from scripts.reference.parts import with_part
from scripts.reference.told import rows_of
from store.contracts import Event, EventKind
from tests.docs.blocks import PAGES as DOCUMENTS
from tests.docs.blocks import ROOT, text_between_blocks

USAGE: Final = re.compile(r"\[OPTION\]|\} …")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_is_written_from_code_is_current(page: str) -> None:
    """Whoever changes a command, an error, an event, a word of a policy, a move or an example writes it anew."""
    assert now(page) == current(page), f"{page} is not current: run scripts/docs --pages"


def test_a_word_of_which_nobody_says_what_it_means_is_named_with_the_place_to_say_it() -> None:
    """So is one that is gone."""
    with pytest.raises(ValueError, match=r"nobody says what b, c means; add a line to MEANINGS in here\.py"):
        rows_of(["a", "b", "c"], {"a": "first"}, where="MEANINGS in here.py")
    with pytest.raises(ValueError, match="says something of b, which is not there any more"):
        rows_of(["a"], {"a": "first", "b": "second"}, where="MEANINGS in here.py")


@pytest.mark.parametrize("page", DOCUMENTS)
def test_a_command_in_running_text_would_be_understood(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With all its options; that of a block is typed anyway. The page of commands has its examples so."""
    parser = whole_parser()
    refused = []
    for code in re.findall(r"`([^`]+)`", text_between_blocks(page)):
        typed = re.search(r"(?:^| )hostler (\w.*)", " ".join(code.split()))
        words = shlex.split(typed[1]) if typed and not USAGE.search(code) else []
        if is_a_name(words, parser):
            continue
        try:
            parser.parse_args(words)
        except SystemExit as ended:
            said = capsys.readouterr()
            if ended.code != 0:  # which `--help` ends with
                refused.append((code, said.err.splitlines()[-1]))
    assert not refused


def test_events_are_told_with_all_the_data_that_the_code_gives_them() -> None:
    """As far as it is given by name; what every event has stands in a table of its own."""
    given: dict[str, set[str]] = {}
    for path in (ROOT / "actors").rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(args=[ast.Attribute(value=ast.Name(id="EventKind"), attr=kind), *_], keywords=words):
                    given.setdefault(kind, set()).update(word.arg for word in words if word.arg)
    assert given
    for kind, names in given.items():
        told = re.findall(r"\w+", KINDS[EventKind[kind]][1])
        assert names - {*Event.model_fields} <= {*told}, f"KINDS in scripts/reference/events.py does not tell of {kind}"


def test_a_part_of_a_page_is_written_between_its_marks_and_nowhere_else() -> None:
    """What people write around it stays; a page without the marks is refused, not changed."""
    page = "before\n<!-- keys: written by scripts/docs -->\nold\n<!-- /keys -->\nafter\n"
    written = with_part(page, "keys", "new\n")
    assert written == "before\n<!-- keys: written by scripts/docs -->\n\nnew\n\n<!-- /keys -->\nafter\n"
    assert with_part(written, "keys", "new") == written
    for broken in ("before\n", page * 2, page.replace("<!-- /keys -->", "")):
        with pytest.raises(ValueError, match="put the marks back"):
            with_part(broken, "keys", "new")


def test_every_page_stands_in_the_navigation_of_the_site() -> None:
    """Once; a page that is in none cannot be found."""
    nav = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    there = sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))
    assert sorted(leaves(nav)) == there, "add it to nav in zensical.toml"


def leaves(nav: object) -> list[str]:
    """The pages of a part of the navigation."""
    match nav:
        case dict():
            return [page for part in nav.values() for page in leaves(part)]
        case list():
            return [page for part in nav for page in leaves(part)]
    return [str(nav)]


def is_a_name(words: list[str], parser: argparse.ArgumentParser) -> bool:
    """Whether they only name a command, as `machine set`, or nothing."""
    choices = below(parser)
    for word in words:
        if word not in choices:
            return False
        choices = below(choices[word])
    return True
