"""The records of one attempt of a spool, as the events of an attempt (D20, 6.6, 6.7, 7.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.attempt_events import Closed, Started, StepEvent
from statelog.domain.execution.imported import UNCORRELATED
from statelog.domain.execution.imported_steps import Record, moment, step_events

START: Final = "plan.attempt_started"
REPORT: Final = "plan.attempt_report"
_CAPTURED_TEXTS: Final = ("plan_generation", "execution_authority", "execution_owner")


@dataclass(frozen=True)
class Left:
    """Something that does not come in: where it is, and why not.

    `expected` is what the layout itself leaves aside; everything else is damage.
    """

    place: str
    why: str
    expected: bool = False


@dataclass(frozen=True)
class Origin:
    """Whose records these are."""

    realm: str
    plan_id: str
    execution_id: str


@dataclass(frozen=True)
class Taken:
    """The events of one attempt in the order of its stream, and what of it was left."""

    events: tuple[Started | StepEvent | Closed, ...]
    left: tuple[Left, ...] = ()


@dataclass
class _Step:
    """The events of one step in their order, and their times in microseconds as far as known."""

    events: list[StepEvent] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    name: str | None = None
    scope: Mapping[str, Any] | None = None


def check_plan_record(record: Record, kind: str, origin: Origin) -> None:
    """Raises `Invalid` for a start or a report that does not count (6.6)."""
    fields = record.fields
    if fields.get("type") != kind:
        raise Invalid("type", f"must be {kind} in a file of this name")
    if fields.get("execution_id") != origin.execution_id:
        raise Invalid("execution_id", "names another attempt than the directory")
    if kind == START:
        _started(fields, origin, [])
        return
    report = fields.get("report")
    if not isinstance(report, Mapping) or not report:
        raise Invalid("report", "must be an object that is not empty")
    if report.get("execution_id", origin.execution_id) != origin.execution_id:
        raise Invalid("report.execution_id", "names another attempt than the directory")


def planned_steps(
    start: Record | None, report: Record | None, listed: Sequence[str]
) -> list[dict[str, Any]]:
    """What is planned: the start's list, else the report's IDs, else the listed directories.

    Entries have `step_id`, `step_name` and `deps`; those whose ID is no text are left out.
    """
    given = None if start is None else start.fields.get("steps")
    if isinstance(given, list | tuple):
        return list(_once(each for each in given if isinstance(each, Mapping)))
    ids = None if report is None else _report(report).get("step_ids")
    if not isinstance(ids, list | tuple):
        ids = listed
    return list(_once({"step_id": step_id} for step_id in ids))


def _once(entries: Iterator[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    for entry in entries:
        step_id, name, deps = (entry.get(key) for key in ("step_id", "step_name", "deps"))
        if isinstance(step_id, str) and step_id not in seen:
            seen.add(step_id)
            named = name if isinstance(name, str) else ""
            yield {"step_id": step_id, "step_name": named, "deps": deps or []}


def attempt_events(
    origin: Origin,
    start: Record | None,
    report: Record | None,
    planned: Sequence[dict[str, Any]],
    records: Mapping[str, Sequence[Record]],
) -> Taken:
    """The events of an observed attempt; `records` are those of each step in their order (7.4).

    Without a start record the first event is made of the report, so that an attempt always begins
    with its steps. Steps keep the times their events came with there, in `ts`.
    """
    left: list[Left] = []
    unknown: set[str] = set()
    failures = {} if report is None else _report(report).get("failures")
    steps = {
        entry["step_id"]: _step(
            entry["step_id"], records.get(entry["step_id"], ()), failures, left, unknown
        )
        for entry in planned
    }
    scope = _first_scope(start, report, steps, records)
    entries = [_entry(entry, steps[entry["step_id"]], scope) for entry in planned]
    begun = start.fields if start is not None else _captured(report) if report is not None else {}
    events: list[Started | StepEvent | Closed] = [
        _started(begun, origin, entries, scope),
        *_in_time(steps.values()),
    ]
    if report is not None:
        events.append(Closed(report=dict(_report(report))))
    if unknown:
        why = f"fields that no event has room for: {', '.join(sorted(unknown))}"
        left.append(Left(f"{origin.plan_id} {origin.execution_id}", why))
    return Taken(tuple(events), tuple(left))


def uncorrelated_events(
    realm: str,
    plan_id: str,
    records: Mapping[str, Sequence[Record]],
    scope: Mapping[str, Any] | None,
) -> Taken:
    """The events of a history without executions: `records` are those of each directory (6.7)."""
    origin = Origin(realm, plan_id, UNCORRELATED)
    planned = list(_once({"step_id": step_id} for step_id in records))
    first = next((each for step in records.values() for each in step), None)
    at = {} if first is None else {"started_at": first.fields.get("ts")}
    begun = Record("", {**at, "scope": scope})
    return attempt_events(origin, begun, None, planned, records)


def in_order(records: Sequence[Record]) -> list[Record]:
    """A step's records by `seq`, then by file; those without a number last, each `eid` once."""
    numbered = sorted(records, key=lambda record: (_number(record), record.place))
    seen: set[str] = set()
    kept = []
    for record in numbered:
        eid = record.fields.get("eid")
        if isinstance(eid, str) and eid:
            if eid in seen:
                continue
            seen.add(eid)
        kept.append(record)
    return kept


