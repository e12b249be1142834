"""The live screen of the machine: what it shows, and what keys do."""

import itertools
from typing import Any

import pytest
from rich.cells import cell_len

from hostler.views.keys import keys_of
from hostler.views.top import screen
from hostler.views.top_state import Look, Machine, Mode, Quit, Sort, TakeBack, Worker, ordered, pressed
from hostres.holders import Holder
from hostres.procfs import Process
from hostres.rows import Blocked, Row, Top
from hostres.usage import Member
from tests.hostler.views import screens

ME, OTHER = 1000, 4_000_000_000
MB = 1 << 20


def row(ticket: int, state: str, **more: Any) -> Row:
    given = {"claims": {"cpu": 1}, "name": "", "pid": ticket * 10, "processes": (), "since": "", "owner": ME, **more}
    return Row(ticket=ticket, state=state, **given)


def worker(pid: int, command: str, *, cpu: float = 0.0, memory: int = 0, depth: int = 0, **more: Any) -> Worker:
    process = Process(pid=pid, start_time=1.0, resident_bytes=memory, state=more.pop("state", "R"))
    return Worker(member=Member(process=process, cpu=cpu, depth=depth, **more), command=command)


def machine(*rows: Row, **more: Any) -> Machine:
    capacity = {"cpu": 4, "ffmpeg": 2, "local-io": 2, "memory-mb": 6400, "whisper": 1}
    used = dict.fromkeys(capacity, 0)
    for one in rows:
        if one.state == "admitted" and one.inside is None:
            for name, units in one.claims.items():
                used[name] += units
    given: dict[str, Any] = {"cpus": 4, "load": (1.25, 0.5, 0.05), "memory_mb": (1200, 8000), "user": ME, **more}
    return Machine(top=Top(capacity=capacity, used=used, tickets=rows, turnaround_s=95.0), **given)


BUSY = machine(
    row(
        12,
        "admitted",
        claims={"cpu": 2, "ffmpeg": 1},
        name="run_01jd0000000000000000000000 encode",
        for_s=185.0,
        cpus=(0, 1),
        processes=(Holder(pid=121, command="x"), Holder(pid=122, command="x")),
    ),
    row(13, "admitted", claims={"whisper": 1}, name="talk\x1b[2J", for_s=4.0),
    row(14, "admitted", claims={"cpu": 1}, name="part", for_s=3.0, inside=12),
    row(17, "admitted", claims={"ffmpeg": 1}, for_s=7300.0, owner=OTHER),
    row(
        15,
        "waiting",
        claims={"whisper": 1},
        name="日本語" * 12,
        for_s=61.0,
        patient=True,
        blocked_by=(Blocked(resource="whisper", wanted=1, free=0, tickets=(13,)),),
    ),
    row(
        16,
        "waiting",
        claims={"cpu": 4},
        for_s=9.0,
        stopped=True,
        blocked_by=(Blocked(resource="cpu", wanted=4, free=2, tickets=(12,)),),
    ),
    row(18, "waiting", claims={"cpu": 4}, for_s=2.0, priority=5),
    row(9, "revoked", claims={"whisper": 1}, for_s=50.0),
    workers={
        12: (
            worker(121, "/usr/bin/ffmpeg -nostdin -i talk.mp4", cpu=1.37, memory=210 * MB),
            worker(122, "sh -c 'x\x07'", cpu=0.02, memory=600 << 10, depth=1),
            worker(11, "hostler serve", cpu=0.5, memory=90 * MB, shared=True),
        ),
        13: (worker(131, "whisper", cpu=0.98, memory=1300 * MB, state="T"),),
        9: (worker(91, "sleep 600", memory=MB),),
    },
)


def lines(seen: Machine, look: Look, *, width: int = 100, height: int = 40) -> list[str]:
    return [line.plain for line in screen(seen, look, width=width, height=height)]


@pytest.mark.parametrize(
    ("name", "look", "width", "height"),
    [
        ("top", Look(), 100, 34),
        ("top-selected", Look(selected=15, sort=Sort.CPU), 80, 24),
        ("top-narrow", Look(processes=False), 40, 24),
        ("top-confirm", Look(selected=12, mode=Mode.CONFIRM), 60, 20),
        ("top-help", Look(mode=Mode.HELP), 80, 24),
    ],
)
def test_the_screen_is_as_it_was_looked_at(name: str, look: Look, width: int, height: int) -> None:
    screens.check(name, lines(BUSY, look, width=width, height=height), width=width, height=height)


def test_an_idle_machine_is_told_as_one() -> None:
    shown = lines(machine(), Look())
    assert "idle" in shown[0]
    assert "nothing is admitted and nothing waits" in shown


