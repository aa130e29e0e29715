"""The one place that knows the drivers' errors: which become which of ours, and which are worth another try."""

from enum import Enum

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ksana.domain.errors import Conflict, KsanaError, StoreBusy, StoreError, StoreFull, StoreUnavailable


class Trouble(Enum):
    """What a driver's error means for the transaction that met it."""

    TRANSIENT = "transient"  # it lost a race for a lock; a new transaction may win
    DISCONNECTED = "disconnected"  # the connection or the server is gone
    OUTDATED = "outdated"  # a table has changed since the statement was prepared; a new transaction prepares it anew
    FULL = "full"  # there is no room to write
    DUPLICATE = "duplicate"  # somebody else wrote that key first
    OTHER = "other"


_POSTGRESQL = {
    "40P01": Trouble.TRANSIENT,  # deadlock
    "40001": Trouble.TRANSIENT,  # serialization failure
    "55P03": Trouble.TRANSIENT,  # lock timeout
    "0A000": Trouble.OUTDATED,  # the cached plan must not change its result type: an upgrade has added a column
    "53100": Trouble.FULL,  # disk full
    "53300": Trouble.DISCONNECTED,  # too many connections
    "57P01": Trouble.DISCONNECTED,  # the server shuts down
    "57P02": Trouble.DISCONNECTED,  # another of its processes crashed
    "57P03": Trouble.DISCONNECTED,  # it starts up
}
_MYSQL = {
    1213: Trouble.TRANSIENT,  # deadlock
    1205: Trouble.TRANSIENT,  # lock wait timeout
    1020: Trouble.TRANSIENT,  # the record changed since it was read (MariaDB)
    1021: Trouble.FULL,  # disk full
    1114: Trouble.FULL,  # table full
    1040: Trouble.DISCONNECTED,  # too many connections
    1053: Trouble.DISCONNECTED,  # the server shuts down
    1927: Trouble.DISCONNECTED,  # the connection was killed
    2003: Trouble.DISCONNECTED,
    2006: Trouble.DISCONNECTED,
    2013: Trouble.DISCONNECTED,
    0: Trouble.DISCONNECTED,  # the driver's own, after it lost the connection
}
_SQLITE = {
    "SQLITE_BUSY": Trouble.TRANSIENT,
    "SQLITE_LOCKED": Trouble.TRANSIENT,
    "SQLITE_FULL": Trouble.FULL,
}


def diagnose(error: BaseException) -> Trouble:
    if isinstance(error, IntegrityError):
        return Trouble.DUPLICATE
    if isinstance(error, PoolTimeout):
        return Trouble.DISCONNECTED
    if not isinstance(error, DBAPIError):
        return Trouble.OTHER
    cause = error.orig
    sqlstate = getattr(cause, "sqlstate", None)
    if sqlstate in _POSTGRESQL:
        return _POSTGRESQL[sqlstate]
    if error.connection_invalidated or type(cause).__name__ in {"ConnectionTimeout", "ConnectionFailure"}:
        return Trouble.DISCONNECTED
    primary = (getattr(cause, "sqlite_errorname", None) or "").split("_")
    if "_".join(primary[:2]) in _SQLITE:
        return _SQLITE["_".join(primary[:2])]
    number = cause.args[0] if cause is not None and cause.args else None
    if isinstance(number, int) and number in _MYSQL:
        return _MYSQL[number]
    if type(cause).__module__.startswith("psycopg") and isinstance(error, OperationalError) and sqlstate is None:
        # It never got as far as a session: unreachable, unless the server said that it does not want us.
        return Trouble.OTHER if _is_refusal(str(cause)) else Trouble.DISCONNECTED
    return Trouble.OTHER


def as_sqlalchemy_has_it(error: Exception, connection: Connection, sql: str) -> Exception:
    """A driver's error as it would have come through SQLAlchemy; a connection that is lost is known to be."""
    driver = connection.dialect
    if driver.dbapi is None or not isinstance(error, driver.dbapi.Error):
        return error
    lost = not connection.invalidated and driver.is_disconnect(error, connection.connection, None)
    made = DBAPIError.instance(
        sql, None, error, driver.dbapi.Error, hide_parameters=True, connection_invalidated=lost, dialect=driver
    )
    if lost:
        connection.invalidate(error)
    return made


def _is_refusal(message: str) -> bool:
    return "FATAL" in message and any(word in message for word in ("authentication", "does not exist", "pg_hba"))


def translate(error: BaseException) -> BaseException:
    """Ours for theirs; anything that is not a database's error is left as it is."""
    if isinstance(error, KsanaError) or not isinstance(error, SQLAlchemyError):
        return error
    summary = _first_line(error)
    match diagnose(error):
        case Trouble.DISCONNECTED:
            return StoreUnavailable(f"the database does not answer: {summary}")
        case Trouble.TRANSIENT:
            return StoreBusy("the database is busy: what was to be changed is being changed by somebody else")
        case Trouble.FULL:
            return StoreFull(f"the database has no room left: {summary}")
        case Trouble.DUPLICATE:
            return Conflict("somebody else wrote the same key first: try again")
        case Trouble.OUTDATED | Trouble.OTHER:
            return StoreError(f"the database refused: {summary}")


def _first_line(error: SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    arguments = [part for part in cause.args if isinstance(part, str)]
    return (" ".join(arguments) or type(cause).__name__).strip().splitlines()[0]
