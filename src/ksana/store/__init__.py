"""Where everything is kept. `base` is the port; `sql` serves SQLite, PostgreSQL and MySQL."""
