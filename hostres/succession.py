"""The short way of a hand-over: who takes all that has come free need not know what others want.

Decided from the names in `t/` and from what was read before, as a free slot makes haste. Whatever is not
plain here goes the long way, which thinks of all: another kind of event, another order than that of arrival, a ticket
inside another.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from hostres.listing import DOZING, HEIR, HOLDING, INSIDE, WAITING, is_number


class Front(NamedTuple):
    """What the oldest waiter finds when it wakes.

    Attributes:
        holders: Names of those that hold, or did, each with its key.
        next_one: Name of whoever is the oldest after it, "" if nobody else waits.

    """

    holders: Mapping[str, str]
    next_one: str


def front(names: Iterable[str], me: int, watched: Collection[str]) -> Front | None:
    """Return what a waiter finds if it is plainly the oldest and all that it watches are there, else None.

    Args:
        names: The names in `t/`.
        me: The number of the waiter, which waits for the machine and does not doze.
        watched: Keys of the tickets that it watches.

    """
    holders: dict[str, str] = {}
    next_number, next_one, seen = 0, "", 0
    for name in names:
        letter = name[0]
        if letter == HOLDING:
            parts = name.split(".")
            if len(parts) not in (3, 4) or not is_number(parts[1]):
                return None
            key = holders[name] = f"{parts[1]}.{parts[2]}"
            seen += key in watched
        elif letter == WAITING:
            parts = name.split(".")
            if len(parts) != 3 or not (name.isascii() and parts[1].isdecimal() and parts[2].isalnum()):
                return None  # no ticket, or one with a priority, or inside another one
            number = int(parts[1])
            if number < me:
                return None
            if number > me and (number < next_number or not next_one):
                next_number, next_one = number, name
        elif letter in (INSIDE, DOZING):
            return None
        elif letter == HEIR:
            number_ = name.split(".")[1:2]
            if number_ and is_number(number_[0]) and int(number_[0]) < me:
                return None  # it goes first, or holds already
    # a watched one that is not there any more was found dead by somebody else: more has come free
    return Front(holders, next_one) if seen == len(watched) else None
