"""The pages of the dashboard: pure functions from what was read to HTML. All that is not ours is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final
from urllib.parse import quote

from hostler.pictures.page import safe
from hostler.pictures.timeline_words import brief
from hostler.views.columns import shortened
from hostler.views.events import event_line
from hostler.views.machine import cpus_text
from hostler.views.naming import claims_text, runs_text
from hostler.views.show import counts_text, failure_line, owner_lines, seconds_between
from hostler.views.terminal import duration, harmless
from hostler.views.waiting import Waiting
from hostler.views.why import Scene, Why, why_node, why_run
from hostres.claims import describe
from hostres.rows import ADMITTED, Row, Top
from store.contracts import Event, NodeRecord
from store.lifecycle import RESTING, RUN_FINAL, RUN_RESTING, RunStatus, Status
from store.plans import PlannedNode
from store.run_list import RunRow

KEY_LETTERS: Final = 60
EVENTS_SHOWN: Final = 60
GRAPH_OPEN: Final = 60
"""A graph of so many nodes at most is shown at once; one with more is opened by a click."""
GOOD: Final = frozenset({RunStatus.COMPLETED.value, Status.COMPLETED.value, ADMITTED})
GOING: Final = frozenset({RunStatus.RUNNING.value, Status.VERIFYING.value, Status.QUEUED.value})
RESTS: Final = frozenset(status.value for status in (*RESTING, *RUN_RESTING))
BAD: Final = frozenset(
    {RunStatus.FAILED.value, RunStatus.PARTIAL.value, RunStatus.INCOMPATIBLE.value, RunStatus.CANCELLED.value}
)


def document(title: str, body: str, *, root: str, every_ms: int, note: str = "") -> str:
    """Return a page.

    Args:
        title: What it shows, plain text.
        body: HTML.
        root: The path under which all pages are, with a slash at its end.
        every_ms: It asks again so often, milliseconds; 0 never.
        note: What is wrong, plain text.

    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{safe(title)} – Hostler</title>
<link rel="stylesheet" href="{root}style.css">
<script src="{root}live.js" defer></script>
</head>
<body>
<header><strong>Hostler</strong><a href="{root}">runs</a><a href="{root}machine">machine</a></header>
<p id="note" role="status">{safe(note)}</p>
<main data-every="{every_ms}">
{body}
</main>
<footer><p>Only to look at: what changes anything is typed in a terminal.</p></footer>
</body>
</html>
"""


def runs_page(rows: Sequence[RunRow], *, root: str, limit: int, damage: str) -> str:
    """Return the list of runs.

    Args:
        rows: Newest first.
        root: The path of all pages.
        limit: How many a page shows.
        damage: Why some are missing, plain text.

    """
    if not rows:
        return f"<h1>Runs</h1>{_damage(damage)}<p>There is no run here yet.</p>{command('hostler run WORKFLOW')}"
    lines = "".join(_run_row(row, root) for row in rows)
    older = f'<p><a href="{root}?before={rows[-1].run_id}">older</a></p>' if len(rows) == limit else ""
    return f"<h1>Runs</h1>{_damage(damage)}{_table(('Run', 'Workflow', 'Status', 'Created', 'Took', ''), lines)}{older}"


def _damage(text: str) -> str:
    return f'<p class="bad">{safe(text)}</p>' if text else ""


def _run_row(row: RunRow, root: str) -> str:
    took = brief(seconds_between(row.started_at, row.finished_at)) if row.started_at and row.finished_at else ""
    note = "imported" if row.imported else ""
    if not row.alive and not row.imported and row.status not in RUN_FINAL | RUN_RESTING:
        note = "no host works on it"
    return _row(
        f'<a href="{root}runs/{row.run_id}"><code>{row.run_id}</code></a>',
        safe(row.workflow),
        badge(row.status.value),
        safe(row.created_at),
        took,
        note,
    )


def run_page(
    scene: Scene, *, root: str, waits: Sequence[Waiting], timeline: str, graph: str, events: Sequence[Event]
) -> str:
    """Return the page of one run.

    Args:
        scene: What is known of it.
        root: The path of all pages.
        waits: What of it waits for a person.
        timeline: HTML.
        graph: HTML.
        events: The last ones of its log.

    """
    run, plan, nodes = scene.run, scene.plan, scene.nodes
    record = run.record
    planned = {node.key: node for node in plan.nodes}
    names = shortened([node.key for node in nodes], KEY_LETTERS)
    rows = "".join(
        _node_row(f"{root}runs/{record.run_id}", record.run_id, planned[node.key], node, names[node.key])
        for node in nodes
    )
    log = "\n".join(event_line(event) for event in events)
    return f"""<h1>{safe(record.workflow)}@{record.workflow_version} <code>{record.run_id}</code></h1>
