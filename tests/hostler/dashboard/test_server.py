"""The dashboard as a browser meets it."""

import hashlib
import http.client
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hostler.__main__ import main
from hostler.dashboard import looking
from hostler.dashboard.guard import HEADERS
from hostler.dashboard.server import AT_ONCE, Dashboard
from hostler.stored_runs import reading
from hostres.errors import Code, HostlerError
from hostres.logs import BoundedLog
from store.lifecycle import Status
from tests.end_to_end.support import command, graph
from tests.hostler.views.support import FAILURE, PLAN
from tests.store.support import STAMP, Setting, finish_node, moved, plan_of
from tests.support import until

EVIL = "</pre><script>alert(1)</script>\x1b[2J \u202e"


class Browser:
    """Asks a dashboard."""

    def __init__(self, dashboard: Dashboard) -> None:
        self.port = dashboard.port
        self.root = dashboard.url.partition(str(self.port))[2]

    def ask(self, target: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, headers={name.replace("_", "-"): text for name, text in headers.items()})
            answer = connection.getresponse()
            return answer, answer.read().decode()
        finally:
            connection.close()

    def page(self, path: str = "", *, code: int = 200) -> str:
        answer, text = self.ask(self.root + path)
        assert answer.status == code, text
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        checked(text)
        return text


