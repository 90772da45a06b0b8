"""Events: frozen payloads with a stored name of their own, and the envelope of a stored one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, dataclass_transform

from statelog.domain.errors import Unreadable

Payload = dict[str, Any]
Upcaster = Callable[[Payload], Payload]

_registry: dict[str, type[Event]] = {}
_OWN = frozenset({"stored_name", "schema", "upcasters"})


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Event:
    """Base of all events. A subclass is a frozen dataclass registered under its stored name.

    `name` is `<domain>.<aggregate>.<past tense>` and outlives the code. `schema` counts payload
    versions from 1; `upcasters[n]` turns a payload of version n into one of version n + 1.
    A subclass without `name` is an abstract base of others and is never stored.
    """

    stored_name: ClassVar[str] = ""
    schema: ClassVar[int] = 1
    upcasters: ClassVar[Mapping[int, Upcaster]] = {}

    def __init_subclass__(
        cls,
        *,
        name: str | None = None,
        schema: int = 1,
        upcasters: Mapping[int, Upcaster] | None = None,
        **kwargs: Any,
    ) -> None:
        """Freeze the class and register it.

        Raises `TypeError` for a stored name that is taken, a field named like an attribute of
        every event (it would silently become its default), or a missing upcaster.
        """
        super().__init_subclass__(**kwargs)
        dataclass(frozen=True)(cls)
        if taken := _OWN & {each.name for each in fields(cls)}:  # type: ignore[arg-type]
            raise TypeError(f"{cls.__qualname__}: a field cannot be named {sorted(taken)}")
        if name is None:
            cls.stored_name = ""
            return
        cls.stored_name, cls.schema, cls.upcasters = name, schema, dict(upcasters or {})
        missing = [n for n in range(1, schema) if n not in cls.upcasters]
        if missing:
            raise TypeError(f"{name} schema {schema} has no upcaster from {missing}")
        _register(cls)


def _register(cls: type[Event]) -> None:
    other = _registry.get(cls.stored_name)
    if other is not None and _where(other) != _where(cls):
        raise TypeError(f"stored name {cls.stored_name} is taken by {other.__qualname__}")
    _registry[cls.stored_name] = cls


def _where(cls: type[Event]) -> tuple[str, str]:
    """File and qualified name: what doctests and notebooks define again is the same event."""
    try:
        return inspect.getfile(cls), cls.__qualname__
    except (OSError, TypeError):
        return cls.__module__, cls.__qualname__


def event_type(name: str) -> type[Event] | None:
    """The event class with this stored name, if any code declares it."""
    return _registry.get(name)


def event_types() -> dict[str, type[Event]]:
    """All declared events by stored name."""
    return dict(_registry)


class Kept(NamedTuple):
    """The state of a row as of the position `upto`, None when there was no row.

    `position` is that of the last event that touched it, `by` that of the event that says so.
    """

    upto: int
    state: Any
    position: int
    by: int


Keeper = Callable[["Recorded", Any, str], Kept]
"""(event without its payload, projection, key) -> what was kept of the row."""


def _undecodable(recorded: Recorded) -> Event:
    raise Unreadable(recorded.position, recorded.name, "no decoder was given")


@dataclass(frozen=True)
class Recorded:
    """A stored event with its envelope.

    `time` is integer microseconds since the Unix epoch, UTC. `event` is decoded on first use, so
    what nobody reads passes untouched; it raises `Unreadable` when it cannot be decoded. `data` is
    None once the payload was erased or archived.
    """

    position: int
    stream: str
    version: int
    name: str
    schema: int
    time: int
    actor: str
    command: str
    correlation: str | None
    cause: str | None
    meta: Mapping[str, Any] | None
    data: bytes | None
    data_hash: bytes
    hash: bytes
    decoder: Callable[[Recorded], Event] = field(default=_undecodable, compare=False, repr=False)
    keeper: Keeper | None = field(default=None, compare=False, repr=False)

    @cached_property
    def event(self) -> Event:
        """The payload. Raises `Unreadable`."""
        return self.decoder(self)

    def kept(self, projection: Any, key: str) -> Kept:
        """What was kept of a view's row when this payload went.

        Raises `Unreadable` when nothing in the log says that it went.
        """
        if self.keeper is None:
            raise Unreadable(self.position, self.name, "its payload is gone and nothing says why")
        return self.keeper(self, projection, key)

    @property
    def originator_id(self) -> str:
        """The stream, under the name the `eventsourcing` library uses."""
        return self.stream

    @property
    def originator_version(self) -> int:
        """The version, under the name the `eventsourcing` library uses."""
        return self.version
