"""Where a view is: how far, how far behind, and why it is no further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from statelog.domain.errors import StoreError
from statelog.infrastructure.view import View
from statelog.infrastructure.view_store import ViewStore


@dataclass(frozen=True)
class ViewStatus:
    """Where a view is: `lag` positions behind the log, and why if an event stops it."""

    name: str
    version: int
    position: int
    lag: int
    rows: int
    error: str | None


def status_of(view: View[Any], store: ViewStore, head: int) -> ViewStatus:
    """Where a view is in a store, beside the end of the log."""
    mark = store.mark(view.name)
    if mark is None:
        return ViewStatus(view.name, view.version, 0, head, 0, None)
    lag, rows = head - mark.position, store.count(view.format)
    return ViewStatus(view.name, mark.version, mark.position, lag, rows, mark.error)


def is_newer(view: View[Any]) -> bool:
    """Whether a newer release keeps the view."""
    mark = view.store.mark(view.name)
    return mark is not None and mark.version > view.version


def newer(view: View[Any]) -> StoreError:
    """What to say when it does."""
    mark = view.store.mark(view.name)
    kept = f" at version {mark.version}" if mark else ""
    return StoreError(
        "newer",
        f"view {view.name} is kept{kept} and this release makes {view.version}; upgrade",
    )
