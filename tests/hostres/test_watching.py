"""Who is told to watch what another has left: it reads no more than that, and sees to it that others move."""

import os

from hostres.listing import DOZING
from hostres.locks import LOOK, WATCH
from hostres.ticket import Ticket
from tests.hostres.crowd import Crowd, told


def test_who_is_only_to_watch_reads_whom_it_watches_and_tells_nobody(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    holder, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    heir, next_one = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    behind = strangers.ask({"x": 1})
    holder.lock.close()
    assert crowd.look(heir)
    read.clear()
    assert told(next_one)
    assert not crowd.look(next_one)
    assert read == []
    assert not told(behind)


def new_chief(crowd: Crowd, strangers: Crowd, holds: dict[str, int]) -> tuple[Ticket, Ticket]:
    """Return a holder, and who is told to watch it, as another has taken over what was beside it."""
    one, holder = crowd.ask({"x": 1}), crowd.ask(holds)
    first, chief = crowd.ask({"x": 1}), strangers.ask({"x": 1})
    one.lock.close()
    assert crowd.look(first)
    assert told(chief)
    return holder, chief


def test_who_finds_a_holder_dead_as_it_begins_to_watch_it_reads_no_record_but_that(
    crowd: Crowd, strangers: Crowd, read: list[int]
) -> None:
    holder, chief = new_chief(crowd, strangers, {"x": 1})
    behind = crowd.ask({"x": 1, "z": 1})
    holder.lock.close()
    read.clear()
    assert strangers.look(chief)
    assert behind.number not in read


def test_who_finds_a_holder_dead_as_it_begins_to_watch_it_thinks_of_what_is_left_over(
    crowd: Crowd, strangers: Crowd
) -> None:
    holder, chief = new_chief(crowd, strangers, {"x": 1, "y": 1})
    gains = crowd.ask({"y": 1})
    holder.lock.close()
    assert strangers.look(chief)
    assert told(gains)
    assert crowd.look(gains)


def test_who_finds_a_holder_dead_as_it_begins_to_watch_it_thinks_of_priorities(crowd: Crowd, strangers: Crowd) -> None:
    holder, chief = new_chief(crowd, strangers, {"x": 1})
    gains = crowd.ask({"x": 1}, priority=1)
    holder.lock.close()
    assert not strangers.look(chief)
    assert told(gains)
    assert crowd.look(gains)


def test_who_is_only_to_watch_thinks_of_all_if_one_that_it_watched_is_gone(crowd: Crowd, strangers: Crowd) -> None:
    """As when a holder ends and is swept by who looks unprompted just before the chief looks for another reason."""
    one, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    heir = crowd.ask({"x": 1})
    second = strangers.ask({"x": 2})
    one.lock.close()
    assert not strangers.machine.look(second, unprompted=True)
    assert told(heir)
    heir.lock.drain()  # nor does it hang on that alone
    os.write(heir.lock.fd, WATCH)
    assert crowd.machine.look(heir)


def dozes(crowd: Crowd, ticket: Ticket) -> bool:
    return ticket.entry(DOZING) in crowd.machine.tickets.scan().waiting


def test_who_is_only_to_watch_keeps_in_mind_who_does_not_move(crowd: Crowd) -> None:
    crowd.ask({"y": 1, "z": 1})  # so the chief is not its heir
    one, _ = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    chief, silent = crowd.ask({"y": 1}), crowd.ask({"x": 1})
    one.lock.close()
    assert not crowd.look(chief)
    assert told(silent)
    crowd.ask({})  # it goes at once, and the chief is to watch it
    assert told(chief)
    assert not crowd.look(chief)
    crowd.now_s = 2.0
    crowd.machine.look(chief, unprompted=True)
    assert dozes(crowd, silent)


def test_who_is_only_to_watch_takes_note_of_who_has_given_a_sign_of_life(crowd: Crowd) -> None:
    crowd.ask({"x": 2})
    chief, second = crowd.ask({"x": 1}), crowd.ask({"x": 1})
    crowd.machine.look(second, unprompted=True)
    assert told(chief)
    assert not crowd.look(chief)
    os.write(second.lock.fd, WATCH)
    assert not crowd.look(second)
    crowd.now_s = 2.0
    os.write(chief.lock.fd, LOOK)  # in this very moment
    crowd.machine.look(second, unprompted=True)
    assert not dozes(crowd, chief)


def test_who_follows_a_chief_that_has_told_others_sees_to_it_that_they_move(crowd: Crowd) -> None:
    holder, _ = crowd.ask({"x": 2}), crowd.ask({"y": 1})
    chief, next_one, silent = crowd.ask({"x": 1}), crowd.ask({"y": 1}), crowd.ask({"x": 1})
    holder.lock.close()
    assert crowd.look(chief)
    assert told(silent)
    assert not crowd.look(next_one)
    crowd.now_s = 2.0
    crowd.machine.look(next_one, unprompted=True)
    assert dozes(crowd, silent)


def test_who_goes_while_somebody_told_does_not_move_leaves_that_to_the_next(crowd: Crowd) -> None:
    one, _, holder = crowd.ask({"x": 1}), crowd.ask({"x": 1}), crowd.ask({"y": 1, "z": 1})
    chief, next_one, silent = crowd.ask({"y": 1}), crowd.ask({"y": 1, "z": 1}), crowd.ask({"x": 1})
    one.lock.close()
    assert not crowd.look(chief)
    assert told(silent)
    holder.lock.close()
    assert crowd.look(chief)
    assert not crowd.look(next_one)
    crowd.now_s = 2.0
    crowd.machine.look(next_one, unprompted=True)
    assert dozes(crowd, silent)
