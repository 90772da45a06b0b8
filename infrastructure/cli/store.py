"""`statelog store`: what a store is made of, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from statelog.infrastructure.cli import store_import
from statelog.infrastructure.cli.all_views import all_views
from statelog.infrastructure.cli.common import FAILED, OK, Settings, command, group
from statelog.infrastructure.cli.output import emit, printable, show
from statelog.infrastructure.cli.tables import facts, table

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal

HELP: Final = "Look after the store."
EXAMPLES: Final = """
\b
Examples:
  statelog store doctor
  statelog store doctor --check
  statelog store backup /backup/lab-monday.db
  statelog store import spool/
"""
_BEHIND_US: Final = 60_000_000


def add_to(app: click.Group) -> None:
    """Register the group and its commands."""
    store = group(app, "store", HELP, EXAMPLES)

    @command(store, "doctor", epilog="Example: statelog store doctor --check")
    @click.option(
        "--check", is_flag=True, help="Also read the whole file: SQLite's check, and the log's."
    )
    def doctor(settings: Settings, *, check: bool) -> int:
        """Say what the store is made of: versions, sizes, positions, holders, views.

        Exit code 1 when something is wrong that needs attention; it is said.
        """
        with settings.journal() as journal:
            found = _examined(settings, journal, check=check)
        if settings.as_json:
            emit(found)
        else:
            show(_text(found))
        return FAILED if found["problems"] else OK

    @command(store, "backup", epilog="Example: statelog store backup /backup/lab-monday.db")
    @click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
    def backup(settings: Settings, *, path: Path) -> None:
        """Copy the log as it is at one moment into the new file PATH, while others write.

        The views are not copied: they are made again from the log.
        """
        from statelog.domain.errors import Refused
        from statelog.infrastructure.store.backup import back_up

        with settings.journal() as journal:
            if journal.store is None:
                reason = "a store in PostgreSQL is copied by `pg_dump`, or by `statelog log export`"
                raise Refused(reason, rule="backup_file")
            position = back_up(journal.store, path)
        if settings.as_json:
            emit({"path": str(path.absolute()), "position": position})
        else:
            show(printable(f"{path}: the log up to position {position}"))

    store_import.add_to(store)


def _examined(settings: Settings, journal: Journal, *, check: bool) -> dict[str, Any]:
    from statelog.infrastructure.holders import Holders

    health = journal.health(check=check)
    holders = Holders.for_journal(journal)
    living, known = set(holders.living()), holders.known()
    views, trouble = _views(settings, journal)
    return {
        **health,
        "holders": [{"id": id, "alive": id in living, **(holders.who(id) or {})} for id in known],
        "views": views,
        "problems": [*_problems(health), *trouble],
    }


def _views(settings: Settings, journal: Journal) -> tuple[list[dict[str, Any]], list[str]]:
    """Where the views are, without making what is not there."""
    from statelog.domain.errors import StoreError

    if journal.views_path is None or not journal.views_path.exists():
        return [], []
    try:
        with settings.views(journal, all_views()) as views:
            seen = views.status()
    except StoreError as error:
        return [], [str(error)]
    stopped = [f"view {v.name} stops at position {v.position}: {v.error}" for v in seen if v.error]
    return [dict(vars(each)) for each in seen], stopped


def _problems(health: Mapping[str, Any]) -> list[str]:
    found = []
    if health["behind_us"] > _BEHIND_US:
        behind = health["behind_us"] // 1_000_000
        found.append(
            f"the clock is {behind} s behind the last event: new events get its time until then"
        )
    checked = health.get("quick_check", ["ok"])
    if checked != ["ok"]:
        found.append(f"SQLite finds the file damaged ({checked[0]}); restore a backup")
    if not health.get("dense", True):
        found.append("positions are missing in the log; restore a backup")
    return found


def _text(found: Mapping[str, Any]) -> str:
    from statelog.domain.times import iso

    last, gone = found["last_time"], found["refusals_gone"]
    parts = [
        facts(
            {
                "store": found["store"],
                "format": found["format"],
                "statelog": found["statelog_version"],
                "python": found["python_version"],
                **_backend(found),
                "position": found["position"],
                "last event": iso(last) if last else None,
                "refusals": f"{found['refusals']:,}{f' ({gone:,} older gone)' if gone else ''}",
                "checked": "the whole file" if "dense" in found else None,
            }
        ),
        _holders(found["holders"]),
        _view_table(found["views"]),
        *(printable(f"problem: {each}") for each in found["problems"]),
    ]
    return "\n\n".join(parts)


def _backend(found: Mapping[str, Any]) -> dict[str, Any]:
    only = "" if found["writable"] else ", read-only"
    if "postgres_version" in found:
        return {
            "postgresql": found["postgres_version"],
            "known fault": found["postgres_fault"],
            "size": f"{found['bytes']:,} bytes{only}",
        }
    return {
        "sqlite": found["sqlite_version"],
        "known fault": found["sqlite_fault"],
        "size": f"{found['bytes']:,} bytes, WAL {found['wal_bytes']:,} bytes",
        "mode": f"{found['mode']}{only}",
        "journal mode": found["journal_mode"],
    }


def _holders(holders: list[dict[str, Any]]) -> str:
    if not holders:
        return "no holders"
    rows = [
        [each["id"], "living" if each["alive"] else "dead", each.get("pid"), each.get("host")]
        for each in holders
    ]
    return table(["holder", "state", "pid", "host"], rows)


def _view_table(views: list[dict[str, Any]]) -> str:
    if not views:
        return "no views are stored: the first command that reads them makes them"
    names = ("version", "position", "lag", "rows", "error")
    return table(["view", *names], [[v["name"], *(v[n] for n in names)] for v in views])
