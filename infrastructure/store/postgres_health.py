"""What `store doctor` wants to know about a store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from statelog.infrastructure.store import postgres_schema as schema
from statelog.infrastructure.store.postgres_connections import Connections

_BYTES: Final = (
    "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c WHERE c.oid IN ({})"
)
_SETTING: Final = "SELECT current_setting(%s)"


def postgres_fault(settings: Mapping[str, str]) -> str | None:
    """What in the server's settings lets acknowledged events go, if anything."""
    wrong = [name for name in ("fsync", "full_page_writes") if settings[name] == "off"]
    if not wrong:
        return None
    return f"{' and '.join(wrong)} is off: a power cut can lose or damage acknowledged events"


def health(connections: Connections, *, check: bool) -> Mapping[str, Any]:
    """Facts about the store and its server; with `check` also the density of the log."""
    read = connections.read
    head, last = (read(schema.HEAD) or [(0, None)])[0]
    (kept, newest) = read("SELECT count(*), max(id) FROM refusals")[0]
    names = ("server_version", "fsync", "full_page_writes", "synchronous_commit")
    settings = {name: read(_SETTING, (name,))[0][0] for name in names}
    tables = ", ".join(f"'{table}'::regclass" for table in schema.OURS)
    found = {
        "store": connections.where,
        "store_id": connections.id,
        "format": read(schema.MARK)[0][1],
        "postgres_version": settings["server_version"].split()[0],
        "postgres_fault": postgres_fault(settings),
        "writable": connections.writable,
        "bytes": read(_BYTES.format(tables))[0][0],
        "position": head,
        "last_time": last,
        "refusals": kept,
        "refusals_gone": (newest or 0) - kept,
    }
    if check:
        (count,) = read("SELECT count(*) FROM events")[0]
        found["dense"] = count == found["position"]
    return found
