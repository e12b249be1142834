"""`complete`: what the last word may become, one a line; the scripts of `completion` ask it.

It is silent whatever is wrong, makes nothing, and imports next to nothing: it runs at every Tab.
"""

import contextlib
import os
import re
import sys
from types import SimpleNamespace
from typing import Final

from hostler.completing.candidates import FILES, PROGRAMS, Candidate, Offers, candidates
from hostler.completing.vocabulary import read_vocabulary
from hostler.state_folder import state_folder
from store.glance import glimpsed_nodes, glimpsed_runs

MOST_RUNS: Final = 100
BREAKS: Final = ("=", ":")
TICKET: Final = re.compile(r"[a-z]\.([0-9]{1,15})\.")


def read_plain(words: list[str]) -> SimpleNamespace:
    """Take the words as they are: the parser is not needed.

    Args:
        words: The shell, then the words after the program's name.

    """
    return SimpleNamespace(shell=words[0] if words else "", words=words[1:])


def run(args: SimpleNamespace) -> int:
    """Print the candidates; nothing if anything is wrong."""
    with contextlib.suppress(Exception):
        words, dropped = rejoined(args.words) if args.shell == "bash" else (args.words, "")
        lines = [_line(args.shell, one).removeprefix(dropped) for one in _candidates(words)]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
    return 0


def rejoined(words: list[str]) -> tuple[list[str], str]:
    """Undo what Readline does, which breaks words at = and :.

    Args:
        words: As bash has them.

    Returns:
        The words as they were typed, and how much of the last one bash takes for other words.

    """
    whole: list[str] = []
    glue = False
    for word in words:
        breaks = word in BREAKS
        if whole and (glue or breaks):
            whole[-1] += word
        else:
            whole.append(word)
        glue = breaks
    last = whole[-1] if whole else ""
    return whole, last if glue else last[: len(last) - len(words[-1] if words else "")]


def _candidates(words: list[str]) -> list[Candidate]:
    database = state_folder(os.environ) / "runs.db"
    offers = Offers(
        runs=lambda beginning: glimpsed_runs(database, beginning, limit=MOST_RUNS),
        nodes=lambda run_id: glimpsed_nodes(database, run_id),
        resources=_resources,
        tickets=_tickets,
        schemas=_schemas,
    )
    return candidates(words, read_vocabulary(), offers)


def _line(shell: str, candidate: Candidate) -> str:
    word, about = candidate
    if word in (FILES, PROGRAMS) or not about or shell == "bash":
        return word
    if shell == "zsh":
        return "{}:{}".format(word.replace(":", "\\:"), about)
    return f"{word}\t{about}"


def _resources() -> list[str]:
    from hostres.claims import default_capacity  # noqa: PLC0415  only where a resource may stand
    from hostres.folders import machine_folder  # noqa: PLC0415
    from hostres.settings import machine_settings  # noqa: PLC0415
    from hostres.state import StateFile  # noqa: PLC0415

    found = {*default_capacity()}
    with contextlib.suppress(Exception):
        found |= {*machine_settings(os.environ).capacity}
    with contextlib.suppress(Exception):
        state = StateFile(str(machine_folder(os.environ))).known()
        found |= {*state.capacity} if state is not None else set()
    return sorted(found)


def _tickets() -> list[str]:
    from hostres.folders import machine_folder  # noqa: PLC0415  only where a ticket may stand

    names = os.listdir(machine_folder(os.environ) / "t")  # noqa: PTH208 - names are what is wanted
    return sorted({match[1] for name in names if (match := TICKET.match(name))}, key=int)


def _schemas() -> list[str]:
    from hostler.output_schemas import commands  # noqa: PLC0415  only where a schema may stand

    return commands()
