"""The demo and its workflow, on clips made here; the real media and the words are scripts/demo's own business."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hostler.operations.support import clip, needs_av, needs_ffmpeg, needs_whisper

ROOT = Path(__file__).parents[2]


def run(*argv: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, check=False
    )


def hostler(*words: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "hostler", *words)


def shown() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(hostler("show", "-", "--json").stdout)
    return answer


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--nope"], "demo: there is no option --nope"), (["--out"], "demo: --out needs a folder")],
)
def test_wrong_use_is_refused_before_anything_is_installed(words: list[str], said: str) -> None:
    """Code 2, the reason and the usage."""
    refused = run(str(ROOT / "scripts" / "demo"), *words)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr.splitlines() == [said, "usage: scripts/demo [--out DIR] [--no-whisper]"]


def test_help_is_free() -> None:
    """Without making an environment."""
    helped = run(str(ROOT / "scripts" / "demo"), "--help")
    assert helped.returncode == 0
    assert "--no-whisper" in helped.stdout


def test_the_example_plans_what_its_docstring_says() -> None:
    """Keys and claims; compiling touches no media."""
    planned = hostler("plan", "examples/podcast.py", "-i", "source=talk.mp4", "-i", "out=done", "--format", "json")
    assert planned.returncode == 0, planned.stderr
    nodes = {node["key"]: node for node in json.loads(planned.stdout)["nodes"]}
    assert set(nodes) == {"probe", "audio", "text", "video", "subtitled", "publish/talk.mp4", "publish/talk.srt"}
    whisper = [key for key, node in nodes.items() if "whisper" in json.dumps(node.get("claims", node.get("policy")))]
    assert whisper == ["text"]


@pytest.mark.media
@needs_ffmpeg
@needs_av
def test_two_programs_share_the_machine_and_the_demo_says_so(tmp_path: Path) -> None:
    """Twice over, since people start it again; the talk is there already, so nothing is fetched."""
    out = tmp_path / "out dir"
    talk = out / "media" / "talk.mp4"
    talk.parent.mkdir(parents=True)
    clip(talk, seconds=3)
    made_ns = talk.stat().st_mtime_ns
    for _ in range(2):
        told = run(sys.executable, "scripts/demo.py", f"--out={out}", "--no-whisper")
        assert told.returncode == 0, told.stdout + told.stderr
        lines = told.stdout.splitlines()
        assert lines[-1] == (
            "demo: both runs completed; no step needed whisper; no claim exceeded its capacity; "
            f"see {out}/one and {out}/two"
        )
        assert any(line.startswith("two/video ") for line in lines)
    assert talk.stat().st_mtime_ns == made_ns
    for name in ("one", "two"):
        assert sorted(path.name for path in (out / name).iterdir()) == ["talk.mp4", "timeline.svg"]


@pytest.mark.media
@needs_ffmpeg
@needs_av
def test_a_failed_run_fails_the_demo(tmp_path: Path) -> None:
    """A file stands where the results of the second program belong."""
    out = tmp_path / "out"
    talk = out / "media" / "talk.mp4"
    talk.parent.mkdir(parents=True)
    clip(talk, seconds=1)
    (out / "two").touch()
    told = run(sys.executable, "scripts/demo.py", f"--out={out}", "--no-whisper")
    assert told.returncode == 1
    assert "demo: failed: two ended with exit code 1" in told.stdout.splitlines()[-1]


@pytest.mark.media
@needs_ffmpeg
@needs_whisper
def test_the_whole_workflow_publishes_a_subtitled_video(tmp_path: Path) -> None:
    """Every node of it, with the real engine; a tone has no words, which is no fault."""
    clip(tmp_path / "-a:b.mp4", seconds=2)
    done = hostler(
        "run", str(ROOT / "examples" / "podcast.py"), "-i", f"source={tmp_path}/-a:b.mp4", "-i", f"out={tmp_path}/out"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    view = shown()
    assert view["status"] == "completed"
    assert view["outputs"]["video"] == str(tmp_path / "out" / "talk.mp4")
    assert sorted(os.listdir(tmp_path / "out")) == ["talk.mp4", "talk.srt"]
    looked = run(sys.executable, "hostler/operations/av_probe.py", f"file:{tmp_path}/out/talk.mp4")
    kinds = [stream["codec_type"] for stream in json.loads(looked.stdout)["streams"]]
    assert kinds == ["video", "audio", "subtitle"]
