"""Failures that somebody has seen, and an index by which to find what somebody did.

Only adds: programs of the revisions before go on working while this one is there.
"""

import sqlalchemy as sa

from ksana.store.sql.migrations.steps import create_index, create_table

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    create_table(
        "acknowledgements",
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("target_id", ID, autoincrement=False, nullable=False),
        sa.Column("seen_until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "target_id", name="pk_acknowledgements"),
        integer_id=False,
    )
    create_index("ix_audit_entries_actor", "audit_entries", "actor", "id")
