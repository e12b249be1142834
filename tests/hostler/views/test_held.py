"""Who has what a node waits for."""

from typing import Any

import pytest

from hostler.views.held import held
from hostres.rows import Blocked, Row

RUN = "run_01jd0000000000000000000000"


def row(ticket: int, state: str, name: str, *why: Blocked) -> Row:
    return Row(ticket=ticket, state=state, claims={}, name=name, pid=1, processes=(), since="", blocked_by=why)


def why(resource: str = "whisper", **more: Any) -> Blocked:
    return Blocked(resource=resource, **{"wanted": 1, "free": 0, "tickets": (), **more})


HOLDERS = (row(1, "admitted", f"{RUN} text"), row(2, "admitted", "talk\x1b[2J"), row(3, "admitted", ""))


@pytest.mark.parametrize(
    ("reasons", "told"),
    [
        ((), "is about to be admitted"),
        ((why(tickets=(1,)),), "waits for whisper, held by text"),
        ((why(tickets=(2, 3)),), r"waits for whisper, held by talk\x1b[2J, ticket 3"),
        ((why(tickets=(1, 2, 3, 9)),), r"waits for whisper, held by text, talk\x1b[2J and 2 more"),
        ((why("cpu", wanted=4, free=2, tickets=(9,)),), "waits for cpu (2 of 4 free), held by ticket 9"),
        ((why(tickets=(1, 3), reserved_for=3),), "waits for whisper, kept for ticket 3"),
        (
            (why("memory-mb", wanted=900, free=300, lacks_memory=True),),
            "waits for memory-mb (300 of 900 free), which others really use",
        ),
        ((why("a"), why("b"), why("c")), "waits for a, b, and 1 more"),
    ],
)
def test_the_holders_are_named_as_this_run_knows_them(reasons: tuple[Blocked, ...], told: str) -> None:
    rows = [*HOLDERS, row(7, "waiting", f"{RUN} other", *reasons), row(8, "waiting", "else", why())]
    assert held(RUN, rows) == {"other": told}
