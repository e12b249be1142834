"""The pictures in the docs are those that this version draws."""

from pathlib import Path

import pytest

from hostler.pictures.timeline import Phase
from scripts.draw_pictures import FOLDER, pictures
from tests.hostler.pictures.support import parsed

ROOT = Path(__file__).parents[3]
PICTURES = pictures()


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_docs_is_current(name: str) -> None:
    """They are small, and change only where somebody has looked at the new ones."""
    assert (ROOT / name).read_text(encoding="utf-8") == PICTURES[name], "run scripts/draw-pictures and look"
    assert len(parsed(PICTURES[name])) > 10
    assert len(PICTURES[name]) < 30_000


def test_no_other_picture_is_kept() -> None:
    assert {f"{FOLDER}/{path.name}" for path in (ROOT / FOLDER).iterdir()} == {*PICTURES}


def test_the_page_names_every_phase() -> None:
    text = (ROOT / "docs" / "pictures.md").read_text(encoding="utf-8")
    assert [phase for phase in Phase if phase.value not in text] == []
