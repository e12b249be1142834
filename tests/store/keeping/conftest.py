"""One run with something of everything, made once and copied for each test."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from store.home import Home
from tests.store.keeping.support import copied, everything


@dataclass(frozen=True)
class Kept:
    """A home with a finished run in it."""

    home: Home
    run_id: str


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Make the run, in places of its own."""
    folder = tmp_path_factory.mktemp("everything")
    places = {"HOSTLER_HOME": "home", "HOSTLER_MACHINE_DIR": "machine", "HOSTLER_CONFIG": "config.toml"}
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("HOSTLER_")]:
            patch.delenv(name)
        for name, place in places.items():
            patch.setenv(name, str(folder / place))
        (folder / "work").mkdir()
        run_id = everything(folder / "work")
    return Kept(Home.open(folder / "home", create=False), run_id)


@pytest.fixture
def kept(original: Kept, own_places: None) -> Kept:
    """Give a copy of it, in the home of the test."""
    return Kept(copied(original.home, Path(os.environ["HOSTLER_HOME"])), original.run_id)
