"""Who may look, and at what."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.dashboard.guard import HEADERS, Entry, Kind, Knock, Page, Refusal, judge
from tests.hostler.views.support import RUN_ID

PORT = 8123
TOKEN = "t0ken_-x"


def judged(target: str = f"/{TOKEN}/", **how: Any) -> Page | Entry | Refusal:
    knock: dict[str, Any] = {"method": "GET", "target": target, "host": (f"127.0.0.1:{PORT}",), **how}
    return judge(Knock(**knock), port=PORT, token=TOKEN)


def status(found: Page | Entry | Refusal) -> int:
    return found.status if isinstance(found, Refusal) else 200


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("", Page(kind=Kind.RUNS)),
        (f"?before={RUN_ID}", Page(kind=Kind.RUNS, before=RUN_ID)),
        ("machine", Page(kind=Kind.MACHINE)),
        ("style.css", Page(kind=Kind.STYLE)),
        ("live.js", Page(kind=Kind.SCRIPT)),
        (f"runs/{RUN_ID}", Page(kind=Kind.RUN, run=RUN_ID)),
        (f"runs/{RUN_ID}/nodes/publish/talk.mp4", Page(kind=Kind.NODE, run=RUN_ID, node="publish/talk.mp4")),
    ],
)
def test_the_pages(path: str, page: Page) -> None:
    assert judged(f"/{TOKEN}/{path}") == page


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "CONNECT", "get", ""])
def test_only_get_is_answered(method: str) -> None:
    assert status(judged(method=method)) == 405


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ((f"127.0.0.1:{PORT}",), 200),
        ((f"LocalHost:{PORT}",), 200),
        ((), 421),
        (("127.0.0.1",), 421),
        (("127.0.0.1:80",), 421),
        ((f"evil.example:{PORT}",), 421),
        ((f"127.0.0.1.evil.example:{PORT}",), 421),
        ((f"127.0.0.1:{PORT}", f"evil.example:{PORT}"), 421),
    ],
)
def test_a_name_that_somebody_makes_lead_here_is_refused(host: tuple[str, ...], code: int) -> None:
    """DNS rebinding: the browser sends the name that the evil page has."""
    assert status(judged(host=host)) == code


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"origin": f"http://127.0.0.1:{PORT}", "site": "same-origin"}, 200),
        ({"site": "none"}, 200),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"site": "cross-site"}, 403),
        ({"site": "same-site"}, 403),
    ],
)
def test_nothing_is_let_in_from_other_sites(how: dict[str, str], code: int) -> None:
    assert status(judged(**how)) == code


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("/", 403),
        ("/machine", 403),
        ("/t0ken_-y/", 403),
        (f"/{TOKEN}x/machine", 403),
        ("//evil.example/", 400),
        ("http://127.0.0.1/", 400),
        ("*", 400),
        (f"/{TOKEN}/{'a' * 5000}", 400),
        (f"/{TOKEN}/%ff", 404),
        (f"/{TOKEN}/../etc/passwd", 404),
        (f"/{TOKEN}/%2e%2e/x", 404),
        (f"/{TOKEN}/runs/..%2f..%2fx", 404),
        (f"/{TOKEN}/runs/run_x", 404),
        (f"/{TOKEN}/runs/{RUN_ID}/nodes/", 404),
        (f"/{TOKEN}/runs/{RUN_ID}/nodes/a%00b", 404),
        (f"/{TOKEN}/?before=run_x", 404),
        (f"/{TOKEN}/nonsense", 404),
    ],
)
def test_what_is_no_page_is_refused(target: str, code: int) -> None:
    assert status(judged(target)) == code


@given(st.text(max_size=60), st.text(max_size=8))
def test_nothing_is_shown_to_who_does_not_know_the_token(target: str, method: str) -> None:
    found = judged(f"/{target}", method=method or "GET")
    assert not isinstance(found, Page) or target.startswith(TOKEN)


def test_an_address_that_opens_once_is_judged_by_its_word() -> None:
    assert judged("/open/word") == Entry(word="word")
    assert status(judged("/open/word", host=("evil.example",))) == 421


def test_pages_may_run_and_fetch_nothing_but_their_own() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in HEADERS["Content-Security-Policy"].split(";"))
    assert rules["default-src"] == "'none'"
    assert {text for name, text in rules.items()} == {"'none'", "'self'"}
    assert not [text for text in rules.values() if "unsafe" in text]
    assert rules["frame-ancestors"] == rules["form-action"] == rules["base-uri"] == "'none'"