def _number(record: Record) -> tuple[bool, int]:
    seq = record.fields.get("seq")
    return (False, seq) if type(seq) is int else (True, 0)


def _report(record: Record) -> Mapping[str, Any]:
    report: Mapping[str, Any] = record.fields["report"]
    return report


def _step(
    step_id: str,
    records: Sequence[Record],
    failures: object,
    left: list[Left],
    unknown: set[str],
) -> _Step:
    step = _Step()
    failure = failures.get(step_id) if isinstance(failures, Mapping) else None
    error_type = failure.get("error_type") if isinstance(failure, Mapping) else None
    named = error_type if isinstance(error_type, str) else ""
    for record in records:
        try:
            events, more = step_events(record, step_id, _next(record, step), named)
        except Invalid as error:
            left.append(Left(record.place, f"{error.field}: {error.why}"))
            continue
        unknown |= more
        step.events += events
        step.times += [moment(record.fields.get("ts"))] * len(events)
        step.name = _of_kind(record.fields.get("step_name"), str) or step.name
        own = record.fields.get("type") not in ("step.skipped", "step.retry_unimplemented")
        if own:
            step.scope = step.scope or _of_kind(record.fields.get("scope"), Mapping)
    return step


def _next(record: Record, step: _Step) -> int:
    """The record's own number if it is one that can follow."""
    last = step.events[-1].seq if step.events else 0
    seq = record.fields.get("seq")
    return seq if type(seq) is int and seq > last else last + 1


def _of_kind(value: Any, kind: type) -> Any:
    return value if isinstance(value, kind) else None


def _entry(entry: dict[str, Any], step: _Step, scope: Mapping[str, Any] | None) -> dict[str, Any]:
    own = {"scope": dict(step.scope)} if step.scope and step.scope != scope else {}
    known = {
        str(event.seq): at
        for event, at in zip(step.events, step.times, strict=True)
        if at is not None
    }
    name = step.name or entry["step_name"]
    return {**entry, "step_name": name, **own, **({"ts": known} if known else {})}


def _first_scope(
    start: Record | None,
    report: Record | None,
    steps: Mapping[str, _Step],
    records: Mapping[str, Sequence[Record]],
) -> Mapping[str, Any] | None:
    """The first that is not empty: of the start, the report, step events, then blocks (7.2)."""
    own = [record for step_id in steps for record in records.get(step_id, ())]
    blocks = [record for record in own if record.fields.get("type") == "step.blocked"]
    others = [record for record in own if record.fields.get("type") != "step.blocked"]
    for record in (start, report, *others, *blocks):
        scope = None if record is None else record.fields.get("scope")
        if isinstance(scope, Mapping) and scope:
            return scope
    return None


def _started(
    fields: Mapping[str, Any],
    origin: Origin,
    entries: Sequence[Mapping[str, Any]],
    scope: Mapping[str, Any] | None = None,
) -> Started:
    """The first event. Raises `Invalid` for a field of a wrong type."""
    for name, value in ((name, fields.get(name)) for name in _CAPTURED_TEXTS):
        if not isinstance(value, str | None):
            raise Invalid(name, "must be text or null")
    token, began = fields.get("run_token"), fields.get("started_at")
    if type(token) not in (int, type(None)):
        raise Invalid("run_token", "must be an integer or null")
    return Started(
        execution_id=origin.execution_id,
        plan_id=origin.plan_id,
        realm=origin.realm,
        scope=dict(scope or {}),
        plan_generation=fields.get("plan_generation"),
        run_token=token,
        execution_authority=fields.get("execution_authority"),
        execution_owner=fields.get("execution_owner"),
        failure_policy=fields.get("failure_policy"),
        started_at=began if isinstance(began, str) else "",
        steps=tuple(entries),
    )


def _captured(report: Record) -> dict[str, Any]:
    """What a report says of the start, as far as it can be used."""
    told = _report(report)
    token = told.get("run_token")
    return {
        "plan_generation": _of_kind(told.get("plan_generation"), str),
        "run_token": token if type(token) is int else None,
        "failure_policy": told.get("failure_policy"),
        "started_at": told.get("started_at"),
    }


def _in_time(steps: Iterable[_Step]) -> list[StepEvent]:
    """All events as they happened, those of one step in their order."""
    placed: list[tuple[int, int, int, StepEvent]] = []
    for place, step in enumerate(steps):
        latest = 0
        for at, (event, time) in enumerate(zip(step.events, step.times, strict=True)):
            latest = max(latest, time or 0)
            placed.append((latest, place, at, event))
    return [event for *_, event in sorted(placed, key=lambda each: each[:3])]