class Tags(HTMLParser):
    """Finds elements that are never closed, and those that would run something."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.scripts: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))
        if tag not in {"meta", "link", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert self.open[-1:] != ["script"] or not data.strip()


def checked(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert [source and source.rpartition("/")[2] for source in tags.scripts] == ["live.js"]


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOSTLER_HOME"])


@pytest.fixture
def browser(home: Path) -> Iterator[Browser]:
    with Dashboard(home) as dashboard:
        yield Browser(dashboard)


@pytest.fixture
def run_id() -> str:
    """A run whose first node is done, whose second failed, and whose third has a name that is markup."""
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    nodes = list(PLAN.nodes)
    nodes[2] = nodes[2].model_copy(update={"label": EVIL})
    run_id = setting.created(PLAN.model_copy(update={"nodes": tuple(nodes)}))
    claimed = setting.store.claim(run_id, setting.identity)
    records = {node.key: node for node in claimed.nodes}
    finish_node(setting, claimed, "audio", {"path": "a.wav"})
    setting.accept(claimed, nodes=(moved(records["text"], Status.READY),))
    running = moved(records["text"], Status.RUNNING, attempt=1, started_at=STAMP.at)
    setting.accept(claimed, nodes=(running,))
    setting.accept(claimed, nodes=(moved(running, Status.FAILED, failure=FAILURE, finished_at=STAMP.at),), release=True)
    log = BoundedLog(setting.home.log_path(run_id, "text", 1, "stderr"))
    log.write(EVIL.encode())
    log.close()
    setting.close()
    return run_id


def test_where_nothing_has_run_there_is_nothing_to_see_and_nothing_is_made(browser: Browser, home: Path) -> None:
    assert "There is no run here yet." in browser.page()
    assert "Machine" in browser.page("machine")
    assert not home.exists()
    assert not Path(os.environ["HOSTLER_MACHINE_DIR"]).exists()


def test_the_pages_lead_from_the_runs_to_a_run_to_a_node(run_id: str, browser: Browser) -> None:
    assert f'href="{browser.root}runs/{run_id}"' in browser.page()
    page = browser.page(f"runs/{run_id}")
    assert page.count("<svg") == 2
    assert f"Timeline of podcast@1 · {run_id}" in page
    assert f"Graph of podcast@1 · {run_id}" in page
    assert f'href="{browser.root}runs/{run_id}/nodes/text"' in page
    node = browser.page(f"runs/{run_id}/nodes/text")
    assert f"hostler logs {run_id} text" in node
    assert "ffmpeg ended" in node


def test_what_people_wrote_is_text_and_nothing_else(run_id: str, browser: Browser) -> None:
    for path in (f"runs/{run_id}", f"runs/{run_id}/nodes/text", f"runs/{run_id}/nodes/upload"):
        page = browser.page(path)
        assert "&lt;script&gt;alert(1)" in page
        assert "<script>" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page


def test_a_page_says_how_often_it_asks_again_and_not_at_all_once_a_run_has_ended(run_id: str, browser: Browser) -> None:
    assert 'data-every="0"' not in browser.page()
    assert 'data-every="0"' not in browser.page(f"runs/{run_id}")
    another = run_id[:-1] + ("1" if run_id.endswith("0") else "0")
    assert 'data-every="0"' in browser.page(f"runs/{another}", code=404)
    _, script = browser.ask(f"{browser.root}live.js")
    assert "data-every" in browser.page()
    assert "main.dataset.every" in script


@pytest.mark.parametrize(("program", "live"), [("false", True), ("true", False)])
def test_a_page_of_a_run_that_has_ended_goes_on_where_a_person_may_retry(
    browser: Browser, tmp_path: Path, program: str, live: bool
) -> None:
    """It shows the command that does so."""
    main(["run", graph(tmp_path, command("a", program))])
    with reading() as (_, reader):
        run_id = reader.find("-")
    for path in (f"runs/{run_id}", f"runs/{run_id}/nodes/a"):
        assert ('data-every="0"' not in browser.page(path)) is live
    assert main(["export", run_id, str(tmp_path / "x.tar")]) == 0
    shutil.rmtree(os.environ["HOSTLER_HOME"])
    assert main(["import", str(tmp_path / "x.tar")]) == 0
    assert 'data-every="0"' in browser.page(f"runs/{run_id}"), "nobody goes on with what is imported"


def test_its_own_style_and_script_are_all_that_it_loads(browser: Browser) -> None:
    for name, kind in (("style.css", "text/css"), ("live.js", "text/javascript")):
        answer, text = browser.ask(browser.root + name)
        assert (answer.status, answer.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
        assert "http" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND", "X"])
def test_no_method_changes_anything(method: str, run_id: str, browser: Browser, home: Path) -> None:
    before = hashlib.sha256((home / "runs.db").read_bytes()).digest()
    for path in ("", f"runs/{run_id}", f"runs/{run_id}/nodes/text", "machine"):
        answer, _ = browser.ask(browser.root + path, method)
        assert (answer.status, answer.headers["Allow"]) == (405, "GET")
        assert answer.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
    assert hashlib.sha256((home / "runs.db").read_bytes()).digest() == before


@pytest.mark.parametrize(
    ("target", "headers", "code"),
    [("/", {}, 403), ("/favicon.ico", {}, 403), ("{root}", {"Host": "evil.example"}, 421),
     ("{root}", {"Origin": "http://evil.example"}, 403), ("{root}", {"Sec_Fetch_Site": "cross-site"}, 403)],
)  # fmt: skip
def test_who_may_not_look_is_told_nothing(target: str, headers: dict[str, str], code: int, browser: Browser) -> None:
    answer, text = browser.ask(target.format(root=browser.root), **headers)
    assert answer.status == code
    assert browser.root not in text
    assert "Server" not in answer.headers or answer.headers["Server"].strip() == "hostler"


def test_the_address_a_browser_is_started_with_is_good_for_one_time(home: Path) -> None:
    with Dashboard(home) as dashboard:
        browser = Browser(dashboard)
        entry = dashboard.entry_url().partition(str(dashboard.port))[2]
        assert browser.root.strip("/") not in entry
        answer, _ = browser.ask(entry)
        assert (answer.status, answer.headers["Location"]) == (303, browser.root)
        assert browser.ask(entry)[0].status == 403
        assert browser.ask("/open/nonsense")[0].status == 403


def test_only_the_loopback_address_is_listened_on_and_no_name_is_asked_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(_: str) -> str:
        raise AssertionError("a name server may take seconds to answer")

    monkeypatch.setattr("socket.getfqdn", asked)
    with Dashboard(home) as dashboard:
        assert dashboard.url.startswith(f"http://127.0.0.1:{dashboard.port}/")
        assert len(dashboard.url.rpartition(f":{dashboard.port}/")[2]) > 30
        with socket.socket() as other, pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", dashboard.port))


@pytest.mark.parametrize(
    "data", [b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 70_000 + b"\r\n\r\n"]
)
def test_what_is_not_http_is_refused_and_the_next_one_is_served(data: bytes, browser: Browser) -> None:
    with socket.create_connection(("127.0.0.1", browser.port), timeout=60) as connection:
        connection.sendall(data)
        answer = connection.recv(100)
    assert not answer.startswith(b"HTTP/1.0 2")
    assert browser.root.encode() not in answer
    assert "Runs" in browser.page()


def test_connections_that_say_nothing_keep_a_few_places_and_no_more(browser: Browser) -> None:
    silent = [socket.create_connection(("127.0.0.1", browser.port)) for _ in range(AT_ONCE)]
    try:
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            browser.ask(browser.root)
    finally:
        for connection in silent:
            connection.close()


def test_a_port_that_is_taken_is_refused(home: Path) -> None:
    with Dashboard(home) as dashboard, pytest.raises(HostlerError, match=f"port {dashboard.port} of") as caught:
        Dashboard(home, port=dashboard.port)
    assert caught.value.code is Code.UNAVAILABLE


def test_after_its_end_nothing_answers(home: Path) -> None:
    with Dashboard(home) as dashboard:
        browser = Browser(dashboard)
        browser.page()
    with pytest.raises(ConnectionRefusedError):
        browser.ask(browser.root)


def test_a_damaged_store_is_a_page_that_says_so(run_id: str, browser: Browser, home: Path) -> None:
    (home / "runs.db").write_bytes(b"nonsense" * 1000)
    page = browser.page(f"runs/{run_id}", code=503)
    assert "Not shown" in page
    assert 'data-every="0"' not in page


def test_without_the_drawing_library_a_run_is_shown_without_pictures(
    run_id: str, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "drawsvg", None)
    page = browser.page(f"runs/{run_id}")
    assert "<svg" not in page
    assert "pip install &#x27;hostler[pictures]&#x27;" in page
    assert "Nodes" in page


def test_a_run_with_a_very_long_log_is_shown_without_its_timeline(
    run_id: str, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "MAX_EVENTS", 2)
    page = browser.page(f"runs/{run_id}")
    assert f"hostler timeline {run_id} -o run.svg" in page
    assert page.count("<svg") == 1


def test_runs_made_after_its_start_are_listed_and_go_on_on_older_pages(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of a state folder that was not there yet."""
    assert "There is no run here yet." in browser.page()
    monkeypatch.setattr(looking, "RUNS_A_PAGE", 2)
    setting = Setting(Path(os.environ["HOSTLER_HOME"]))
    runs = [setting.created(plan_of({"a": []})) for _ in range(3)]
    setting.close()
    first = browser.page()
    assert runs[2] in first
    assert runs[0] not in first
    assert f"?before={runs[1]}" in first
    older = browser.page(f"?before={runs[1]}")
    assert runs[0] in older
    assert "?before=" not in older


def test_a_bug_of_ours_is_told_in_the_terminal_and_not_to_the_browser(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def broken(*_: object, **__: object) -> str:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(looking, "runs_page", broken)
    answer, text = browser.ask(browser.root)
    assert answer.status == 500
    assert "secret" not in text
    until(lambda: "ZeroDivisionError: a secret" in capsys.readouterr().err)
