"""Folders of the layouts of 6.4 and 6.7, read as records; nothing outside the folder is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.execution_ids import can_name_attempt
from statelog.domain.execution.imported import UNCORRELATED
from statelog.domain.execution.imported_attempt import (
    REPORT,
    START,
    Left,
    Origin,
    Taken,
    attempt_events,
    check_plan_record,
    in_order,
    planned_steps,
    uncorrelated_events,
)
from statelog.domain.execution.imported_steps import Record
from statelog.infrastructure.documents import parse_text
from statelog.projections.plain import escaped

RECORD_LIMIT: Final = 32 * 1024 * 1024
"""Bytes that a record of a spool may have."""

ATTEMPTS: Final = "attempts"
LINKED: Final = "is, or is below, a symbolic link"
_FILES: Final = {START: "plan_attempt_started.json", REPORT: "plan_attempt_report.json"}


def step_path(step_id: str) -> list[str]:
    """The directories of a step below `steps` (6.4): one for each part, never out of it."""
    return [f"%{part}" if _needs_mark(part) else part for part in step_id.split("/")]


def _needs_mark(part: str) -> bool:
    lower = part.lower()
    return part in ("", ".", "..") or part[0] == "%" or lower.endswith((".json", ".json.tmp"))


@dataclass(frozen=True)
class Entry:
    """What is in a directory."""

    name: str
    path: Path
    folder: bool


class Reader:
    """Reads below one folder, and says what cannot be read."""

    def __init__(self, root: Path, leave: Callable[[Left], None]) -> None:
        self.root = Path(os.path.realpath(root))
        self._leave = leave

    def place(self, path: Path) -> str:
        """A path as it is told: below the folder, and printable."""
        return escaped(os.path.relpath(path, self.root))

    def leave(self, path: Path, why: str, *, expected: bool = False) -> None:
        """Say that something does not come in."""
        self.leave_at(self.place(path), why, expected=expected)

    def leave_at(self, place: str, why: str, *, expected: bool = False) -> None:
        """The same for what is told by its place."""
        self._leave(Left(place, why, expected))

    def entries(self, folder: Path) -> list[Entry]:
        """What is directly inside, by name; nothing of what cannot be listed or is not inside."""
        if _linked(folder):
            self.leave(folder, LINKED)
            return []
        try:
            with os.scandir(folder) as found:
                listed = [self._entry(folder, each) for each in found]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except (OSError, ValueError) as error:
            self.leave(folder, f"cannot be listed: {_said(error)}")
            return []
        return sorted(filter(None, listed), key=lambda entry: entry.name)

    def _entry(self, folder: Path, found: os.DirEntry[str]) -> Entry | None:
        path = folder / found.name
        if found.is_symlink():
            self.leave(path, LINKED)
            return None
        return Entry(found.name, path, found.is_dir())

    def folders(self, folder: Path) -> list[Entry]:
        """The directories directly inside, by name."""
        return [entry for entry in self.entries(folder) if entry.folder]

    def record(self, path: Path) -> Record | None:
        """The object in a file; None when there is no file, or, said why, no such object."""
        try:
            fields = self._object(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.leave(path, f"cannot be read: {_said(error)}")
            return None
        except Invalid as error:
            self.leave(path, f"{error.field}: {error.why}" if error.field else error.why)
            return None
        return Record(self.place(path), fields)

    def records(self, folder: Path) -> Iterator[Record]:
        """The events among the files directly inside a step's directory."""
        for entry in self.entries(folder):
            if entry.folder:
                if entry.name.lower().endswith(".json"):
                    self.leave(entry.path, "is a directory, not an event", expected=True)
            elif not entry.name.endswith(".json"):
                self.leave(entry.path, "is not an event", expected=True)
            elif (record := self.record(entry.path)) is not None:
                yield record

    def _object(self, path: Path) -> Mapping[str, Any]:
        if _linked(path):
            raise Invalid("", LINKED)
        value = parse_text(plain_bytes(path), "", yaml=False)
        if not isinstance(value, Mapping) or not value:
            raise Invalid("", "must hold an object that is not empty")
        return value


def _linked(path: Path) -> bool:
    """Whether a path below the folder, which is none itself, goes over a symbolic link."""
    return os.path.realpath(path) != str(path)


