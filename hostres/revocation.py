"""Taking back a ticket: a person's decision about a descriptor that leaked.

The ticket's FIFO moves from `t/` to `revoked/`, where it counts for nothing. Files and names are the same there, so
that its lock still says who lives, and `/proc` who holds it open.
"""

# Plain strings, as for the tickets.
# ruff: noqa: PTH104, PTH208

import contextlib
import os
from pathlib import Path
from typing import Final

from hostres.clock import boot_ns
from hostres.errors import Code, HostlerError, unavailable
from hostres.folders import private_folder
from hostres.gate import Gate
from hostres.listing import HOLDING, Entry, Listing, is_number
from hostres.locks import NEW, is_held, poke
from hostres.tickets import Record, TicketFolder

FOLDER: Final = "revoked"


def revoke(folder: Path, number: int) -> None:
    """Take back a ticket: its units are free, and its owner will find that it does not own it any more.

    Args:
        folder: The machine folder.
        number: The ticket.

    Raises:
        HostlerError: `not-found`: no such ticket lives; `unsafe-state`, `unavailable`.

    """
    missing = HostlerError(Code.NOT_FOUND, f"there is no ticket {number}", "see `hostler top` for those there are")
    try:
        os.lstat(folder)
    except FileNotFoundError:
        raise missing from None
    folder = private_folder(folder, create=False)
    tickets = TicketFolder(str(private_folder(folder / "t")))
    taken = TicketFolder(str(private_folder(folder / FOLDER)))
    try:
        with Gate.at(f"{folder}/gate"):
            _sweep(taken)
            if any(number == entry_number for entry_number, _ in _fifos(taken)):
                _mend(taken, number)
                return
            listing = tickets.scan()
            tickets.disown(listing)  # from here on each of those that live has one name, which nobody else changes
            for outlived in listing.outlived:
                tickets.sweep_name(outlived)
            name = next(
                (name for ticket, name in _fifos(tickets) if ticket == number and is_held(tickets.path(name))), None
            )
            if name is None:
                raise missing
            taken.write(number, _record(tickets, number))
            for waiter in concerned(listing, number):
                poke(tickets.path(waiter.name))
            poke(tickets.path(name))
            os.rename(tickets.path(name), taken.path(name))
    except OSError as error:
        raise unavailable(f"ticket {number} could not be taken back", error) from error


def is_revoked(folder: str, number: int) -> bool:
    """Return whether a ticket was taken back whose owner still lives.

    Args:
        folder: The machine folder.
        number: The ticket.

    """
    with contextlib.suppress(OSError):
        return any(number == taken for taken, _ in _fifos(TicketFolder(f"{folder}/{FOLDER}")))
    return False


def concerned(listing: Listing, number: int) -> list[Entry]:
    """Return whom it concerns that a ticket is taken back, as no hang-up tells them while somebody has it open.

    Args:
        listing: What `t/` holds.
        number: The ticket.

    """
    entry = next((entry for entry in listing.entries if entry.number == number), None)
    if entry is None:
        return []  # what is not called like a ticket stands nowhere
    line = listing.line(listing.host(entry))
    first = line.awake[:2]  # the chief counts again; it may be dying, so also who follows
    behind = [waiter for waiter in line.awake if waiter.number > number][:1] if entry in line.waiting else []
    inside = listing.inside[number].waiting if entry.state == HOLDING and number in listing.inside else []
    return sorted({*first, *behind, *inside} - {entry})


def _mend(taken: TicketFolder, number: int) -> None:
    try:
        taken.read(number)
    except HostlerError:
        taken.sweep_name(f"{number}.json")
        taken.write(number, _record(taken, number))


def _record(tickets: TicketFolder, number: int) -> Record:
    try:
        return tickets.read(number)
    except HostlerError:  # damaged: taking it back is the mend
        return Record(claims={}, keys=(), asked_boot_ns=boot_ns())


def _fifos(tickets: TicketFolder) -> list[tuple[int, str]]:
    """Return number and name of every ticket, whatever its state."""
    names = ((name.split("."), name) for name in os.listdir(tickets.place) if not name.startswith(NEW))
    return [(int(parts[1]), name) for parts, name in names if len(parts) >= 3 and is_number(parts[1])]


def _sweep(taken: TicketFolder) -> None:
    """Remove what nobody has open any more."""
    living = set()
    for number, name in _fifos(taken):
        with contextlib.suppress(HostlerError):
            if not is_held(taken.path(name)):
                taken.sweep_name(name)
                continue
        living.add(f"{number}.json")
    for name in os.listdir(taken.place):
        if name.endswith(".json") and name not in living:
            taken.sweep_name(name)
