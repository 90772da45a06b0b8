"""Spool directories and plan documents come into the log (D20).

Whatever comes in is one append, so nothing is ever half in; the same again adds nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from statelog.domain.aggregate import Change, Loaded
from statelog.domain.errors import Conflict, Invalid, Unreadable
from statelog.domain.event import Event, Recorded
from statelog.domain.execution.attempt import ATTEMPT
from statelog.domain.execution.attempt_events import Closed, Started
from statelog.domain.execution.imported import (
    IMPORTED,
    UNCORRELATED,
    comparable,
    highest,
    take_document,
)
from statelog.domain.execution.imported_attempt import Left, Taken
from statelog.domain.execution.plan import PLAN, Imported, Plan, PlanStatus
from statelog.domain.execution.slot import SLOT, SlotStatus, raise_floor
from statelog.domain.execution.spec import path_part
from statelog.infrastructure import codec
from statelog.infrastructure.execution.document_files import SUFFIXES, Found, documents
from statelog.infrastructure.execution.spool_files import PlanFolder, Reader, plan_folders
from statelog.infrastructure.journal import Journal
from statelog.projections.execution.plan_document import plan_document
from statelog.projections.plain import escaped
from statelog.projections.replay import replay

_TRIES: Final = 5

IMPORTED_NOW: Final = "imported"
ADDED: Final = "added to"
UNCHANGED: Final = "unchanged"
SKIPPED: Final = "skipped"
PASSED_OVER: Final = "passed over"


@dataclass(frozen=True)
class Item:
    """What became of one thing.

    `kind` is `document`, `attempt`, `history` (of times without executions), `floor` or `file`;
    `result` is `imported`, `added to`, `unchanged`, `skipped` (it is damaged or in the way of
    something), or `passed over` (the layout leaves it aside).
    """

    kind: str
    result: str
    place: str
    plan_id: str | None = None
    execution_id: str | None = None
    events: int = 0
    why: str | None = None


class Importer:
    """Imports into one journal, and tells `told` of every item."""

    def __init__(self, journal: Journal, actor: str, told: Callable[[Item], None]) -> None:
        self._journal = journal
        self._actor = actor
        self._told = told

    def take(self, path: Path, progress: Callable[[int, int], None] = lambda *_: None) -> None:
        """Import a file of documents, or a folder: its documents, then its spool directories.

        `progress` is told how many files and plans are done, and of how many. Raises `Invalid`
        when there is nothing that could be imported, and `StoreError`.
        """
        path = Path(os.path.realpath(path))
        reader = Reader(path if path.is_dir() else path.parent, self._leave)
        files = list(_document_files(reader)) if path.is_dir() else [path]
        plans = list(plan_folders(reader)) if path.is_dir() else []
        if not files and not plans:
            wanted = "neither `REALM/PLAN/attempts` nor files of plan documents"
            raise Invalid(str(path), f"holds {wanted} (.json, .jsonl)")
        size, done = len(files) + len(plans), len(files)
        self._documents(reader, files)
        for plan in plans:
            progress(done, size)
            self._plan(plan)
            done += 1
        progress(size, size)

    def _leave(self, left: Left) -> None:
        result = PASSED_OVER if left.expected else SKIPPED
        self._told(Item("file", result, left.place, why=left.why))

    def _documents(self, reader: Reader, files: Sequence[Path]) -> None:
        """Two that differ say of neither that it is the plan's: then none comes in."""
        first: dict[str, tuple[bytes, str]] = {}
        disputed: dict[str, str] = {}
        for found in _all(reader, files):
            if found.document is not None:
                now = (_digest(found.document), found.place)
                digest, place = first.setdefault(found.plan_id, now)
                if digest != now[0]:
                    disputed.setdefault(found.plan_id, f"{place} and {found.place}")
        for found in _all(reader, files):
            self._document(found, first, disputed)

    def _document(
        self,
        found: Found,
        first: Mapping[str, tuple[bytes, str]],
        disputed: Mapping[str, str],
    ) -> None:
        plan_id, document = found.plan_id, found.document
        if document is None:
            self._told(Item("document", SKIPPED, found.place, why=found.why))
            return
        if plan_id in disputed:
            why = f"{disputed[plan_id]} differ, and are of one plan"
            self._told(Item("document", SKIPPED, found.place, plan_id, why=why))
            return
        place = first[plan_id][1] if plan_id in first else found.place
        if place != found.place:
            why = f"is the same as {place}"
            self._told(Item("document", PASSED_OVER, found.place, plan_id, why=why))
            return
        written = self._write_document(plan_id, document, found.place)
        result = IMPORTED_NOW if written else UNCHANGED
        self._told(Item("document", result, found.place, plan_id, events=written))

    def _write_document(self, plan_id: str, document: Mapping[str, Any], place: str) -> int:
        for tries_left in reversed(range(_TRIES)):
            plan = self._journal.load(PLAN, plan_id)
            if self._known(plan, document):
                return 0
            change = plan.decide(take_document, document=document)
            try:
                self._journal.commit(change, actor=self._actor, meta=_meta(place))
            except Conflict:
                if not tries_left:
                    raise
            else:
                return len(change.events)
        raise AssertionError("unreachable")

    def _known(self, plan: Loaded[Plan], document: Mapping[str, Any]) -> bool:
        """Whether it is what was imported last, or what the plan's document says now."""
        if plan.state.status is PlanStatus.ABSENT:
            return False
        wanted = _digest(document)
        last = next(self._journal.latest(plan.stream, Imported.stored_name), None)
        if last is not None and last.data is not None:
            event = last.event
            if isinstance(event, Imported) and _digest(event.document) == wanted:
                return True
        try:
            events = self._journal.history(plan.stream, names=plan_document.names)
            stored = replay(plan_document, events).get(str(plan.id))
        except Unreadable:
            return False
        return stored is not None and _digest(stored) == wanted

    def _plan(self, plan: PlanFolder) -> None:
        place = plan.reader.place(plan.path)
        try:
            path_part(plan.realm, "realm")
            path_part(plan.plan_id, "plan_id")
        except Invalid as error:
            self._told(Item("file", SKIPPED, place, why=f"{error.field}: {error.why}"))
            return
        found = False
        for execution_id, taken in plan.attempts():
            found = True
            for left in taken.left:
                self._leave(left)
            where = place if execution_id == UNCORRELATED else f"{place}/attempts/{execution_id}"
            self._attempt(plan.plan_id, execution_id, taken, escaped(where))
        if not found and not plan.execution_ids:
            self._told(Item("file", PASSED_OVER, place, why="holds nothing of an execution"))
        self._floor(plan, place)

    def _attempt(self, plan_id: str, execution_id: str, taken: Taken, place: str) -> None:
        kind = "history" if execution_id == UNCORRELATED else "attempt"
        shown = None if execution_id == UNCORRELATED else execution_id

        def tell(result: str, events: int = 0, why: str | None = None) -> None:
            self._told(Item(kind, result, place, plan_id, shown, events, why))

        for tries_left in reversed(range(_TRIES)):
            stream = ATTEMPT.stream_of((plan_id, execution_id))
            stored = list(self._journal.history(stream))
            if self._is_ours(plan_id, execution_id, stored):
                tell(SKIPPED, why="the log has an attempt of this ID that was not imported")
                return
            try:
                new, late = _new(stored, taken.events)
            except Invalid as error:
                tell(SKIPPED, why=f"{error.field}: {error.why}")
                return
            if not new:
                why = f"{late} later events: it has ended" if late else None
                tell(SKIPPED if late else UNCHANGED, why=why)
                return
            version = stored[-1].version if stored else 0
            before = Loaded(ATTEMPT, (plan_id, execution_id), ATTEMPT.blank, version)
            # history is kept as it was told, also where our own lifecycle would not allow it
            change = Change(before, new, ATTEMPT.blank)
            try:
                self._journal.commit(change, actor=self._actor, meta=_meta(place))
            except Conflict:
                if not tries_left:
                    raise
            else:
                tell(ADDED if stored else IMPORTED_NOW, len(new))
                return

    def _is_ours(self, plan_id: str, execution_id: str, stored: Sequence[Recorded]) -> bool:
        """Whether it is, or is about to be, an attempt of this log."""
        if stored:
            return IMPORTED not in (stored[0].meta or {})
        slot = self._journal.load(SLOT, plan_id).state
        return slot.status is not SlotStatus.FREE and slot.execution_id == execution_id

    def _floor(self, plan: PlanFolder, place: str) -> None:
        floor, later = highest(plan.execution_ids, self._journal.clock())
        if floor is not None:
            done = self._journal.execute(
                SLOT,
                plan.plan_id,
                raise_floor,
                actor=self._actor,
                meta=_meta(place),
                execution_id=floor,
            )
            if done.rows:
                self._told(Item("floor", IMPORTED_NOW, place, plan.plan_id, floor, len(done.rows)))
        for execution_id in later:
            why = "is later than now: new executions order before it"
            self._told(Item("floor", SKIPPED, place, plan.plan_id, execution_id, why=why))


