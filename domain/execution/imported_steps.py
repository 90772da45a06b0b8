"""Records of a step in the shape of 1.8, as events of an attempt that was imported (D20, 6.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.execution.attempt_events import (
    CACHE_HIT,
    StepArtifact,
    StepBlocked,
    StepEmitted,
    StepEvent,
    StepFailed,
    StepProgress,
    StepRetryUnimplemented,
    StepSkipped,
    StepStarted,
    StepSucceeded,
)
from statelog.domain.execution.step import Artifact

Fields = Mapping[str, Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_ENVELOPE: Final = frozenset(
    {
        *("type", "ts", "eid", "realm", "scope", "plan_id", "step_id", "step_name", "seq"),
        *("execution_id", "plan_generation", "run_token", "run_id", "fingerprint"),
    }
)
JOB: Final = "job"
"""The type of an event that is made of a `job` that an event of the engine's carried (1.4)."""


@dataclass(frozen=True)
class Record:
    """One file of a spool: where it is, by its path in the folder, and the object in it."""

    place: str
    fields: Fields


def moment(text: object) -> int | None:
    """Microseconds since 1970 UTC of an ISO-8601 text, in UTC unless it says otherwise."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        zoned = found if found.tzinfo else found.replace(tzinfo=UTC)
        return (zoned - _EPOCH) // _MICROSECOND
    except (ValueError, OverflowError):
        return None


def step_events(
    record: Record, step_id: str, seq: int, error_type: str
) -> tuple[list[StepEvent], set[str]]:
    """The events that a record stands for, numbered from `seq`, and fields that none of them keeps.

    `error_type` is for a failure, which the spool does not say of what class it was. Raises
    `Invalid` naming the field for one of a wrong type.
    """
    kind = record.fields.get("type")
    if not isinstance(kind, str) or not kind:
        raise Invalid("type", "must be text that is not empty")
    make, own = _KINDS.get(kind, (_emitted, frozenset({JOB})))
    if make is not _emitted and record.fields.get(JOB) not in (None, "", [], {}):
        told = _emitted({**record.fields, "type": JOB}, step_id, seq, "", only=JOB)
        event = make(record.fields, step_id, seq + 1, error_type)
        return [told, event], _unknown(record.fields, own | {JOB})
    unknown = set() if make is _emitted else _unknown(record.fields, own | {JOB})
    return [make(record.fields, step_id, seq, error_type)], unknown


def _unknown(fields: Fields, own: frozenset[str]) -> set[str]:
    return {name for name in fields if name not in _ENVELOPE and name not in own}


def _text(fields: Fields, name: str, default: str | None = None) -> str:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise Invalid(name, "must be text")
    return value


def _said(fields: Fields, name: str) -> str | None:
    """Text or null; a number is what it is written as."""
    value = fields.get(name)
    if type(value) in (int, float):
        return str(value)
    return None if value is None else _text(fields, name)


def _object(fields: Fields, name: str) -> Mapping[str, Any]:
    value = fields.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(name, "must be an object")
    return value


def _texts(fields: Fields, name: str) -> tuple[str, ...]:
    value = fields.get(name) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise Invalid(name, "must be a list of texts")
    return tuple(value)


def _artifact(value: object, place: str) -> Artifact:
    if not isinstance(value, Mapping):
        raise Invalid(place, "must be an object")
    key, path = (_within(place, _text, value, name) for name in ("key", "path"))
    return Artifact(key, path, _within(place, _said, value, "digest"))


def _within(place: str, read: Callable[[Fields, str], Any], fields: Fields, name: str) -> Any:
    try:
        return read(fields, name)
    except Invalid as error:
        raise Invalid(f"{place}.{error.field}", error.why) from None


def _run(fields: Fields) -> tuple[str, str]:
    return _text(fields, "run_id", ""), _text(fields, "fingerprint", "")


def _started(fields: Fields, step_id: str, seq: int, _: str) -> StepEvent:
    params, why = _object(fields, "params"), _texts(fields, "why")
    return StepStarted(step_id, seq, *_run(fields), params, why)


def _progress(fields: Fields, step_id: str, seq: int, _: str) -> StepEvent:
    progress = fields.get("progress")
    if type(progress) not in (int, float):
        raise Invalid("progress", "must be a number")
    return StepProgress(step_id, seq, *_run(fields), progress or 0, _said(fields, "message"))


def _produced(fields: Fields, step_id: str, seq: int, _: str) -> StepEvent:
    return StepArtifact(step_id, seq, *_run(fields), _artifact(fields.get("artifact"), "artifact"))


def _succeeded(fields: Fields, step_id: str, seq: int, _: str) -> StepEvent:
    given = fields.get("artifacts") or ()
    if not isinstance(given, list | tuple):
        raise Invalid("artifacts", "must be a list")
    artifacts = tuple(_artifact(each, f"artifacts[{at}]") for at, each in enumerate(given))
    metrics, extra = _object(fields, "metrics"), _object(fields, "extra")
    return StepSucceeded(step_id, seq, *_run(fields), artifacts, metrics, extra)


def _failed(fields: Fields, step_id: str, seq: int, error_type: str) -> StepEvent:
    return StepFailed(
        step_id,
        seq,
        _said(fields, "run_id"),
        _said(fields, "fingerprint"),
        _text(fields, "kind", "permanent"),
        _text(fields, "error", ""),
        error_type,
        _said(fields, "code"),
        _said(fields, "advice"),
    )


def _retry(fields: Fields, step_id: str, seq: int, _: str) -> StepEvent:
    error, kind = _text(fields, "error", ""), _text(fields, "kind", "transient")
    return StepRetryUnimplemented(step_id, seq, _said(fields, "run_id"), error, kind)


def _skipped(fields: Fields, step_id: str, seq: int, _: str) -> StepEvent:
    return StepSkipped(step_id, seq, *_run(fields), _text(fields, "reason", CACHE_HIT))


def _blocked(fields: Fields, step_id: str, seq: int, _: str) -> StepEvent:
    blockers = _texts(fields, "direct_blockers"), _texts(fields, "failed_ancestors")
    return StepBlocked(step_id, seq, *blockers)


def _emitted(
    fields: Fields, step_id: str, seq: int, _: str, *, only: str | None = None
) -> StepEvent:
    payload = {
        name: value
        for name, value in fields.items()
        if (name not in _ENVELOPE if only is None else name == only)
    }
    return StepEmitted(step_id, seq, *_run(fields), _text(fields, "type"), payload)


_Maker = Callable[[Fields, str, int, str], StepEvent]

_KINDS: Final[dict[str, tuple[_Maker, frozenset[str]]]] = {
    "step.started": (_started, frozenset({"params", "why"})),
    "step.progress": (_progress, frozenset({"progress", "message"})),
    "step.artifact": (_produced, frozenset({"artifact"})),
    "step.succeeded": (_succeeded, frozenset({"artifacts", "metrics", "extra"})),
    "step.failed": (_failed, frozenset({"kind", "error", "code", "advice"})),
    "step.retry_unimplemented": (_retry, frozenset({"error", "kind"})),
    "step.skipped": (_skipped, frozenset({"reason"})),
    "step.blocked": (_blocked, frozenset({"direct_blockers", "failed_ancestors"})),
}
