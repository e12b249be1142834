"""A host of a soak: it goes on with every run of the store that nobody works on, until it is told to stop."""

import argparse
import faulthandler
import signal
import sys
import threading

from hostler import Host
from hostler.config import Config
from hostler.hosted_run import Run
from hostres.errors import Code, HostlerError
from store.home import Home
from store.lifecycle import RUN_FINAL
from store.reader import Reader
from store.service import service_alive

LOOK_S = 0.03
GRACE_S = 0.3
LATE_S = 60.0
"""One that was told to stop and has not ended by then says where each of its threads is."""


def work(jobs: int, stop: threading.Event) -> list[str]:
    """Take up what nobody works on and what is left to no living service; return what is not handed back in the end."""
    config = Config.load()
    with Host(config=config, jobs=jobs) as host, Reader.open(Home.open(config.home, create=True)) as reader:
        mine: dict[str, Run] = {}
        print("ready", flush=True)
        while not stop.wait(LOOK_S):
            for row in reader.runs():
                if row.status in RUN_FINAL or row.alive or row.run_id in mine:
                    continue
                if reader.is_entrusted(row.run_id) and service_alive(reader.home):
                    continue
                try:
                    mine[row.run_id] = host.resume(row.run_id)
                except HostlerError as error:
                    if error.code is not Code.CONFLICT:
                        raise
            mine = {run_id: run for run_id, run in mine.items() if not run.left}
        host.drain(grace_s=GRACE_S)
    return [run_id for run_id, run in mine.items() if not run.left]


def main() -> int:
    """Read the command line; SIGTERM, and the end of whoever started it, stop it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=3)
    args = parser.parse_args()
    stop = threading.Event()

    def told_to_stop(*_: object) -> None:
        faulthandler.dump_traceback_later(LATE_S)
        stop.set()

    signal.signal(signal.SIGTERM, told_to_stop)
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    for run_id in (kept := work(args.jobs, stop)):
        print(f"{run_id} was not handed back", file=sys.stderr)
    return 1 if kept else 0


if __name__ == "__main__":
    sys.exit(main())
