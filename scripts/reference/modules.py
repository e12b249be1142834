"""The page that says of every module what it is for, in groups of what belongs together."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from scripts.reference.tables import table

ROOT: Final = Path(__file__).parents[2]
HEAD: Final = """\
# Modules

*Written from the first lines of the modules by `scripts/docs`.*

What each module is for, in the order in which one would read them; [Architecture](../architecture.md) says how they
play together. Packages import only what stands further down on this page. Tests lie in the folder of `tests/` that is
called like the package.
"""

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "hostler": {
        "A host in a program": (
            "host origin hosted_run submissions stored_runs stored_code asking settlements scenes progress_notes "
            "run_pictures log_streams principal config state_folder retention_settings"
        ),
        "From what people write to a plan": (
            "authoring annotations building handles drafts written_values agent_nodes command_nodes templates "
            "workflows graph_files graph_keys documents yaml_documents inputs reading compiler checks ordering schemas "
            "json_schemas limits faults refusals"
        ),
        "The code of a run": (
            "loading being_loaded registry own_names own_modules bundles code_space code_at places run_code matching "
            "worker worker_code"
        ),
        "Repositories": "git git_worktrees git_integration worktrees",
        "The background service": (
            "service service_watch service_log service_record service_settings service_installation service_units "
            "notify"
        ),
        "Workers outside": "work_client",
        "The command line": (
            "__main__ command_line standard_streams interrupts troubles json_format configuration_keys authority "
            "authority_keys"
        ),
    },
    "actors": {
        "Actors, and what they share": (
            "supervisor supervision giving_up scheduler run_store commit_answer host_resources authorization timer "
            "services shell inbox mailbox threads"
        ),
        "What they say": "messages host_messages actions outcomes",
        "One attempt, from its dispatch to its outcome": (
            "attempts assignment executor control work operations calling answers planner errands leftovers"
        ),
        "What the code of a node gets": (
            "context program command_outputs workspaces worktrees dependencies publication bounds secrets "
            "evidence_file pace pulse heartbeats"
        ),
        "Code in a process of its own": (
            "worker conversation worker_messages frames remote_host inherited_lease"
        ),
        "Agents": "agent_requests agent_work agent_outcomes",
        "What went wrong": "failures blame",
    },
    "store": {
        "What is planned and recorded": (
            "contracts plans exact_plans policy terms workspace publication references words program_words values "
            "records fields patterns misfits amounts ids clock lazy_dataclass limits"
        ),
        "What may happen": (
            "lifecycle transitions activation retrying revisions shapes"
        ),
        "Who may do what": (
            "rules rule_names approvals receipts envelopes delegation evidence secrets"
        ),
        "What it may cost": "budgets ledgers",
        "Agents and workers outside": "agent_results leases work work_reader",
        "The folder, who lives in it, and its disk": (
            "home hosts service turns room content usage commit_floor"
        ),
        "The database": (
            "database database_file open_files schema upgrade versions faults log_size lock_holders sync_count row_ids "
            "snapshots"
        ),
        "Writing": (
            "run_store transactions staged writing held heads chain creation claiming requests grant_rows receipt_rows "
            "ledger_rows workspace_claims"
        ),
        "Looking": "reader run_view run_list run_log glance proving orphans",
    },
    "hostres": {
        "Asking and holding": (
            "coordinator poller lease nesting claims claim_policy memory affinity patience errors arguments"
        ),
        "The machine folder, and the lock under which all is decided": (
            "machine folders open_folders sharing gate locks descriptors state profile decisions replacement "
            "regular_files clock platforms beginning logger"
        ),
        "Tickets, and who goes next": (
            "tickets ticket issuing listing queue seating usher sweeping turnaround"
        ),
        "The short ways": "arrival succession heirs",
        "Waiting, and who is woken": "watching place stillness pulse summons rousing",
        "Looking at the machine": (
            "top rows survey inspection revocation capacities usage attribution suggestions"
        ),
        "The configuration": (
            "configuration keys machine_keys settings toml_places toml_text"
        ),
        "Programs and their trees": (
            "process exits children command programs spawning posix_spawn streams logs masking trees procfs holders "
            "reaping leftovers niceness heartbeat"
        ),
    },
}  # fmt: skip
"""Package → heading → those of its modules that belong there, in the order of reading."""


def modules_page() -> str:
    """Return the page.

    Raises:
        ValueError: A module stands nowhere in `GROUPS`, or twice, or is not there.

    """
    return "\n".join([HEAD, *(part for package in GROUPS for part in _package(package))])


def _package(package: str) -> Iterator[str]:
    folder = ROOT / package
    placed = [name for names in GROUPS[package].values() for name in names.split()]
    there = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    if wrong := sorted({name for name in placed if placed.count(name) > 1} | (there ^ set(placed))):
        raise ValueError(
            f"{package}: {', '.join(wrong)} must stand once in GROUPS in scripts/reference/modules.py, if it is there"
        )
    yield f"## {package}\n\n{summary(folder / '__init__.py')}\n"
    for heading, names in GROUPS[package].items():
        yield f"### {heading}\n\n{_table(folder / f'{name}.py' for name in names.split())}"
    for below in sorted(path.parent for path in folder.glob("*/__init__.py")):
        modules = sorted(path for path in below.glob("*.py") if path.stem != "__init__")
        yield f"### {package}/{below.name}\n\n{summary(below / '__init__.py')}\n\n{_table(modules)}"


def _table(modules: Iterable[Path]) -> str:
    rows = [(f"`{path.stem}`", summary(path)) for path in modules]
    return table("module", "what it is for", rows=rows)


def summary(module: Path) -> str:
    """Return the first line of the docstring of a module."""
    return (ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or "").partition("\n")[0]