def test_it_fits_any_screen_and_nothing_in_it_can_command_a_terminal() -> None:
    looks = (Look(), Look(selected=15), Look(mode=Mode.HELP), Look(selected=12, mode=Mode.CONFIRM), Look(said="x" * 99))
    for look, width, height in itertools.product(looks, (1, 7, 20, 47, 59, 69, 200), (1, 2, 3, 6, 12, 60)):
        shown = lines(BUSY, look, width=width, height=height)
        assert len(shown) <= height
        assert all(cell_len(line) <= width for line in shown)
        assert all(line.isprintable() for line in shown)


@pytest.mark.parametrize("ticket", [1, 2, 250, 499, 500])
def test_the_selected_one_of_500_is_on_the_screen_and_what_is_not_is_counted(ticket: int) -> None:
    many = machine(*(row(number, "waiting", claims={"cpu": 4}) for number in range(1, 501)))
    shown = lines(many, Look(selected=ticket), width=80, height=24)
    (there,) = [line for line in shown if line.startswith("▸")]
    assert there.split()[1] == str(ticket)
    left_out = [int(line.split()[1]) for line in shown if "more lines" in line]
    listed = [line for line in shown if " waiting " in line and "wanted" not in line and "hostler top" not in line]
    assert sum(left_out) + len(listed) == 500


def test_holders_stand_as_sorted_and_waiters_as_they_go() -> None:
    def tickets(sort: Sort) -> list[int]:
        return [one.ticket for one in ordered(BUSY, sort)]

    waiters = [15, 18, 16, 9]  # the patient one, the one of priority, the rest; then what is taken back
    assert tickets(Sort.TICKET) == [12, 13, 14, 17, *waiters]
    assert tickets(Sort.AGE) == [17, 12, 13, 14, *waiters]
    assert tickets(Sort.CPU) == [12, 13, 14, 17, *waiters]
    assert tickets(Sort.MEMORY) == [13, 12, 14, 17, *waiters]


def test_a_process_of_several_tickets_counts_for_none() -> None:
    (first, *_) = BUSY.top.tickets
    assert BUSY.cpu_of(first) == pytest.approx(1.39)
    assert BUSY.memory_of(first) == 210 * MB + (600 << 10)


def typed(*keys: str, look: Look | None = None) -> tuple[Look, object]:
    look, order = look or Look(), None
    for key in keys:
        look, order = pressed(look, key, BUSY)
    return look, order


def test_keys_move_the_cursor_and_stop_at_the_ends() -> None:
    assert typed("down")[0].selected == 12
    assert typed("down", "j", "up")[0].selected == 12
    assert typed("up")[0].selected == 9
    assert typed("home", "up")[0].selected == 12
    assert typed("end", "page-down")[0].selected == 9
    assert typed("home", "page-down")[0].selected == 9
    assert typed("down", "escape")[0].selected is None
    assert pressed(Look(), "down", machine())[0].selected is None


def test_keys_sort_hide_help_and_quit() -> None:
    assert [typed(key)[0].sort for key in "NTPM"] == list(Sort)
    assert typed("s")[0].sort is Sort.AGE
    assert typed("s", "s", "s", "s")[0].sort is Sort.TICKET
    assert not typed("t")[0].processes
    assert typed("t", "t")[0].processes
    assert typed("?")[0].mode is Mode.HELP
    assert typed("?", "s")[0] == Look()
    assert typed("q")[1] == typed("?", "q")[1] == Quit()
    assert typed("é") == (Look(), None)


def test_a_ticket_is_taken_back_only_when_it_is_ones_own_and_confirmed() -> None:
    asked, order = typed("down", "c")
    assert (asked.mode, order) == (Mode.CONFIRM, None)
    for other in ("n", "q", "c", "escape", "down", " "):
        look, order = typed(other, look=asked)
        assert (look.mode, look.said, order) == (Mode.LIST, "nothing was taken back", None)
    _, order = typed("y", look=asked)
    assert order == TakeBack(row=BUSY.top.tickets[0])


@pytest.mark.parametrize(
    ("ticket", "said"), [(None, "select a ticket first"), (17, "another user's"), (9, "is taken back already")]
)
def test_what_cannot_be_taken_back_is_not_asked_about(ticket: int | None, said: str) -> None:
    look, order = typed("c", look=Look(selected=ticket))
    assert said in look.said
    assert (look.mode, order) == (Mode.LIST, None)


def test_a_ticket_that_went_before_the_answer_is_not_taken_back() -> None:
    look, order = pressed(Look(selected=12, mode=Mode.CONFIRM), "y", machine())
    assert (look.mode, look.said, order) == (Mode.LIST, "ticket 12 has gone by itself", None)


def test_bytes_of_a_terminal_are_keys_by_name() -> None:
    assert keys_of(b"q\x1b[A\x1bOB\x1b[5~x") == ["q", "up", "down", "page-up", "x"]
    assert keys_of(b"\x1b") == ["escape"]
    assert keys_of(b"\x1b[") == ["escape", "["]
    assert keys_of(b"\x1b[200~y\x1b[1;5Cn") == ["y", "n"]
    assert keys_of("é\xff".encode("latin-1")) == []
    assert keys_of(b"") == []
