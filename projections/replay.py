"""Replay: rows folded from recorded events, and the documents they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, Generic, TypeVar, cast

from statelog.domain.errors import Invalid
from statelog.domain.event import Recorded
from statelog.projections.plain import Json, to_json
from statelog.projections.projection import Projection

S = TypeVar("S")

_UNSEEN: Final = object()


def replay(projection: Projection[S], events: Iterable[Recorded]) -> dict[str, dict[str, Json]]:
    """The documents by key after these events, which are in log order.

    A log cut at a position, or the streams of one row alone, are as good as a whole log:
    `replay(view, journal.history("plan/p", upto=120))`. Raises what the projection raises, and
    `Unreadable` for an event it reads and nobody can.
    """
    fold = Fold(projection)
    if fold.run(event for event in events if projection.reads(event)):
        raise cast("Fault", fold.fault).error
    documents = ((key, document(projection, key, state)) for key, state in fold.rows())
    return {key: value for key, value in documents if value is not None}


def document(projection: Projection[S], key: str, state: S) -> dict[str, Json] | None:
    """What people see of a row, as plain JSON; None when the row is not shown.

    Raises `Invalid` naming the place for what JSON cannot hold.
    """
    seen = shown(projection, key, state)
    return None if seen is None else cast("dict[str, Json]", to_json(seen))


def shown(projection: Projection[S], key: str, state: S) -> Any:
    """The same as the projection gives it: a mapping or dataclass, or None. Raises `Invalid`."""
    seen = state if projection.show is None else projection.show(key, state)
    if not (seen is None or isinstance(seen, Mapping) or is_dataclass(seen)):
        raise Invalid("", f"a document is a mapping, not a {type(seen).__name__}")
    return seen


@dataclass(frozen=True)
class Fault:
    """An event a projection could not fold, and why."""

    position: int
    name: str
    error: Exception

    def before(self, erased: Recorded) -> Fault:
        """This fault, met within what was erased: the view waits before the first erased event."""
        return Fault(erased.position, erased.name, _Within(str(self)))

    def __str__(self) -> str:
        text = str(self.error)
        if text.startswith(f"event {self.position} "):
            return text
        why = f"{type(self.error).__name__}: {text}" if text else type(self.error).__name__
        return f"event {self.position} ({self.name}): {why}"


class _Within(Exception):
    """A later event that cannot be folded."""


class Fold(Generic[S]):
    """Row states while events are folded into them.

    `before` answers the state of a row not touched yet (default: there is none). After `run`,
    `states` holds each touched row (None: removed), `positions` the last event that touched it,
    and `fault` the event that could not be folded; everything before it is.

    From the first event whose payload was erased on, a row is what was kept of it: that is its
    state as of a later event, and what lies between is passed over. So the fold is whole from
    `reach` on; before that it lacks the rows that `torn` tells of.
    """

    def __init__(
        self, projection: Projection[S], before: Callable[[str], S | None] = lambda key: None
    ) -> None:
        self.projection = projection
        self.states: dict[str, S | None] = {}
        self.positions: dict[str, int] = {}
        self.fault: Fault | None = None
        self._before = before
        self._known: dict[str, tuple[int, Recorded]] = {}

    @property
    def reach(self) -> int:
        """The position that what was kept of rows is of, 0 when nothing was needed."""
        return max((upto for upto, _ in self._known.values()), default=0)

    def torn(self, at: int) -> dict[str, Recorded]:
        """By key the first erased event of each row whose state at a position is not known."""
        return {
            key: recorded
            for key, (upto, recorded) in self._known.items()
            if recorded.position <= at < upto
        }

    def run(self, events: Iterable[Recorded]) -> Fault | None:
        """Fold events whose names the projection reads; stops at a fault and answers it."""
        key_of, evolve = self.projection.key, self.projection.evolve
        blank = self.projection.blank
        states, positions, known = self.states, self.positions, self._known
        for recorded in events:
            try:
                key = key_of(recorded)
            except Exception as error:
                return self._stop(recorded, error)
            if key is None:
                continue
            if known and key in known and recorded.position <= known[key][0]:
                continue
            if recorded.keeper is not None:
                if self._keep(recorded, key):
                    return self.fault
                continue
            state: Any = states.get(key, _UNSEEN)
            if state is _UNSEEN:
                state = self._before(key)
            try:
                states[key] = evolve(blank if state is None else state, recorded)
            except Exception as error:
                return self._stop(recorded, error)
            positions[key] = recorded.position
        return None

    def _keep(self, recorded: Recorded, key: str) -> Fault | None:
        """Put what was kept in the place of a row."""
        try:
            kept = recorded.kept(self.projection, key)
        except Exception as error:
            return self._stop(recorded, error)
        self.states[key], self.positions[key] = kept.state, kept.position
        self._known[key] = kept.upto, recorded
        return None

    def copy(self) -> Fold[S]:
        """Another fold that goes on from here; what either folds from now on is its own."""
        copied = Fold(self.projection, self._before)
        copied.states, copied.positions = dict(self.states), dict(self.positions)
        copied.fault, copied._known = self.fault, dict(self._known)
        return copied

    def rows(self) -> Iterable[tuple[str, S]]:
        """Key and state of every row that was touched and is there."""
        return ((key, state) for key, state in self.states.items() if state is not None)

    def documents(self, made: Made | None = None, at: int | None = None) -> Documents[S]:
        """The documents as they are now, each made when somebody looks at it.

        With `made`, those of states that have not changed since are not made again. Rows that are
        not known at the position `at` are not there.
        """
        states = dict(self.rows())
        for key in () if at is None else self.torn(at):
            states.pop(key, None)
        return Documents(self.projection, states, made)

    def _stop(self, recorded: Recorded, error: Exception) -> Fault:
        if isinstance(error, MemoryError):
            raise error
        self.fault = Fault(recorded.position, recorded.name, error)
        return self.fault


Made = dict[str, tuple[Any, dict[str, Json] | None]]
"""By key the state that a document was made of last, and the document."""


class Documents(Mapping[str, dict[str, Json]], Generic[S]):
    """The documents of many rows by key; those that are not shown are not there.

    Asking for one raises `KeyError`, or `Invalid` when it cannot be made.
    """

    def __init__(
        self, projection: Projection[S], states: Mapping[str, S], made: Made | None = None
    ) -> None:
        self._projection = projection
        self._states = states
        self._made: Made = {} if made is None else made

    def _document(self, key: str) -> dict[str, Json] | None:
        state = self._states[key]
        last = self._made.get(key)
        if last is None or last[0] is not state:
            last = self._made[key] = state, document(self._projection, key, state)
        return last[1]

    def __getitem__(self, key: str) -> dict[str, Json]:
        found = self._document(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return (key for key in self._states if self._document(key) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
