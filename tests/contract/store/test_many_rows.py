"""Rows are given to a statement in whatever number: none is lost, none is there twice, and what belongs together is counted so."""

import asyncio
import sqlite3
from typing import Any

import pytest

from ksana.domain.errors import KsanaError
from ksana.store.sql.rows import MOST_VARIABLES, SIZES, Statement, columns, in_values, insert_rows, update_by_id
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import Tx
from tests.contract.store.conftest import BACK_ENDS

MOST = SIZES[-1]
NUMBERS = [1, 2, 5, 64, 65, MOST - 1, MOST, MOST + 1, 2 * MOST + 3]
_EVENT = columns(type="text", at="int", subject="text", data="text")
_TOLD = Statement("SELECT t.id, t.at, t.data FROM events t WHERE t.subject = 'many' ORDER BY t.id")
_COUNTED = Statement(
    "SELECT count(*) AS number, max(r.at) AS latest FROM {rows} {join} events t {by_id} ON t.id = r.id",
    columns(id="int", at="int"),
)
_OF_ALL_KINDS = "SELECT t.id, t.at, t.data, NULL AS absent FROM events t WHERE t.subject = 'many' ORDER BY t.id"
_INSERT = insert_rows("events", _EVENT)
_MOVE = update_by_id("events", columns(id="int", at="int"), at="r.at")


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("number", NUMBERS)
async def test_all_rows_are_written_and_seen_whatever_their_number(store: SqlStore, number: int) -> None:
    with store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        ids = tx.insert_with_ids("events", _EVENT, [("job.created", at, "many", None) for at in range(number)])
        assert tx.changed(_MOVE, [(event_id, at + 1) for at, event_id in enumerate(ids)]) == number
        told = tx.query(_TOLD)
        together = tx.query(_COUNTED, [(event_id, at) for at, event_id in enumerate(ids)])
    assert [(row.id, row.at, row.data) for row in told] == [(each, at + 1, None) for at, each in enumerate(ids)]
    assert [(row.number, row.latest) for row in together] == [(number, number - 1)]


@pytest.mark.parametrize("number", [0, 1, 700])
async def test_rows_that_come_as_one_text_are_the_same_rows(store: SqlStore, number: int) -> None:
    plain, many = Statement(_OF_ALL_KINDS), Statement(_OF_ALL_KINDS, many=True)
    with store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        texts = ["", 'a "quoted" \\ text', "刹那\n\t", None]
        tx.insert_with_ids("events", _EVENT, [("x", 2**62 + each, "many", texts[each % 4]) for each in range(number)])
        first, again = tx.query(many), tx.query(many)
        assert first == again == tx.query(plain)
        assert len(again) == number
        assert [(row.at, row.data, row.absent) for row in again] == [
            (2**62 + each, texts[each % 4], None) for each in range(number)
        ]


@pytest.mark.parametrize("back_end", ["sqlite"], indirect=True)
async def test_rows_that_are_too_much_for_one_text_come_one_by_one(store: SqlStore) -> None:
    many = Statement(_OF_ALL_KINDS, many=True)
    with store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        tx.insert_with_ids("events", _EVENT, [("x", each, "many", "y" * 1_000) for each in range(10)])
        told = tx.query(many)
        driver: Any = connection.connection.driver_connection
        before = driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 5_000)
        try:
            assert tx.query(many) == told
        finally:
            driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)
    assert len(told) == 10


async def test_a_row_that_cannot_be_written_takes_its_whole_transaction_back(store: SqlStore) -> None:
    def write(tx: Tx, payloads: list[list[tuple[Any, ...]]]) -> list[bool | KsanaError]:
        for rows in payloads:
            tx.run(_INSERT, rows)
        return [True for _ in payloads]

    good = [("x", each, "many", None) for each in range(3)]
    bad = [*good, ("x", None, "many", None), ("x", 9, "many", None)]
    answers = await asyncio.gather(
        store.writer.submit(write, good), store.writer.submit(write, bad), return_exceptions=True
    )
    assert answers[0] is True
    assert isinstance(answers[1], KsanaError)
    with store._writing.begin() as connection:
        assert len(Tx(connection, store._dialect, 0).query(_TOLD)) == len(good)


@pytest.mark.parametrize("width", [1, 13, 30, MOST_VARIABLES + 1])
@pytest.mark.parametrize("number", NUMBERS)
def test_there_is_room_for_each_part_and_no_more_than_half_as_much_again(number: int, width: int) -> None:
    rows = [(each,) * width for each in range(number)]
    parts = in_values(rows)
    assert [row for _, part in parts for row in part] == rows
    assert all(len(part) <= size <= max(len(part), 1.5 * len(part)) for size, part in parts)
    assert {size for size, _ in parts} <= set(SIZES)
    assert all(size == 1 or size * width <= MOST_VARIABLES for size, _ in parts)


def test_no_rows_are_no_statement() -> None:
    assert in_values([]) == []
