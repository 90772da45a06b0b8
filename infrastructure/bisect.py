"""Bisect: the first position after which something no longer holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from statelog.domain.errors import Invalid
from statelog.domain.event import Recorded
from statelog.infrastructure.time_travel import Past
from statelog.projections.projection import Projection

if TYPE_CHECKING:
    from statelog.infrastructure.journal import Journal

Predicate = Callable[[Any], Any]
"""Told a document (None: there is none), all documents by key, or the events so far.

It holds when it answers True or None, and is broken when it answers False or an assertion in it
fails.
"""

MISSING: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True)
class Break:
    """Where a predicate breaks: it held after `position - 1`, and not after `position`.

    `event` is what happened there, None when it is broken from the start on. `before` and `after`
    are the documents of the rows that the event changed, by key; none without a view.
    """

    position: int
    event: Recorded | None
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    probes: int


@dataclass(frozen=True)
class Holds:
    """The predicate holds at the last position that was asked about."""

    position: int
    probes: int


def bisect(
    journal: Journal,
    predicate: Predicate,
    projection: Projection[Any] | None = None,
    key: str | None = None,
    *,
    good: int = 0,
    bad: int | None = None,
    told: Callable[[int, bool], None] = lambda position, holds: None,
) -> Break | Holds:
    """Where a predicate that holds after `good` and not after `bad` (default: the end) breaks.

    It halves the range: at most 21 probes for 1,000,000 events, each folded on from the last
    position that was good. That finds the only break of a predicate that never mends, and one of
    the breaks of another. `told` hears of each probe. Raises `Invalid` for what is no predicate,
    and `Unreadable`.
    """
    upto = journal.head() if bad is None else bad
    if good > upto:
        raise Invalid("good", f"{good} is after {upto}, which is where it should be broken")
    search = _Search(journal, predicate, projection, key)
    search.told = told
    start = search.past.at(good)
    if search.holds(start, upto):
        return Holds(upto, search.probes)
    lowest, low, high = good, good, upto
    held = start
    while high - low > 1:
        middle = (low + high) // 2
        if search.holds(held, middle):
            low, held = middle, search.reached
        else:
            high = middle
    if low == lowest and not search.holds(start, lowest):
        return Break(lowest, None, MISSING, MISSING, search.probes)
    return search.found(held, high)


class _Search:
    """The probes of one bisection."""

    def __init__(
        self,
        journal: Journal,
        predicate: Predicate,
        projection: Projection[Any] | None,
        key: str | None,
    ) -> None:
        self.journal = journal
        self.predicate = predicate
        self.probes = 0
        self.told: Callable[[int, bool], None] = lambda position, holds: None
        self.past: Past[Any] | _Events
        self.past = _Events(journal) if projection is None else Past(journal, projection, key)
        self.reached = self.past

    def holds(self, held: Past[Any] | _Events, position: int) -> bool:
        """One probe, folded on from where it held."""
        self.probes += 1
        self.reached = held.at(position)
        holds = self._answer(position)
        self.told(position, holds)
        return holds

    def _answer(self, position: int) -> bool:
        try:
            answer = self.predicate(self._seen(self.reached))
        except AssertionError:
            return False
        except Exception as error:
            why = f"raises {type(error).__name__} after position {position}: {error}"
            raise Invalid("predicate", why) from error
        if answer is None or isinstance(answer, bool):
            return answer is not False
        raise Invalid("predicate", f"answers True, False or None, not {answer!r}")

    def _seen(self, past: Past[Any] | _Events) -> Any:
        if isinstance(past, _Events):
            return past.events()
        return past.documents if past.key is None else past.document

    def found(self, held: Past[Any] | _Events, position: int) -> Break:
        (event,) = self.journal.read(after=position - 1, upto=position)
        if isinstance(held, _Events):
            return Break(position, event, MISSING, MISSING, self.probes)
        key = held.projection.key(event) if held.projection.reads(event) else None
        before, after = (_row(held.at(at), key) for at in (position - 1, position))
        return Break(position, event, before, after, self.probes)


def _row(past: Past[Any], key: str | None) -> Mapping[str, Any]:
    return MISSING if key is None else {key: past.documents.get(key)}


@dataclass(frozen=True)
class _Events:
    """The log itself at a position, for a predicate over events."""

    journal: Journal
    position: int = 0

    def at(self, position: int) -> _Events:
        return _Events(self.journal, position)

    def events(self) -> Iterable[Recorded]:
        return self.journal.read(upto=self.position)