def plain_bytes(path: Path) -> bytes:
    """What is in a file. Raises `Invalid` for what is no plain file or too large, and `OSError`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Invalid("", "is not a plain file")
        data = file.read(RECORD_LIMIT + 1)
    if len(data) > RECORD_LIMIT:
        raise Invalid("", f"is larger than {RECORD_LIMIT} bytes")
    return data


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


@dataclass
class PlanFolder:
    """One plan of a spool: `<realm>/<plan_id>` with its attempts, or a history older than those."""

    reader: Reader
    realm: str
    plan_id: str
    path: Path
    execution_ids: list[str] = field(default_factory=list)
    """The names of all attempt directories, which set the floor whatever is in them (6.3)."""

    def attempts(self) -> Iterator[tuple[str, Taken]]:
        """Every observed attempt by its execution ID, or what is older when there is none (6.7)."""
        observed = False
        for entry in self.reader.entries(self.path / ATTEMPTS):
            if not entry.folder:
                self.reader.leave(entry.path, "is not an attempt's directory", expected=True)
                continue
            if not can_name_attempt(entry.name) or entry.name == UNCORRELATED:
                self.reader.leave(entry.path, "its name cannot be an execution ID")
                continue
            self.execution_ids.append(entry.name)
            taken = self._attempt(entry)
            if taken is not None:
                observed = True
                yield entry.name, taken
        older = None if observed else self._uncorrelated()
        if older is not None:
            yield UNCORRELATED, older

    def _attempt(self, entry: Entry) -> Taken | None:
        origin = Origin(self.realm, self.plan_id, entry.name)
        start, report = (self._plan_record(entry, kind, origin) for kind in (START, REPORT))
        steps = entry.path / "steps"
        if start is None and report is None:
            why = "has neither a start nor a report that counts"
            empty = not self.reader.entries(entry.path)
            self.reader.leave(
                entry.path, "is empty: never started" if empty else why, expected=empty
            )
            return None
        listed = [each.name for each in self.reader.folders(steps)]
        planned = planned_steps(start, report, listed)
        ids = [each["step_id"] for each in planned]
        self._stray(steps, listed, ids)
        records = {step_id: self._step(steps, step_id, entry.name) for step_id in ids}
        return attempt_events(origin, start, report, planned, records)

    def _plan_record(self, entry: Entry, kind: str, origin: Origin) -> Record | None:
        path = entry.path / _FILES[kind]
        record = self.reader.record(path)
        if record is None:
            return None
        try:
            check_plan_record(record, kind, origin)
        except Invalid as error:
            self.reader.leave(path, f"{error.field}: {error.why}")
            return None
        return record

    def _stray(self, steps: Path, listed: Sequence[str], ids: Sequence[str]) -> None:
        planned = {step_path(step_id)[0] for step_id in ids}
        for name in listed:
            if name not in planned:
                self.reader.leave(steps / name, "is of no planned step", expected=True)

    def _step(self, steps: Path, step_id: str, execution_id: str) -> list[Record]:
        try:
            folder = steps.joinpath(*step_path(step_id))
            os.fsencode(folder)
        except UnicodeEncodeError:
            return []
        own = []
        for record in self.reader.records(folder) if "\0" not in step_id else ():
            if record.fields.get("execution_id") == execution_id:
                own.append(record)
            else:
                self.reader.leave_at(record.place, "execution_id: names another attempt or none")
        return in_order(own)

    def _uncorrelated(self) -> Taken | None:
        """What is left of times without executions: the newest such run of each directory."""
        runs = {
            entry.name: self._newest_run(entry)
            for entry in self.reader.folders(self.path)
            if entry.name != ATTEMPTS
        }
        if not any(records is not None for records in runs.values()):
            return None
        records = {step_id: found or [] for step_id, found in runs.items()}
        return uncorrelated_events(self.realm, self.plan_id, records, self._scope(records))

    def _newest_run(self, step: Entry) -> list[Record] | None:
        for run in reversed(self.reader.folders(step.path)):
            records = in_order(list(self.reader.records(run.path)))
            if records and records[0].fields.get("execution_id") is None:
                return [each for each in records if each.fields.get("execution_id") is None]
        return None

    def _scope(self, steps: Mapping[str, Sequence[Record]]) -> Mapping[str, Any] | None:
        """The first of a run's events, then of the plan's own files, drafts of it before others."""
        events = [record for records in steps.values() for record in records]
        for record in (*events, *self._own_files()):
            scope = record.fields.get("scope")
            correlated = record.fields.get("execution_id") is not None
            if not correlated and isinstance(scope, Mapping) and scope:
                return scope
        return None

    def _own_files(self) -> Iterator[Record]:
        files = [each for each in self.reader.entries(self.path) if not each.folder]
        for entry in sorted(files, key=lambda each: ("draft" not in each.name, each.name)):
            if entry.name.endswith(".json") and (record := self.reader.record(entry.path)):
                yield record


def plan_folders(reader: Reader) -> Iterator[PlanFolder]:
    """Every plan of a spool, `<realm>/<plan_id>`, by name."""
    for realm in reader.folders(reader.root):
        for plan in reader.folders(realm.path):
            yield PlanFolder(reader, realm.name, plan.name, plan.path)
