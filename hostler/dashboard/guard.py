"""Who may look, and at what: a pure judgement of a request, made before anything is read for it.

Any program on this machine can reach a local port, and so can every web page that a browser shows, by a name that it
makes lead here. So the address holds a secret, the host must be the one that we printed, and nothing is let in from
other sites.
"""

import hmac
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from store.patterns import RUN_ID_PATTERN

ADDRESS: Final = "127.0.0.1"
NAMES: Final = (ADDRESS, "localhost")
GET: Final = "GET"
MAX_TARGET: Final = 4096
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What every answer carries: no other site may read, frame or embed it, and it may fetch nothing from elsewhere."""

_RUN: Final = re.compile(RUN_ID_PATTERN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Knock:
    """A request as it came, unchecked.

    Attributes:
        target: What stands in its first line after the method.
        host: Its `Host` headers.
        origin: Its `Origin` header.
        site: Its `Sec-Fetch-Site` header: how a browser says where the wish to ask came from.

    """

    method: str
    target: str
    host: tuple[str, ...]
    origin: str | None = None
    site: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """It is not let in.

    Attributes:
        status: Of HTTP.
        why: One line.

    """

    status: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """It comes from the browser that was just opened, by a word that is good for one time."""

    word: str


class Kind(StrEnum):
    """The pages."""

    RUNS = "runs"
    RUN = "run"
    NODE = "node"
    MACHINE = "machine"
    STYLE = "style.css"
    SCRIPT = "live.js"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is asked for.

    Attributes:
        run: Id of the run, of a page of one.
        node: Key of the node, of a page of one.
        before: Of the list of runs: only those older than that one.

    """

    kind: Kind
    run: str = ""
    node: str = ""
    before: str | None = None


_NOT_FOUND: Final = Refusal(status=404, why="there is no such page")


def judge(knock: Knock, *, port: int, token: str) -> Page | Entry | Refusal:
    """Say what a request is given.

    Args:
        knock: The request.
        port: Where we listen.
        token: The secret that stands in the address.

    """
    here = [f"{name}:{port}" for name in NAMES]
    if knock.method != GET:
        return Refusal(status=405, why="this dashboard is only looked at: GET")
    if len(knock.host) != 1 or knock.host[0].lower() not in here:
        return Refusal(status=421, why="this is not the host that you asked for")
    if knock.origin is not None and knock.origin.lower() not in [f"http://{name}" for name in here]:
        return Refusal(status=403, why="another site may not ask")
    if knock.site not in (None, "none", "same-origin"):
        return Refusal(status=403, why="another site may not ask")
    if not knock.target.startswith("/") or knock.target.startswith("//") or len(knock.target) > MAX_TARGET:
        return Refusal(status=400, why="that is not a path")
    parts = urlsplit(knock.target)
    segments = _segments(parts.path)
    if segments is None:
        return _NOT_FOUND
    if len(segments) == 2 and segments[0] == "open":
        return Entry(word=segments[1])
    if not hmac.compare_digest(segments[0].encode(), token.encode()):
        return Refusal(status=403, why="open the whole address that `hostler ui` printed")
    return _page(segments[1:], parts.query)


def _segments(path: str) -> list[str] | None:
    """Return the parts of a path, decoded; None for one that no page has, or that wants to climb out of its place."""
    try:
        parts = [unquote(part, errors="strict") for part in path[1:].split("/")]
    except UnicodeDecodeError:
        return None
    if any(part in (".", "..") or "/" in part or "\\" in part or not part.isprintable() for part in parts):
        return None
    return parts if all(parts[:-1]) else None


def _page(segments: list[str], query: str) -> Page | Refusal:
    match segments:
        case [] | [""]:
            before = parse_qs(query).get("before", [None])[0]
            if before is not None and not _RUN.fullmatch(before):
                return _NOT_FOUND
            return Page(kind=Kind.RUNS, before=before)
        case ["machine"]:
            return Page(kind=Kind.MACHINE)
        case [Kind.STYLE | Kind.SCRIPT as name]:
            return Page(kind=Kind(name))
        case ["runs", run] if _RUN.fullmatch(run):
            return Page(kind=Kind.RUN, run=run)
        case ["runs", run, "nodes", *key] if _RUN.fullmatch(run) and all(key):
            return Page(kind=Kind.NODE, run=run, node="/".join(key))
        case _:
            return _NOT_FOUND
