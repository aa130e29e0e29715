"""What must differ between databases, each deviation with its reason."""

from ksana.domain.errors import InvalidSetting
from ksana.store.sql.dialects.base import Dialect


def dialect_of(url: str) -> Dialect:
    """The dialect that a database URL asks for. Imports only that one: a driver that is not used is not loaded."""
    scheme = url.partition(":")[0].partition("+")[0]
    match scheme:
        case "sqlite":
            from ksana.store.sql.dialects.sqlite import SqliteDialect  # noqa: PLC0415

            return SqliteDialect()
        case "postgresql" | "postgres":
            from ksana.store.sql.dialects.postgresql import PostgresqlDialect  # noqa: PLC0415

            return PostgresqlDialect()
        case "mysql" | "mariadb":
            from ksana.store.sql.dialects.mysql import MysqlDialect  # noqa: PLC0415

            return MysqlDialect()
        case _:
            raise InvalidSetting("database.url", f"unknown kind of database: {scheme}")
