"""A store's tables in PostgreSQL: made whole or not at all, and refused when they are not ours."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import psycopg

from statelog.infrastructure.store import postgres_schema as schema
from statelog.infrastructure.store.postgres_faults import fault
from statelog.infrastructure.store.schema import APPLICATION_ID, FORMAT

_MAKING: Final = APPLICATION_ID
"""The advisory lock of whoever makes a store."""


class Mark(NamedTuple):
    """What a store says of itself: its id, a UUID, and whether this role may write it."""

    id: str
    writable: bool


def prepare(db: psycopg.Connection[Any], where: str, *, create: bool) -> Mark | None:
    """Make the store when there is none, and check it; None when there is none.

    Raises `StoreError` foreign or newer, and `psycopg.Error`. What it refuses it leaves untouched.
    """
    _check_database(db, where)
    found = _tables(db)
    if not found:
        if not create:
            return None
        _make(db)
    _check_mark(db, where)
    ((writable,),) = db.execute(schema.WRITABLE).fetchall()
    (_, _, id) = db.execute(schema.MARK).fetchall()[0]
    return Mark(id, writable)


def _tables(db: psycopg.Connection[Any]) -> set[str]:
    return {name for (name,) in db.execute(schema.FOUND, (list(schema.OURS),))}


def _check_database(db: psycopg.Connection[Any], where: str) -> None:
    facts = "SELECT current_setting('server_encoding'), current_schema()"
    ((encoding, current),) = db.execute(facts).fetchall()
    if encoding != "UTF8":
        raise fault("foreign", where, f"its encoding is {encoding}, and must be UTF8")
    if current is None:
        raise fault("foreign", where, "the schema that search_path names is not there")


def _make(db: psycopg.Connection[Any]) -> None:
    with db.transaction():
        db.execute("SET LOCAL lock_timeout = '30s'")
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
        if not _tables(db):
            db.execute(schema.TABLES, prepare=False)


def _check_mark(db: psycopg.Connection[Any], where: str) -> None:
    if "statelog" not in _tables(db):
        raise fault("foreign", where, "tables of its names are there already")
    try:
        marks = db.execute(schema.MARK).fetchall()
    except psycopg.errors.UndefinedColumn:
        marks = []
    if len(marks) != 1 or marks[0][0] != APPLICATION_ID:
        raise fault("foreign", where, "its table `statelog` is another program's")
    if marks[0][1] > FORMAT:
        raise fault("newer", where, marks[0][1])
    if not set(schema.OURS) <= _tables(db):
        raise fault("damaged", where, "tables are missing")
