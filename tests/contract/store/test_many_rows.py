"""Rows are given to a statement in whatever number: none is lost, none is there twice, and what belongs together is counted so."""

import pytest

from ksana.store.sql.rows import SIZES, Statement, columns, in_values, update_by_id
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
_MOVE = update_by_id("events", columns(id="int", at="int"), at="r.at")


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("number", NUMBERS)
async def test_all_rows_are_written_and_seen_whatever_their_number(store: SqlStore, number: int) -> None:
    with store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        ids = tx.insert_with_ids("events", _EVENT, [("job.created", at, "many", None) for at in range(number)])
        assert tx.run(_MOVE, [(event_id, at + 1) for at, event_id in enumerate(ids)]) == number
        told = tx.query(_TOLD)
        together = tx.query(_COUNTED, [(event_id, at) for at, event_id in enumerate(ids)])
    assert [(row.id, row.at, row.data) for row in told] == [(each, at + 1, None) for at, each in enumerate(ids)]
    assert [(row.number, row.latest) for row in together] == [(number, number - 1)]


@pytest.mark.parametrize("number", NUMBERS)
def test_there_is_room_for_each_part_and_no_more_than_half_as_much_again(number: int) -> None:
    parts = list(in_values([(each,) for each in range(number)]))
    assert [row for _, part in parts for row in part] == [(each,) for each in range(number)]
    assert all(len(part) <= size <= max(len(part), 1.5 * len(part)) for size, part in parts)
    assert {size for size, _ in parts} <= set(SIZES)


def test_no_rows_are_no_statement() -> None:
    assert list(in_values([])) == []
