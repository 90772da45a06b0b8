"""The tables in PostgreSQL: those of the file, with the same columns and rules."""

from __future__ import annotations

from typing import Final

from statelog.infrastructure.store.row import COLUMNS
from statelog.infrastructure.store.schema import APPLICATION_ID, FORMAT

OURS: Final = ("statelog", "events", "refusals", "leases", "holders")

TABLES: Final = f"""
    CREATE TABLE statelog (
        application_id BIGINT NOT NULL,
        format BIGINT NOT NULL,
        id UUID NOT NULL
    );
    INSERT INTO statelog VALUES ({APPLICATION_ID}, {FORMAT}, gen_random_uuid());
    CREATE TABLE events (
        position BIGINT PRIMARY KEY,
        stream TEXT COLLATE "C" NOT NULL,
        version BIGINT NOT NULL,
        name TEXT COLLATE "C" NOT NULL,
        schema BIGINT NOT NULL,
        time BIGINT NOT NULL,
        actor TEXT NOT NULL,
        command TEXT COLLATE "C" NOT NULL,
        correlation TEXT,
        cause TEXT,
        meta TEXT,
        data BYTEA,
        data_hash BYTEA NOT NULL,
        hash BYTEA NOT NULL,
        UNIQUE (stream, version)
    );
    CREATE INDEX events_by_stream ON events (stream, position);
    CREATE INDEX events_by_name ON events (name, stream, position);
    CREATE INDEX events_by_command ON events (command);
    CREATE TABLE refusals (
        id BIGINT PRIMARY KEY,
        time BIGINT NOT NULL,
        actor TEXT NOT NULL,
        stream TEXT NOT NULL,
        version BIGINT NOT NULL,
        command TEXT,
        rule TEXT NOT NULL,
        reason TEXT NOT NULL
    );
    CREATE TABLE leases (
        stream TEXT COLLATE "C" PRIMARY KEY,
        version BIGINT NOT NULL,
        owner TEXT NOT NULL,
        expires_at BIGINT NOT NULL
    );
    CREATE TABLE holders (
        id TEXT COLLATE "C" PRIMARY KEY,
        about TEXT NOT NULL,
        missing_since TIMESTAMPTZ
    );
    CREATE VIEW history AS
    SELECT position, stream, version, name, schema,
        to_char(timestamptz 'epoch' AT TIME ZONE 'UTC' + time * interval '1 microsecond',
            'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS time,
        actor, command, correlation, cause, meta, convert_from(data, 'UTF8') AS data,
        encode(hash, 'hex') AS hash
    FROM events
"""

FOUND: Final = """
    SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND c.relname = ANY(%s)
"""
MARK: Final = "SELECT application_id, format, id::text FROM statelog"
WRITABLE: Final = """
    SELECT NOT pg_is_in_recovery() AND has_table_privilege('events', 'INSERT')
        AND current_setting('default_transaction_read_only') = 'off'
"""

_SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM events"
_ROW: Final = f"({', '.join(['%s'] * len(COLUMNS))})"
HEAD: Final = "SELECT position, time FROM events ORDER BY position DESC LIMIT 1"
VERSION: Final = "SELECT max(version) FROM events WHERE stream = %s"
BY_COMMAND: Final = f"{_SELECT} WHERE command = %s ORDER BY position"
TIME_AT: Final = "SELECT time FROM events WHERE position = %s"
FOLDED: Final = (
    "SELECT position, version, name, schema, data FROM events WHERE stream = %s "
    "AND version > %s::bigint AND position <= %s::bigint ORDER BY version LIMIT %s"
)
ROWS_AT: Final = f"{_SELECT} WHERE position = ANY(%s::bigint[]) ORDER BY position"
STRAYS: Final = "SELECT position FROM events WHERE position < 1 ORDER BY position"
MENTIONS: Final = (
    "SELECT stream FROM events WHERE stream <> %s AND name <> %s "
    "AND position(%s::bytea IN data) > 0 LIMIT 1"
)

ERASE: Final = "UPDATE events SET data = NULL WHERE position = ANY(%s::bigint[])"
PUT_BACK: Final = "UPDATE events SET data = %s WHERE position = %s::bigint AND data IS NULL"

REFUSE: Final = """
    INSERT INTO refusals (id, time, actor, stream, version, command, rule, reason)
    SELECT coalesce(max(id), 0) + 1, %s::bigint, %s, %s, %s::bigint, %s, %s, %s FROM refusals
    RETURNING id
"""
FORGET: Final = "DELETE FROM refusals WHERE id <= %s"
REFUSALS: Final = (
    "SELECT id, time, actor, stream, version, command, rule, reason FROM refusals "
    "ORDER BY id DESC LIMIT %s"
)

ALL_LEASES: Final = "SELECT stream, version, owner, expires_at FROM leases ORDER BY stream"
LEASE: Final = "SELECT stream, version, owner, expires_at FROM leases WHERE stream = %s"
PUT_LEASE: Final = """
    INSERT INTO leases (stream, version, owner, expires_at) VALUES (%s, %s, %s, %s)
    ON CONFLICT (stream) DO UPDATE SET version = excluded.version, owner = excluded.owner,
        expires_at = excluded.expires_at
"""
FORGET_LEASES: Final = (
    "DELETE FROM leases WHERE expires_at <= %s AND version < "
    "(SELECT max(version) FROM events WHERE events.stream = leases.stream)"
)


def insert(count: int) -> str:
    """So many rows in one statement: the values of each, one after the other."""
    return f"INSERT INTO events VALUES {', '.join([_ROW] * count)}"


def stream_rows(*, newest_first: bool) -> str:
    """Rows of a stream by version: stream, above, up to, limit (NULL: all)."""
    return (
        f"{_SELECT} WHERE stream = %s AND version > %s::bigint AND version <= %s::bigint "
        f"ORDER BY version {'DESC' if newest_first else ''} LIMIT %s::bigint"
    )


def positions_below(*, named: bool, newest_first: bool) -> str:
    """Positions below a prefix: bounds, prefix, (names); bounds, low and high stream, (names)."""
    names = " AND name = ANY(%s)" if named else ""
    select = (
        "SELECT position FROM events WHERE position > %s::bigint AND position <= %s::bigint AND "
    )
    return (
        f"{select} stream = %s{names} UNION ALL {select} stream >= %s AND stream < %s{names} "
        f"ORDER BY 1 {'DESC' if newest_first else ''}"
    )


def scan(*, named: bool, below: bool) -> str:
    """Rows in a range of positions, in order: bounds, (names), (prefix bounds), limit."""
    names = " AND name = ANY(%s)" if named else ""
    prefix = " AND (stream = %s OR stream >= %s AND stream < %s)" if below else ""
    where = f"WHERE position > %s::bigint AND position <= %s::bigint{names}{prefix}"
    return f"{_SELECT} {where} ORDER BY position LIMIT %s::bigint"
