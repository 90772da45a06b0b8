"""Freeze a store as a golden log: `python -m tests.golden.record STORE NAME`.

Writes NAME.db, a self-contained copy of the log, and NAME.json, the documents of every view at its
end. A golden log is recorded once, by a release's own demo, and never touched again.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from statelog.infrastructure.journal import Journal
from statelog.infrastructure.views import Views
from statelog.projections.execution import EXECUTION_VIEWS

HERE = Path(__file__).parent


def documents(store: Path) -> dict[str, dict[str, Any]]:
    """Every row of every view of plan execution, folded from the log in memory."""
    with Journal(store, read_only=True) as journal, Views(journal, EXECUTION_VIEWS) as views:
        return {view.name: dict(views.rows(view.name)) for view in EXECUTION_VIEWS}


def freeze(store: Path, name: str) -> None:
    """Copy the log and its documents beside this file. Raises `FileExistsError`."""
    target = HERE / f"{name}.db"
    if target.exists():
        raise FileExistsError(f"{target} is golden: it is never recorded again")
    source, copy = sqlite3.connect(store), sqlite3.connect(target)
    source.backup(copy)
    copy.execute("PRAGMA journal_mode=DELETE")
    copy.close()
    source.close()
    text = json.dumps(documents(store), indent=1, sort_keys=True, ensure_ascii=False)
    (HERE / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    freeze(Path(sys.argv[1]), sys.argv[2])
