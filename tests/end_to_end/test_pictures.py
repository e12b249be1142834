"""Pictures of real runs: one that works, one whose host was killed, one that has ended."""

import os
from pathlib import Path

from tests.end_to_end.support import hostler, read_until, started, told
from tests.hostler.pictures.support import parsed, words
from tests.support import until

FLOW = """
[workflow]
id = "waits"
version = 1

[[nodes]]
key = "first"
label = "Waits for <a word>"
executor.command = {{ argv = ["cat", "{pipe}"], claims = {{ cpu = 1, ffmpeg = 1 }}, effect = "pure", resume = "deterministic", max_seconds = 60 }}

[[nodes]]
key = "second"
after = ["first"]
executor.command = {{ argv = ["true"], claims = {{ cpu = 1 }}, effect = "pure", resume = "deterministic", max_seconds = 60 }}
"""


def drawn(tmp_path: Path) -> list[str]:
    hostler("timeline", "-", "-o", str(tmp_path / "t.svg"))
    return words(parsed((tmp_path / "t.svg").read_text(encoding="utf-8")))


def has(said: list[str], *starts: str) -> bool:
    return all(any(each.startswith(start) for each in said) for start in starts)


def test_a_timeline_follows_a_run_through_the_death_of_its_host_to_its_end(tmp_path: Path) -> None:
    pipe, flow = tmp_path / "pipe", tmp_path / "flow.toml"
    os.mkfifo(pipe)
    flow.write_text(FLOW.format(pipe=pipe), encoding="utf-8")
    with started("run", str(flow)) as process:
        run_id = read_until(process, "run_")[-1].strip()
        until(lambda: told("show", run_id)["counts"]["running"] == 1, every=0.05)
        said = drawn(tmp_path)
        assert has(said, "running · 2 nodes · ", "first ran, and goes on: ", "second waited for other nodes")
        assert has(said, "ffmpeg: 1 held by first: ", "capacity of the machine now")
    said = drawn(tmp_path)  # its host was killed, and what it started holds on
    assert has(said, "running · no host works on it", "first ran and was interrupted: ", "first – its host was gone")
    assert has(said, "its host died, and then no host worked on the run", "ffmpeg: 0 held, and perhaps 1 more by first")
    with started("resume", run_id) as process:
        read_until(process, "first  running")
        pipe.write_text("a word\n", encoding="utf-8")
        assert process.wait(60) == 0
    said = drawn(tmp_path)
    assert has(said, "completed · 2 nodes", "first ran and was interrupted, attempt 1", "first ran, attempt 2: ")
    assert has(said, "second ran: ", "completed, 2 tries")
    assert not has(said, "first ran, attempt 2, and goes on")
    hostler("timeline", run_id, "-o", str(tmp_path / "t.html"))
    assert "Waits for &lt;a word&gt;" in (tmp_path / "t.html").read_text(encoding="utf-8")
