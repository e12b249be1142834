"""What `gc` took away: JSON and text."""

from typing import Any, Final

from hostler.views.terminal import harmless
from store.retention.collection import Collected
from store.retention.strays import Doubt

_WHY: Final = {
    Doubt.YOUNG: "it changed too short a time ago",
    Doubt.NO_RUNS: "there is no run in this store; if runs.db was lost, put a copy back",
    Doubt.OLDER_THAN_STORE: "it is older than every run in this store; if runs.db was replaced, put the old one back",
    Doubt.ROWS_LOST: "rows of runs were lost; see `hostler verify --all`",
}


def collected_json(done: Collected, *, dry_run: bool) -> dict[str, Any]:
    """Return what was taken away, or would be.

    Args:
        done: What.
        dry_run: Whether nothing was touched.

    """
    return {
        "dry_run": dry_run,
        "runs": done.runs,
        "plans": done.plans,
        "bundles": done.bundles,
        "leftovers": done.leftovers,
        "bytes": {"files": done.file_bytes, "database": done.database_bytes, "reserved": done.reserved_bytes},
        "failed": done.failed,
        "kept": {why.value: number for why, number in sorted(done.kept.items())},
    }


def collected_text(done: Collected, *, dry_run: bool) -> str:
    """Return it for people."""
    verb = "would remove" if dry_run else "removed"
    about = "about " if dry_run else ""
    counted = (
        (len(done.runs), "run"),
        (done.plans, "plan"),
        (done.bundles, "code bundle"),
        (done.leftovers, "leftover"),
    )
    things = [f"{number} {name}{'' if number == 1 else 's'}" for number, name in counted]
    total = done.file_bytes + done.database_bytes
    lines = [f"{verb} {', '.join(things)}; {about}{total:,} bytes"]
    if dry_run:
        lines += [f"  {run_id}" for run_id in done.runs]
    if done.reserved_bytes:
        lines.append(f"{done.reserved_bytes:,} bytes stay in the database for later runs: programs are working with it")
    lines += [f"kept {number} that no run names: {_WHY[why]}" for why, number in sorted(done.kept.items())]
    lines += [f"not removed: {text}" for text in done.failed]
    return harmless("\n".join(lines), lines=True)
