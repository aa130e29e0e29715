"""What is to be done travels with the next question: in its order, not too much at once, and what is wrong with it is told."""

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from ksana.store.sql import schema
from ksana.store.sql.rows import Statement, columns, insert_rows
from ksana.store.sql.store import SqlStore
from ksana.store.sql.tx import MOST_UNSENT, MOST_UNSENT_STATEMENTS, Tx
from tests.contract.store.conftest import BACK_ENDS
from tests.contract.store.counting import counting

_INSERT = insert_rows("events", columns(type="text", at="int", subject="text", data="text"))
_ADD = Statement("UPDATE events SET at = at + :more WHERE subject = 'unsent'")
_TELL = Statement("UPDATE events SET data = :data WHERE subject = 'unsent'")
_DOUBLE = Statement("UPDATE events SET at = at * 2 WHERE subject = 'unsent'")
_READ = Statement("SELECT t.at, t.data FROM events t WHERE t.subject = 'unsent' ORDER BY t.id")


@pytest.fixture(params=BACK_ENDS[:3])
def back_end(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def told(at: int, data: str = "") -> list[tuple[str, int, str, str]]:
    return [("x", at, "unsent", data)]


async def test_everything_is_done_in_its_order_whoever_asks_next(store: SqlStore) -> None:
    with counting(store) as count, store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        tx.run(_INSERT, told(1, "100 % of it; 'quoted' \\ %s %(x)s"))
        tx.run(_ADD, more=2)
        tx.run(_DOUBLE)
        assert [tuple(row) for row in tx.query(_READ)] == [(6, "100 % of it; 'quoted' \\ %s %(x)s")]
        assert count.trips == (1 if store.shared else 4)
        tx.run(_ADD, more=4)
        assert tx.changed(_DOUBLE) == 1
        tx.run(_ADD, more=1)
        assert tx.core(select(func.max(schema.events.c.at)))[0][0] == 21
        tx.run(_DOUBLE)
        tx.flush()
    with store._reading.connect() as connection:
        assert connection.execute(select(func.max(schema.events.c.at))).scalar() == 42


async def test_no_more_waits_than_a_server_takes_at_once(store: SqlStore) -> None:
    with counting(store) as count, store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        for each in range(MOST_UNSENT_STATEMENTS + 1):
            tx.run(_INSERT, told(each))
        assert count.trips == (1 if store.shared else MOST_UNSENT_STATEMENTS + 1)
        assert len(tx.query(_READ)) == MOST_UNSENT_STATEMENTS + 1


@pytest.mark.parametrize(("size", "messages"), [(MOST_UNSENT // 2 + 1, 2), (2 * MOST_UNSENT, 4)])
async def test_no_more_waits_than_fits_into_one_message(store: SqlStore, size: int, messages: int) -> None:
    with counting(store) as count, store._writing.begin() as connection:
        tx = Tx(connection, store._dialect, 0)
        tx.run(_INSERT, told(1))
        before = count.trips
        for each in "abc":
            tx.run(_TELL, data=each * size)
        assert count.trips - before == (messages if store.shared else 3)
        assert tx.query(_READ)[0].data == "c" * size


@pytest.mark.parametrize("asks", [True, False], ids=["next question", "flush"])
async def test_what_cannot_be_done_is_told_and_nothing_after_it_is_done(store: SqlStore, *, asks: bool) -> None:
    def write() -> None:
        with store._writing.begin() as connection:
            tx = Tx(connection, store._dialect, 0)
            tx.run(_INSERT, told(1))
            tx.run(_INSERT, [("x", None, "unsent", "")])
            tx.run(_INSERT, told(2))
            if asks:
                tx.query(_READ)
            tx.flush()

    with pytest.raises(DBAPIError, match=r"(?i)null"):
        write()
    with store._writing.begin() as connection:
        assert Tx(connection, store._dialect, 0).query(_READ) == []
