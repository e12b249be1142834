"""The script of the dashboard, in a real browser where there is one."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hostler.dashboard import looking
from hostler.dashboard.server import Dashboard

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = (
    "--headless",
    "--no-sandbox",  # a container and root have none
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
FOUR_LOOKS_MS = 9000

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no browser: install chromium")


def seen_after(url: str, folder: Path) -> str:
    """Return the page as it stands in a browser after a few looks, with the waits between them left out."""
    words = [*QUIET, f"--user-data-dir={folder}", f"--virtual-time-budget={FOUR_LOOKS_MS}", "--dump-dom", url]
    here = {name: value for name, value in os.environ.items() if not name.startswith("HOSTLER_")}
    done = subprocess.run(
        [str(BROWSER), *words], env=here | {"HOME": str(folder)}, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def show(monkeypatch: pytest.MonkeyPatch, *pages: str) -> list[int]:
    """Have the dashboard show these in turn, and break after the last; return what counts the looks."""
    looks: list[int] = []

    def page(*_: object, **__: object) -> str:
        looks.append(len(looks))
        return pages[looks[-1]]

    monkeypatch.setattr(looking, "runs_page", page)
    return looks


def test_a_page_follows_what_changes_and_keeps_open_what_a_reader_has_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What has not changed stays the very element, with all that a reader did to it."""
    same = '<p id="same">the same</p>'
    looks = show(
        monkeypatch,
        f'{same}<details id="log" open><p>one</p></details>',
        *[f'{same}<details id="log"><p>two</p></details>'] * 9,
    )
    with Dashboard(Path(os.environ["HOSTLER_HOME"])) as dashboard:
        page = seen_after(dashboard.url, tmp_path)
    assert len(looks) > 2
    assert f'{same}<details id="log" open=""><p>two</p></details>' in page
    assert "no longer live" not in page


def test_what_a_reader_has_opened_stays_open_when_there_is_more_on_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As when a run begins to wait for a person."""
    log = '<details id="log"><p>one</p></details>'
    show(monkeypatch, log.replace('log"', 'log" open'), *[f"<h2>more</h2>{log}"] * 9)
    with Dashboard(Path(os.environ["HOSTLER_HOME"])) as dashboard:
        page = seen_after(dashboard.url, tmp_path)
    assert '<h2>more</h2><details id="log" open=""><p>one</p></details>' in page


def test_a_page_that_cannot_be_had_any_more_says_so_and_still_shows_the_last_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    show(monkeypatch, "<p>one</p>", "<p>two</p>")
    with Dashboard(Path(os.environ["HOSTLER_HOME"])) as dashboard:
        page = seen_after(dashboard.url, tmp_path)
    assert "<p>two</p>" in page
    assert "This page is no longer live" in page
    assert "IndexError" in capfd.readouterr().err, "that is how it broke"
