"""A store to write in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.support import Setting


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    """Give a home, a host and a store."""
    one = Setting(tmp_path / "home")
    yield one
    one.close()
