"""`hostler ui` as a person starts and ends it."""

import json
import signal
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.end_to_end.support import Terminal, command, graph, hostler, read_until, refused, started
from tests.support import until

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def page(url: str) -> str:
    with OPENER.open(url, timeout=60) as answer:
        text: str = answer.read().decode()
    return text


def test_it_shows_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
    hostler("run", graph(tmp_path, command("say", "echo", "hello")))
    with started("ui", "--no-browser", "--json", "--port", "0") as process:
        shape = json.loads(read_until(process, "{")[-1])
        assert {*shape} == {"format_version", "url", "port"}
        shown = page(shape["url"])
        assert "completed" in shown
        link = shown.partition('href="')[2]
        while "/runs/" not in link.partition('"')[0]:
            link = link.partition('href="')[2]
        run_url = f"http://127.0.0.1:{shape['port']}{link.partition(chr(34))[0]}"
        assert page(run_url).count("<svg") == 2
        assert "hello" in page(f"{run_url}/nodes/say")
        assert f"port {shape['port']} of 127.0.0.1" in refused("ui", "--port", str(shape["port"]), code=69)
        process.send_signal(signal.SIGTERM)
        out, error = process.communicate(timeout=60)
        assert (process.returncode, out, error) == (0, "", "")
        with pytest.raises(urllib.error.URLError):
            page(shape["url"])


def test_ctrl_c_ends_it_with_one_line_and_zero() -> None:
    terminal = Terminal("ui", "--no-browser")
    terminal.expect("Ctrl-C ends it")
    url = terminal.screen.partition("look at ")[2].split()[0]
    until(lambda: "There is no run here yet." in page(url))
    terminal.write("\x03")
    assert terminal.wait() == 0
    said = terminal.screen.partition("Ctrl-C ends it")[2].replace("^C", "").split("\r\n")
    assert [line for line in said if line] == ["ended; no page is served any more"]
