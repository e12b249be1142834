"""What verification found: JSON and text."""

from typing import Any

from hostler.views.terminal import harmless
from store.verification.findings import Note, Problem, Verdict


def problem_json(problem: Problem) -> dict[str, Any]:
    """Return one thing that is wrong."""
    shape: dict[str, Any] = {"code": problem.fault.value, "table": problem.table}
    if problem.node is not None:
        shape["node"] = problem.node
    if problem.event is not None:
        shape["event"] = problem.event
    shape["what"] = problem.what
    return shape


def _note_json(note: Note) -> dict[str, Any]:
    return {"code": note.absence.value, "node": note.node, "path": note.path, "what": note.what}


def verdict_json(verdict: Verdict, *, file: str | None) -> dict[str, Any]:
    """Return what was said of one run.

    Args:
        verdict: The verdict.
        file: The archive that it is in, if it is in one.

    """
    shape: dict[str, Any] = {} if file is None else {"file": file}
    return shape | {
        "run_id": verdict.run_id,
        "ok": not verdict.problems,
        "status": None if verdict.status is None else verdict.status.value,
        "nodes": verdict.nodes,
        "events": verdict.events,
        "grants": verdict.grants,
        "problems": [problem_json(problem) for problem in verdict.problems],
        "files": [_note_json(note) for note in verdict.notes],
    }


def verdict_text(verdict: Verdict, *, file: str | None) -> str:
    """Return what was said of one run, for people; one line if all is well."""
    name = verdict.run_id if file is None else f"{file}: {verdict.run_id}"
    if verdict.problems:
        return harmless("\n".join(f"{name}: {_place(problem)}" for problem in verdict.problems), lines=True)
    counts = f"{verdict.nodes} nodes, {verdict.events} events, {verdict.grants} grants"
    lines = [f"{name}: verified; {verdict.status}, {counts}"]
    lines += [f"  {note.path}: [{note.absence}] {note.what}" for note in verdict.notes]
    if verdict.notes:
        lines.append("  what is stored is sound; a file may have been moved or changed by whoever owns it")
    return harmless("\n".join(lines), lines=True)


def _place(problem: Problem) -> str:
    words = [problem.table]
    if problem.node is not None:
        words.append(f"node {problem.node}")
    if problem.event is not None:
        words.append(f"event {problem.event}")
    return f"{', '.join(words)}: [{problem.fault}] {problem.what}"


def damage(verdict: Verdict, *, file: str | None) -> str:
    """Return in one line that a run is damaged, with the first thing that is wrong with it."""
    name = f"run {verdict.run_id}" if file is None else f"run {verdict.run_id} in {file}"
    more = f" and {len(verdict.problems) - 1} more" if len(verdict.problems) > 1 else ""
    return f"{name} is damaged: {_place(verdict.problems[0])}{more}"
