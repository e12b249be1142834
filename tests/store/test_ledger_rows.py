"""Ledgers in the store: refused where they are not what the log adds up to, and found by verification."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from hostres.errors import Code, HostlerError
from store.amounts import Amounts, Budget
from store.contracts import EventKind
from store.ledgers import Change, Entry, Ledger, apply
from store.lifecycle import Status
from store.plans import RunLimits
from store.proving import numbers, prove
from store.reader import Reader
from store.transactions import Claimed, NewEvent
from store.values import Domain, digest_bytes
from tests.store.support import STAMP, Setting, assert_refused, moved, plan_of

RESERVED = Entry(node="a", attempt=1, change=Change.RESERVE, amount=Amounts(cost=Decimal("0.1"), tasks=1))
SPENT = Entry(node="a", attempt=1, change=Change.SPEND, amount=Amounts(cost=Decimal("0.1")))


@pytest.fixture
def claimed(setting: Setting) -> Claimed:
    """Return a run in which node a runs, has reserved, and has spent all of it."""
    plan = plan_of({"a": [], "b": []}).model_copy(update={"limits": RunLimits(budget=Budget(cost=Decimal(1)))})
    claimed = setting.claimed(plan)
    running = moved(claimed.nodes[0], Status.RUNNING, attempt=1, started_at=STAMP.at)
    ledger = apply(apply(Ledger(node="a"), RESERVED), SPENT)
    events = [
        NewEvent(kind=EventKind.SPENDING, node="a", attempt=1, data=entry.to_data()) for entry in (RESERVED, SPENT)
    ]
    setting.accept(claimed, started=True, nodes=(running,), events=tuple(events), ledgers=(ledger,))
    return claimed


def again(setting: Setting, claimed: Claimed) -> Claimed:
    return setting.store.claim(claimed.record.run_id, setting.identity, again=True)


def found(setting: Setting) -> list[str]:
    """Return what verification finds wrong with the ledgers; the fixture's log tells of nothing else."""
    problems = prove(setting.home, *numbers(setting.home)).problems
    return [problem.fault.value for problem in problems if problem.table == "ledgers"]


def change(setting: Setting, key: str, **fields: Any) -> None:
    """Change the stored ledger of a node and its digest, past all checks."""
    connection = setting.store._connection
    (data,) = connection.execute("SELECT record FROM ledgers WHERE node = ?", (key,)).fetchone()
    record = orjson.dumps({**orjson.loads(data), **fields}, option=orjson.OPT_SORT_KEYS)
    connection.execute(
        "UPDATE ledgers SET record = ?, sha256 = ? WHERE node = ?",
        (record, digest_bytes(Domain.RECORD, record), key),
    )


def test_a_ledger_comes_back_as_it_was_stored(setting: Setting, claimed: Claimed) -> None:
    found = again(setting, claimed).ledgers
    assert [(one.node, one.spent) for one in found] == [("a", SPENT.amount)]
    with Reader.open(setting.home) as reader:
        assert reader.ledgers(claimed.record.run_id) == reader.run(claimed.record.run_id).ledgers == found


AMOUNTS = {"cost": "0.1", "retries": 0, "seconds": "0", "tasks": 0, "tokens": 0}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"spent": {**AMOUNTS, "cost": "-0.1"}}, "a number from 0 is wanted"),
        ({"spent": {**AMOUNTS, "tasks": -1}}, "greater than or equal to 0"),
        ({"spent": {**AMOUNTS, "euros": 1}}, "Extra inputs"),
        ({"spent": {**AMOUNTS, "cost": "0.2"}}, "it is not what the log adds up to"),
        ({"reserved": None}, "it is not what the log adds up to"),
        ({"node": "b"}, "it is of another node"),
    ],
)
def test_a_negative_unknown_or_inconsistent_entry_is_refused_naming_it(
    setting: Setting, claimed: Claimed, fields: dict[str, Any], why: str
) -> None:
    """G9: also where somebody has mended the digest."""
    change(setting, "a", **fields)
    with pytest.raises(HostlerError) as caught:
        again(setting, claimed)
    assert_refused(caught.value, Code.INVALID_DATA, f"ledger of node a of run {claimed.record.run_id}", why)
    assert len(found(setting)) == 1


def test_a_tenth_written_otherwise_is_a_tenth(setting: Setting, claimed: Claimed) -> None:
    """G9: 0.10 and 0.1 are equal."""
    change(setting, "a", spent={**AMOUNTS, "cost": "0.10"})
    assert again(setting, claimed).ledgers[0].spent == SPENT.amount


def test_a_ledger_that_is_gone_is_missed(setting: Setting, claimed: Claimed) -> None:
    setting.store._connection.execute("DELETE FROM ledgers")
    with pytest.raises(HostlerError) as caught:
        again(setting, claimed)
    assert_refused(caught.value, Code.INVALID_DATA, "ledger of node a", "it is missing")
    assert found(setting) == ["missing"]


def test_what_is_reserved_for_a_node_that_does_not_run_is_inconsistent(setting: Setting, claimed: Claimed) -> None:
    blocked = moved(claimed.nodes[0], Status.BLOCKED, attempt=1, started_at=STAMP.at)
    setting.accept(claimed, nodes=(blocked,))
    with pytest.raises(HostlerError) as caught:
        again(setting, claimed)
    assert_refused(
        caught.value, Code.INVALID_DATA, "ledger of node a", "reserves something for a node that does not run"
    )


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"change": "settle", "amount": {}}, "settles what it has not reserved"),
        ({"change": "reserve", "amount": {}}, "reserves beside what is reserved"),
        ({"change": "take"}, "Input should be"),
    ],
)
def test_a_log_that_tells_of_impossible_spending_is_refused(
    setting: Setting, claimed: Claimed, entry: dict[str, Any], why: str
) -> None:
    setting.accept(claimed, events=(NewEvent(kind=EventKind.SPENDING, node="a", attempt=2, data=entry),))
    with pytest.raises(HostlerError) as caught:
        again(setting, claimed)
    assert caught.value.code is Code.INVALID_DATA
    assert any(problem.fault == "log-mismatch" for problem in prove(setting.home, *numbers(setting.home)).problems), why


def test_a_ledger_of_no_node_of_the_run_is_not_written(setting: Setting, claimed: Claimed) -> None:
    assert_refused(setting.write(claimed, ledgers=(Ledger(node="zz"),)), Code.NOT_FOUND, "no node zz")