<p>{badge(run.status.value)} {safe(counts_text(nodes))} · created {record.created_at} by {safe(record.principal)}</p>
{_paragraphs(owner_lines(run))}
{_waits(waits, imported=run.imported)}
{_why_it_stands(why_run(scene), waits)}
<h2>Timeline</h2>
<div class="picture" tabindex="0">{timeline}</div>
<h2>Nodes</h2>
{_table(("Node", "Status", "Tries", "Took", "Runs", "Failure"), rows)}
<details id="graph"{" open" if len(nodes) <= GRAPH_OPEN else ""}><summary>Graph</summary>
<div class="picture" tabindex="0">{graph}</div></details>
<details id="log" open><summary>The last of its log</summary>
<pre tabindex="0">{escape(log)}</pre>
<p>All of it:</p>{command(f"hostler events {record.run_id}")}</details>"""


def _waits(waits: Sequence[Waiting], *, imported: bool) -> str:
    if not waits:
        return ""
    entries = "".join(
        f"<li><code>{safe(each.node)}</code>: {safe(each.message)}"
        + ("" if imported else "".join(map(command, (each.command, *each.otherwise))))
        + "</li>"
        for each in waits
    )
    return f"<h2>Waits for a person</h2><p>Type one of these in a terminal:</p><ul>{entries}</ul>"


def _why_it_stands(why: Why, waits: Sequence[Waiting]) -> str:
    """Return why the run stands where it stands, unless what waits for a person has said it."""
    said = why.command is not None and why.command in {each.command for each in waits}
    return "" if said else f"<h2>Why it stands where it stands</h2>{_why(why)}"


def _why(why: Why) -> str:
    return f"<p>{safe(why.text)}</p>" + "".join(map(command, why.commands))


def _node_row(at: str, run_id: str, planned: PlannedNode, node: NodeRecord, name: str) -> str:
    took = brief(seconds_between(node.started_at, node.finished_at)) if node.started_at and node.finished_at else ""
    link = f"{at}/nodes/{quote(node.key)}"
    return _row(
        f'<a href="{safe(link)}" title="{safe(node.key)}"><code>{safe(name)}</code></a>'
        + (f"<br>{safe(planned.label)}" if planned.label else ""),
        badge(node.status.value),
        str(node.attempt),
        took,
        safe(runs_text(planned.executor, planned.policy)),
        safe(failure_line(run_id, node)) if node.failure is not None and node.status is not Status.COMPLETED else "",
    )


def node_page(scene: Scene, key: str, *, root: str, logs: Mapping[str, str]) -> str:
    """Return the page of one node.

    Args:
        scene: What is known of its run.
        key: The node.
        root: The path of all pages.
        logs: The last part of each stream of its last attempt, by name.

    """
    run_id, node, planned = scene.run_id, scene.node(key), scene.planned(key)
    facts = {
        "runs": runs_text(planned.executor, planned.policy),
        "effect": planned.policy.effect.value,
        "claims": claims_text(planned.policy.claims),
        "after": ", ".join(planned.dependencies) or "nothing",
        "attempt": str(node.attempt),
        "started": node.started_at or "",
        "finished": node.finished_at or "",
        "plan": node.plan_sha256 or "",
    }
    rows = "".join(f'<tr><th scope="row">{name}</th><td>{safe(text)}</td></tr>' for name, text in facts.items() if text)
    streams = "".join(
        f'<details id="{safe(name)}" open><summary>{safe(name)}</summary>'
        f'<pre tabindex="0">{escape(harmless(text, lines=True))}</pre></details>'
        for name, text in logs.items()
    )
    label = f"<p>{safe(planned.label)}</p>" if planned.label else ""
    return f"""<h1><code>{safe(node.key)}</code></h1>{label}
<p>{badge(node.status.value)} of <a href="{root}runs/{run_id}"><code>{run_id}</code></a></p>
{_why(why_node(scene, key))}
<table><tbody>{rows}</tbody></table>
<h2>What its processes wrote last</h2>
{streams or "<p>Nothing.</p>"}
{command(f"hostler logs {run_id} {node.key}")}"""


def machine_page(top: Top) -> str:
    """Return what the machine does now, as `hostler top` tells it."""
    resources = "".join(_resource(name, top) for name in sorted({*top.capacity, *top.used}))
    tickets = "".join(_ticket(row, top) for row in top.tickets)
    head = ("Ticket", "State", "Claims", "Name", "For", "Processes, and what it waits for")
    listed = _table(head, tickets) if tickets else "<p>Nothing is admitted and nothing waits.</p>"
    turn = "" if top.turnaround_s is None else f"<p>A turn takes {brief(top.turnaround_s)} on average.</p>"
    return f"<h1>Machine</h1>{_table(('Resource', 'Used', 'Capacity', ''), resources)}<h2>Tickets</h2>{listed}{turn}"


def _resource(name: str, top: Top) -> str:
    used, capacity = top.used.get(name, 0), top.capacity.get(name, 0)
    meter = f'<meter min="0" max="{max(capacity, used, 1)}" value="{used}">{used} of {capacity}</meter>'
    return _row(safe(name), str(used), str(capacity), meter)


def _ticket(row: Row, top: Top) -> str:
    cpus = [cpus_text(row.cpus, top.capacity)] if row.cpus is not None else []
    processes = [f"{process.pid} {process.command}" for process in row.processes]
    waits = [f"waits for {reason}" for reason in row.blocked_by]
    return _row(
        str(row.ticket),
        badge(row.state) + (" (stopped)" if row.stopped else ""),
        safe(describe(row.claims)),
        safe(row.name),
        duration(row.for_s),
        "<br>".join(map(safe, (*cpus, *processes, *waits))),
    )


def refused_page(what: str, todo: str) -> str:
    """Return what is shown in place of a page that there is not.

    Args:
        what: What is wrong, plain text.
        todo: What to do, plain text.

    """
    return f"<h1>Not shown</h1><p>{safe(what)}; {safe(todo)}</p>"


def badge(status: str) -> str:
    """Return a status with a colour that says of what kind it is; the word says it too."""
    kinds = (("good", GOOD), ("rests", RESTS), ("bad", BAD), ("going", GOING))
    kind = next((name for name, those in kinds if status in those), "")
    return f'<span class="status {kind}">{safe(status)}</span>'


def command(line: str) -> str:
    """Return a command to type; one click selects all of it."""
    return f'<code class="command">{safe(line)}</code>'


def _paragraphs(lines: Iterable[str]) -> str:
    return "".join(f"<p>{safe(line)}</p>" for line in lines)


def _table(head: Sequence[str], rows: str) -> str:
    cells = "".join(f'<th scope="col">{text}</th>' for text in head)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table>"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
