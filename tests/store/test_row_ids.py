"""Rows of a run lie together and in order, and no number from outside puts one among those of another run."""

import sqlite3
from contextlib import closing

import pytest

from store.archive.tables import TABLES, parse
from store.row_ids import IN_RUN, PLACES, next_id, of_run, row_id
from store.schema import MIGRATIONS

BY_ID = [table for table in TABLES if table.by_id]


def test_no_place_is_among_the_rows_of_another_run() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for place in (0, 1, PLACES - 1):
            row = connection.execute(
                f"SELECT ?2 >> 32, ?2 & 4294967295, {IN_RUN.replace('id', '?2')}", (7, row_id(7, place))
            ).fetchone()
            assert row == (7, place, 1)
    for place in (-1, PLACES):
        with pytest.raises(ValueError, match=str(place)):
            row_id(7, place)


@pytest.mark.parametrize("table", [table for table in BY_ID if table.place], ids=lambda table: table.name)
@pytest.mark.parametrize("place", [-1, PLACES, 1 << 62])
def test_an_archive_cannot_name_a_place_that_no_row_has(table: object, place: int) -> None:
    """Such a row would be one of another run."""
    (found,) = [each for each in BY_ID if each is table]
    texts = dict.fromkeys(found.texts, "x")
    head = {**texts, found.place or "": place}
    line = str(head).replace("'", '"').encode()[:-1] + b', "record":{}}'
    with pytest.raises(ValueError):
        parse(found, line.replace(b', "record"', b',"record"'))


def test_what_is_read_of_a_run_is_found_by_its_id_and_in_order() -> None:
    """No look at a run goes through the rows of others, or sorts."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for migration in MIGRATIONS:
            for statement in migration:
                connection.execute(statement)
        for table in BY_ID:
            for query in (
                of_run("*", table.name),
                of_run("id", table.name, only="length(sha256) > ?") + " DESC LIMIT 1",
            ):
                values = (1, 2) if "> ?" in query else (1,)
                (step,) = connection.execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
                assert "USING INTEGER PRIMARY KEY" in step[3], (query, step)


def test_a_row_behind_the_last_one_of_its_run_is_the_next() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE some (id INTEGER PRIMARY KEY)")

        def behind() -> int:
            return connection.execute(f"SELECT {next_id('some')}", (3,)).fetchone()[0]

        assert behind() == row_id(3, 1)
        connection.executemany("INSERT INTO some VALUES (?)", [(row_id(3, 4),), (row_id(4, 9),), (row_id(2, 7),)])
        assert behind() == row_id(3, 5)
