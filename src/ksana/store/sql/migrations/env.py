"""Alembic's entry: runs the revisions on the connection that `migrate.py` hands over."""

from alembic import context

connection = context.config.attributes["connection"]
if not connection.in_transaction():
    # Alembic leaves a transaction that it finds alone: the steps end theirs themselves.
    connection.begin()
context.configure(connection=connection, transactional_ddl=False)
context.run_migrations()
