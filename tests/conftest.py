"""What every test gets: an environment of its own, and no way to leave anything running."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

# Whoever starts the tests in the background of a shell, or by nohup, has these ignored, and so would all processes of ours.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

GRACE_S = 15.0
HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test its own home and machine folder, and none of the caller's settings."""
    for name in list(os.environ):
        if name.startswith("HOSTLER_") or name == "NO_COLOR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOSTLER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOSTLER_MACHINE_DIR", str(tmp_path / "machine"))
    monkeypatch.setenv("HOSTLER_CONFIG", str(tmp_path / "config.toml"))
    if "hostler.commands.teletype" in sys.modules or "hostler" in sys.modules:  # nobody answers on ours
        monkeypatch.setattr("hostler.commands.teletype.DEVICE", os.devnull)


@pytest.fixture(autouse=True)
def no_leaked_actors(own_places: None) -> Iterator[None]:
    """Fail the test that leaves an actor behind; stop it, so that the next one starts clean."""
    yield
    if "pykka" not in sys.modules:
        return
    import pykka  # noqa: PLC0415 (most tests need none)

    left = pykka.ActorRegistry.get_all()
    if left:
        names = ", ".join(sorted(ref.actor_class.__name__ for ref in left))
        pykka.ActorRegistry.stop_all(block=True, timeout=GRACE_S)
        pytest.fail(f"actors left behind: {names}")


@pytest.fixture(autouse=True)
def no_leaked_processes(own_places: None) -> Iterator[None]:
    """Fail the test that leaves a process behind; end it, so that the next one starts clean.

    Found are children of this process, and whatever was started with this test's machine folder, wherever it has
    gone since.
    """
    before = set(psutil.Process().children(recursive=True))
    marker = f"HOSTLER_MACHINE_DIR={os.environ['HOSTLER_MACHINE_DIR']}".encode()
    yield
    found = {*psutil.Process().children(recursive=True), *_started_with(marker)} - before
    _, left = psutil.wait_procs([process for process in found if not _is_helper(process)], timeout=GRACE_S)
    if left:
        names = ", ".join(sorted(_command(child) for child in left))
        for child in left:
            child.kill()
        psutil.wait_procs(left, timeout=GRACE_S)
        pytest.fail(f"processes left behind: {names}")


def _started_with(marker: bytes) -> Iterator[psutil.Process]:
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError, psutil.Error):
            if marker in environ.read_bytes().split(b"\0") and environ.parent.name != str(os.getpid()):
                yield psutil.Process(int(environ.parent.name))


def _is_helper(process: psutil.Process) -> bool:
    return any(helper in _command(process) for helper in HELPERS)


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:
        return f"pid {process.pid}"
