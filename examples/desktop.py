"""A program with a window, in small: it makes films small in the background, beside a running service or without one.

    python examples/desktop.py

and then type, as one would click:

    start talk.mp4        shows progress while it works; a second film waits for its turn on the machine
    start talk.mp4 2      no faster than twice the film, to have time to look
    cancel                stops what runs, with all its processes
    quit                  leaves at once; a service goes on with what is not done, else this program when asked again

Lines on standard input stand for clicks, printed lines for what a window would show. The thread that owns the window
only ever takes messages from a queue; in Qt that queue is a signal, in tkinter it is looked at by `after`.
"""

import queue
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from hostler import Build, Host, HostlerError, NodeChanged, NodeHandle, Progress, Run, RunLeft, RunLost, workflow
from hostler.operations.media import transcode


@workflow("small-film", version=1)
def small_film(build: Build, path: str, filters: str) -> dict[str, NodeHandle]:
    film = build.call(
        transcode, key="film", input={"path": path, "width": 160, "preset": "veryfast", "filters": filters}
    )
    return {"film": film["path"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Clicked:
    """Somebody wants something."""

    words: list[str]


class Window:
    """What a person sees and clicks; everything here happens on one thread."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._inbox: queue.Queue[object] = queue.Queue()
        self._runs: dict[str, Run] = {}
        self._shown: dict[str, int] = {}

    def run(self) -> None:
        """Take messages until somebody quits."""
        threading.Thread(target=self._read_clicks, daemon=True).start()
        while True:
            match self._inbox.get():
                case Clicked(words=["start", path, *speed]):
                    self._start(path, f"realtime=speed={speed[0]}" if speed else "null")
                case Clicked(words=["cancel"]):
                    for run in self._runs.values():
                        run.cancel("clicked")
                case Clicked(words=["quit"]):
                    return
                case Clicked(words=words):
                    self._show(f"? {' '.join(words)}")
                case (str(name), report):
                    self._heard(name, report)

    def _start(self, path: str, filters: str) -> None:
        """Begin, or go on with what an earlier start of this program began under the same name."""
        if path in self._runs:
            return self._show(f"{path} is being made small already")
        try:
            key = f"small-film {Path(path).absolute()} {Path(path).stat().st_mtime_ns}"
            run = self._host.submit(small_film, path=path, filters=filters, submission_key=key, entrusted=True)
        except (HostlerError, OSError) as error:
            return self._show(str(error))
        self._runs[path] = run
        self._show(f"{path}: {run.run_id}")
        run.subscribe(lambda report: self._inbox.put((path, report)))  # on a thread of the host: hand it on, no more
        return None

    def _heard(self, name: str, report: object) -> None:
        match report:
            case Progress(fraction=float(fraction)) if int(fraction * 10) > self._shown.get(name, -1):
                self._shown[name] = int(fraction * 10)
                self._show(f"{name}: {fraction:.0%}")
            case NodeChanged(record=node):
                self._show(f"{name}: {node.key} {node.status}")
            case RunLeft(status=status):
                self._done(name, status)
            case RunLost(error=error):  # as when the service works on it: that is one of the ways to be done
                self._done(name, error.what)

    def _done(self, name: str, how: str) -> None:
        self._shown.pop(name, None)
        self._runs.pop(name, None)
        self._show(f"{name}: {how}")

    def _read_clicks(self) -> None:
        for line in sys.stdin:
            if line.strip():
                self._inbox.put(Clicked(words=line.split()))
        self._inbox.put(Clicked(words=["quit"]))

    def _show(self, text: str) -> None:
        print(text, flush=True)


def main(words: list[str]) -> int:
    """Open the window; leaving it hands back what runs. Return the exit code."""
    if words:
        print("desktop: it takes no words; start it, then type what its first lines say", file=sys.stderr)
        return 2
    try:
        with Host() as host:
            Window(host).run()
    except HostlerError as error:  # a configuration that is wrong, a store that cannot be read
        print(f"desktop: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
