"""A transaction that the driver is told of itself, past SQLAlchemy: by way of it, to begin and to end one takes longer than most
statements in between. Those that do come by way of SQLAlchemy join it."""

from typing import Any, Protocol

from sqlalchemy import Connection

from ksana.store.sql.errors import as_sqlalchemy_has_it


class Transaction(Protocol):
    """What has been begun, and is to be ended by one of these. SQLAlchemyError."""

    def commit(self) -> None:
        """Everything counts."""

    def rollback(self) -> None:
        """Nothing does."""


class Driven:
    """A Transaction. What is raised on the way is what SQLAlchemy would have raised."""

    def __init__(self, connection: Connection, begin: str) -> None:
        self._connection = connection
        self._driver: Any = connection.connection.dbapi_connection
        self._tell(begin)

    def commit(self) -> None:
        if self._connection.in_transaction():  # a statement came by way of SQLAlchemy, which believes to have begun it
            self._connection.commit()
        else:
            self._tell("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction():
            self._connection.rollback()
        elif not self._connection.invalidated and self._driver.in_transaction:  # what failed may have ended it already
            self._tell("ROLLBACK")

    def _tell(self, sql: str) -> None:
        try:
            self._driver.execute(sql)
        except Exception as error:
            raise as_sqlalchemy_has_it(error, self._connection, sql) from error
