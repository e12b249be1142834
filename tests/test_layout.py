"""The project is laid out as its documents say, and they are current."""

import importlib
import re
from pathlib import Path

import pytest

from scripts.reference.lifecycle import lifecycle_part
from store.lifecycle import MOVES, Status

ROOT = Path(__file__).parent.parent
PACKAGES = ("actors", "hostler", "hostres", "store")
MODULES = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
NAMED = r"`((?:actors|hostler|hostres|store|tests|scripts|docs|examples)/[^` *]*)`"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_is_the_one_of_this_repository(name: str) -> None:
    """Names like `store` are common; another package of that name must not be what is tested."""
    package = importlib.import_module(name)
    assert Path(package.__file__ or "").parent == ROOT / name


def test_every_test_folder_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_module_is_named_for_nothing() -> None:
    assert [path for path in MODULES if re.search(r"utils|manager|helpers", path.stem)] == []


def test_every_module_says_what_it_is() -> None:
    silent = [path for path in MODULES if path.read_text(encoding="utf-8").strip() and not _says(path)]
    assert silent == []


def test_the_diagram_leaves_no_move_out() -> None:
    section = lifecycle_part()
    ends = {Status.CANCELLED, Status.INCOMPATIBLE}
    for before, moves in MOVES.items():
        for after in moves - ends - {before}:
            assert f"{before.value.replace('-', '_')} --> {after.value.replace('-', '_')}\n" in section
        assert not moves or before in {Status.FAILED, Status.SKIPPED} or ends <= moves


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_that_a_document_names_exists(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([^)#:]+)\)", text))
    named = set(re.findall(NAMED, text))
    missing = [name for name in named if not (ROOT / name).exists()]
    missing += [target for target in linked if not (document.parent / target).exists()]
    assert missing == []


def _says(path: Path) -> bool:
    return path.read_text(encoding="utf-8").startswith('"""')
