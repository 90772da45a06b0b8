"""The tables of the file; docs/reference/file-format.md is what they keep to."""

from __future__ import annotations

from statelog.infrastructure.store.row import COLUMNS

APPLICATION_ID = 0x53746C67
FORMAT = 1
PAGE_SIZE = 4096
REFUSALS_KEPT = 100_000
LARGEST = 2**63 - 1

LEASES = """
    CREATE TABLE IF NOT EXISTS leases (
        stream TEXT PRIMARY KEY NOT NULL,
        version INTEGER NOT NULL,
        owner TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) WITHOUT ROWID
"""

TABLES = (
    """
    CREATE TABLE events (
        position INTEGER PRIMARY KEY,
        stream TEXT NOT NULL,
        version INTEGER NOT NULL,
        name TEXT NOT NULL,
        schema INTEGER NOT NULL,
        time INTEGER NOT NULL,
        actor TEXT NOT NULL,
        command TEXT NOT NULL,
        correlation TEXT,
        cause TEXT,
        meta TEXT,
        data BLOB,
        data_hash BLOB NOT NULL,
        hash BLOB NOT NULL,
        UNIQUE (stream, version)
    )
    """,
    "CREATE INDEX events_by_name ON events (name, stream)",
    "CREATE INDEX events_by_command ON events (command)",
    """
    CREATE TABLE refusals (
        id INTEGER PRIMARY KEY,
        time INTEGER NOT NULL,
        actor TEXT NOT NULL,
        stream TEXT NOT NULL,
        version INTEGER NOT NULL,
        command TEXT,
        rule TEXT NOT NULL,
        reason TEXT NOT NULL
    )
    """,
    LEASES,
    """
    CREATE VIEW history AS
    SELECT position, stream, version, name, schema,
        strftime('%Y-%m-%dT%H:%M:%S', time / 1000000, 'unixepoch')
            || printf('.%06dZ', time % 1000000) AS time,
        actor, command, correlation, cause, meta, CAST(data AS TEXT) AS data,
        lower(hex(hash)) AS hash
    FROM events
    """,
)

INSERT = f"INSERT INTO events VALUES ({','.join('?' * len(COLUMNS))})"
SELECT = f"SELECT {', '.join(COLUMNS)} FROM events"
HEAD = "SELECT position, time FROM events ORDER BY position DESC LIMIT 1"
HEAD_AND_VERSION = (
    "SELECT position, time, (SELECT max(version) FROM events WHERE stream = ?) "
    "FROM events ORDER BY position DESC LIMIT 1"
)
BY_COMMAND = f"{SELECT} WHERE command = ? ORDER BY position"
FOLDED = (
    "SELECT position, version, name, schema, data FROM events WHERE stream = ? ORDER BY version"
)
FOLDED_UPTO = (
    "SELECT position, version, name, schema, data FROM events "
    "WHERE stream = ? AND position <= ? ORDER BY version"
)
STRAYS = "SELECT position FROM events WHERE position < 1 ORDER BY position"
TIME_AT = "SELECT time FROM events WHERE position = ?"

ERASE = "UPDATE events SET data = NULL WHERE position = ?"
PUT_BACK = "UPDATE events SET data = ? WHERE position = ? AND data IS NULL"
MENTIONS = "SELECT stream FROM events WHERE stream <> ? AND name <> ? AND instr(data, ?) LIMIT 1"

REFUSE = (
    "INSERT INTO refusals (time, actor, stream, version, command, rule, reason) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
FORGET = "DELETE FROM refusals WHERE id <= ?"
REFUSALS = (
    "SELECT id, time, actor, stream, version, command, rule, reason FROM refusals "
    "ORDER BY id DESC LIMIT ?"
)

HAS_LEASES = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'leases'"
ALL_LEASES = "SELECT stream, version, owner, expires_at FROM leases ORDER BY stream"
LEASE = "SELECT stream, version, owner, expires_at FROM leases WHERE stream = ?"
PUT_LEASE = "INSERT OR REPLACE INTO leases (stream, version, owner, expires_at) VALUES (?, ?, ?, ?)"
FORGET_LEASES = (
    "DELETE FROM leases WHERE expires_at <= ? AND version < "
    "(SELECT max(version) FROM events WHERE events.stream = leases.stream)"
)


def marks(count: int) -> str:
    """`count` placeholders."""
    return ",".join("?" * count)


def positions_below(names: int, *, newest_first: bool = False) -> str:
    """Positions below a prefix with one of `names` names (0: any), from an index alone.

    Parameters: bounds of the position (above, up to), the prefix, names; then bounds, low and
    high stream, names again.
    """
    index = "INDEXED BY events_by_name" if names else "INDEXED BY sqlite_autoindex_events_1"
    named = f" AND name IN ({marks(names)})" if names else ""
    select = f"SELECT position FROM events {index} WHERE position > ? AND position <= ?"
    return (
        f"{select} AND stream = ?{named} UNION ALL {select} AND stream >= ? AND stream < ?{named} "
        f"ORDER BY 1 {'DESC' if newest_first else ''}"
    )


def scan(names: int, *, below: bool) -> str:
    """Rows in a range of positions, in order: bounds, names, prefix bounds, limit."""
    named = f" AND +name IN ({marks(names)})" if names else ""
    prefix = " AND (+stream = ? OR +stream >= ? AND +stream < ?)" if below else ""
    where = f"WHERE position > ? AND position <= ?{named}{prefix}"
    return f"{SELECT} {where} ORDER BY position LIMIT ?"
