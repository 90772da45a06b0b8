"""Erased payloads in PostgreSQL: an update leaves the old row behind in the table's file."""

from __future__ import annotations

from typing import Final

import psycopg

from statelog.infrastructure.store.postgres_connections import Connections
from statelog.infrastructure.store.postgres_faults import store_error

_SEEN: Final = """
    SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
            AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL))
"""


def sweep(connections: Connections) -> bool:
    """Rewrite `events` without old versions of rows; no while a transaction may still see them.

    What the server keeps elsewhere (its WAL, standbys, backups) goes by the server's own rules.
    Raises `StoreError`.
    """
    db = connections.session()
    try:
        ((seen,),) = db.execute(_SEEN).fetchall()
        if seen:
            return False
        db.execute("VACUUM (FULL) events")
        return True
    except psycopg.errors.LockNotAvailable:
        return False
    except psycopg.Error as error:
        raise store_error(error, connections.where) from error
    finally:
        connections.end(db)
