"""A worker: takes work until there is none for a while, says that it lives while it works, and brings the result.

    python examples/worker.py ann

The name is its own. It does what waits for workers in any run, as in examples/agents.toml.
"""

import sys
import time

from hostler import HostlerError, Work, Worker

IDLE_S = 10.0


def do(work: Work) -> dict:
    """Do the work: here, nothing but to say so."""
    steps = work.input["steps"] if isinstance(work.input, dict) else []
    (work.workspace / "notes.txt").write_text("\n".join(str(step) for step in steps), encoding="utf-8")
    return {
        "status": "success",
        "summary": f"did {len(steps)} steps",
        "usage": {"tokens": 10 * len(steps), "cost": "0.02"},
        "output": {"steps_done": len(steps), "notes": str(work.workspace / "notes.txt")},
    }


def work_as(name: str) -> None:
    """Take work until there is none for a while."""
    worker = Worker(name, lease_s=30)
    idle_since = time.monotonic()
    while time.monotonic() - idle_since < IDLE_S:
        work = worker.next()
        if work is None:
            time.sleep(0.2)
            continue
        with worker.beating(work) as pulse:
            result = do(work)
        if not pulse.lost.is_set():
            try:
                print(f"{work.key}: {worker.submit(work, result)}")
            except HostlerError as error:  # somebody cancelled it, or took it away
                print(error, file=sys.stderr)
        idle_since = time.monotonic()


def main(words: list[str]) -> int:
    """Work as who is named; return the exit code."""
    if len(words) != 1:
        print("worker: give it a name, as in: worker.py ann", file=sys.stderr)
        return 2
    try:
        work_as(*words)
    except HostlerError as error:  # a name that cannot be, a store that cannot be read
        print(f"worker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