def _document_files(reader: Reader) -> Iterator[Path]:
    for entry in reader.entries(reader.root):
        if not entry.folder and entry.path.suffix.lower() in SUFFIXES:
            yield entry.path
        elif not entry.folder:
            reader.leave(entry.path, "is not a file of documents (.json, .jsonl)", expected=True)


def _all(reader: Reader, files: Sequence[Path]) -> Iterator[Found]:
    for path in files:
        place = reader.place(path)
        try:
            yield from documents(path, place)
        except OSError as error:
            yield Found(place, why=f"cannot be read: {error.strerror or error}")


def _digest(document: Mapping[str, Any]) -> bytes:
    return sha256(codec.dump(comparable(document))).digest()


def _meta(place: str) -> dict[str, Any]:
    return {IMPORTED: {"from": place}}


def _new(stored: Sequence[Recorded], events: Sequence[Event]) -> tuple[tuple[Event, ...], int]:
    """The events that are not stored yet, and how many come too late: after a report.

    The first start and the first report stand.
    """
    known = Counter((each.name, each.data) for each in stored)
    begun, ended = (
        any(each.name == kind.stored_name for each in stored) for kind in (Started, Closed)
    )
    new: list[Event] = []
    for event in events:
        key = (event.stored_name, codec.encode(event))
        if known[key] > 0:
            known[key] -= 1
        elif not (begun and isinstance(event, Started)):
            new.append(event)
    if any(each.data is None for each in stored):
        return (), 0
    return ((), len(new)) if ended else (tuple(new), 0)
