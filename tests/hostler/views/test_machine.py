"""The machine as lines for people."""

import os
from typing import Any

from hostler.views.machine import cpus_text, machine_lines
from hostres.affinity import machine_cpus
from hostres.holders import Holder
from hostres.rows import Blocked, Row, Top

CAPACITY = {"a": 1, "b": 2, "x": 3}


def row(ticket: int, state: str, **more: Any) -> Row:
    given = {"claims": {"x": 1}, "name": "", "pid": 7, "processes": (), "since": "", "for_s": 12.2, **more}
    return Row(ticket=ticket, state=state, owner=given.pop("owner", os.geteuid()), **given)


def lines(*rows: Row, **more: Any) -> list[str]:
    return machine_lines(Top(capacity=CAPACITY, used={"x": 1}, tickets=rows, **more))


def test_what_is_idle_takes_one_line() -> None:
    shown = lines(row(1, "waiting", claims={"b": 1}))
    assert [line.split() for line in shown[:3]] == [["RESOURCE", "USED", "CAPACITY"], ["b", "0", "2"], ["x", "1", "3"]]
    assert shown[3] == "idle: a 1"
    assert machine_lines(Top(capacity=CAPACITY, used={}, tickets=()))[0] == "idle: a 1, b 2, x 3"


def test_what_is_in_use_of_a_resource_that_was_taken_away_is_shown() -> None:
    shown = machine_lines(Top(capacity={"a": 1}, used={"a": 0, "gone": 2}, tickets=()))
    assert shown[1].split() == ["gone", "2", "0"]


def test_a_ticket_tells_for_how_long_its_cpus_and_its_processes() -> None:
    holder = Holder(pid=9, command="sleep 600")
    shown = "\n".join(lines(row(4, "admitted", name="one", cpus=(0, 2), processes=(holder,))))
    assert "     4 admitted x=1 (one), for 12 s, asked by pid 7\n" in shown
    assert "on CPUs 0, 2\n" in shown
    assert "held by pid 9: sleep 600" in shown


def test_a_waiter_tells_why_it_waits_and_for_whom_anything_is_kept() -> None:
    why = (
        Blocked(resource="x", wanted=2, free=1, tickets=(4, 5), reserved_for=5),
        Blocked(resource="y", wanted=1, free=0, tickets=(5,), reserved_for=5),
        Blocked(resource="z", wanted=1, free=0, tickets=()),
    )
    shown = "\n".join(lines(row(6, "waiting", blocked_by=why, stopped=True), row(5, "waiting", patient=True)))
    assert "6 waiting (stopped) x=1" in shown
    assert "waits for x: wants 2, 1 free, held by ticket 4, kept for ticket 5\n" in shown
    assert "waits for y: wants 1, 0 free, kept for ticket 5\n" in shown
    assert "waits for z: wants 1, 0 free, held by ticket nobody" in shown
    assert shown.count("what it needs is kept for it") == 1


def test_a_revoked_ticket_a_part_of_another_and_a_foreign_one_are_told_apart() -> None:
    holder = Holder(pid=9, command="sleep 600")
    shown = "\n".join(
        lines(row(1, "admitted", inside=3), row(2, "revoked", processes=(holder,)), row(3, "admitted", owner=12345))
    )
    assert "1 admitted x=1, inside ticket 3, for" in shown
    assert "still held open by pid 9: sleep 600" in shown
    assert "asked by pid 7 of user id 12345" in shown


def test_nothing_in_it_can_command_a_terminal() -> None:
    shown = lines(row(1, "admitted", name="\x1b[31m\n", processes=(Holder(pid=1, command="\x07\u202e"),)))
    assert all(line.isprintable() for line in shown)


def test_why_a_ticket_has_no_cpus_of_its_own_is_told() -> None:
    assert cpus_text((1,), {"cpu": 1}) == "on CPU 1"
    assert "more than the machine's" in cpus_text((), {"cpu": machine_cpus() + 1})
    assert "too few" in cpus_text((), {"cpu": 1})
