"""A timeline as a page that stands alone: the picture, and all of it as a table for those who do not see it."""

from html import escape
from typing import Final

from hostler.pictures.paper import clean
from hostler.pictures.timeline import Bar, Phase, Timeline
from hostler.pictures.timeline_drawing import timeline_svg
from hostler.pictures.timeline_words import brief, outcome, summary

STYLE: Final = """
body { margin: 2rem auto; max-width: 78rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; color: #1b1f24;
  background: #fff; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; }
figure { margin: 1rem 0; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #c4cad1; text-align: left; vertical-align: top; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
"""

_HEAD: Final = (
    ("Node", ""),
    ("What became of it", ""),
    ("Began at (s)", "number"),
    ("Waited", "number"),
    ("Ran", "number"),
)


def timeline_html(timeline: Timeline) -> str:
    """Return the page; it fetches nothing and runs no script.

    Raises:
        HostlerError: The drawing library is not installed (unavailable).

    """
    svg = timeline_svg(timeline).partition("\n")[2]  # without the XML declaration, which HTML does not know
    rows = "\n".join(_row(bar) for bar in timeline.bars)
    head = "".join(f'<th scope="col" class="{kind}">{text}</th>' for text, kind in _HEAD)
    title = safe(timeline.title)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>Timeline</h1>
<p>{safe(summary(timeline))}. Rest the pointer on a bar for what it tells.</p>
<figure tabindex="0" aria-label="timeline">
{svg}</figure>
<h2>The same as a table</h2>
<table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</main>
</body>
</html>
"""


def safe(text: str) -> str:
    """Return *text* as it may stand in a page, also inside an attribute."""
    return escape(clean(text))


def _row(bar: Bar) -> str:
    began = next((span.start_s for span in bar.spans if span.phase not in (Phase.DEPENDENCIES, Phase.ROOM)), None)
    waited = sum(span.length_s for span in bar.spans) - bar.ran_s
    name = f"<code>{safe(bar.key)}</code>" + (f" {safe(bar.label)}" if bar.label else "")
    return (
        f'<tr><th scope="row">{name}</th><td>{safe(outcome(bar))}</td>'
        f'<td class="number">{"" if began is None else f"{began:.3f}"}</td>'
        f'<td class="number">{brief(waited)}</td><td class="number">{brief(bar.ran_s)}</td></tr>'
    )
