"""Whether streams may be erased: finished, and needed by nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from statelog.domain.aggregate import Aggregate, Loaded
from statelog.domain.erasure import ERASURE, Erasable, Erased
from statelog.domain.errors import Refused
from statelog.infrastructure.journal import Journal

Ids = tuple[str, ...]
Subject = tuple[Aggregate[Any], Ids]

Find = Callable[[str], Subject | None]
"""A stream -> its aggregate and the ids in its name; None when nobody declared such streams."""

UNFINISHED: Final = "unfinished"
NEEDED: Final = "mentioned"
UNDECLARED: Final = "undeclared"


class Desk:
    """Knows the aggregates of a log, and how each of them is erased."""

    def __init__(self, journal: Journal, find: Find, declared: Iterable[Erasable[Any]]) -> None:
        self.journal = journal
        self._find = find
        self._declared = {each.aggregate.name: each for each in declared}

    def erasable(self, stream: str) -> tuple[Erasable[Any], Ids]:
        """How a stream is erased, and its ids. Raises `Refused` for one that nobody declared."""
        found = self._find(stream)
        if found is None or found[0] is ERASURE:
            why = "no declared aggregate has" if found is None else "erasures are kept in"
            raise Refused(f"{stream} is not erased: {why} such streams", rule=UNDECLARED)
        aggregate, ids = found
        return self._declared.get(aggregate.name) or Erasable(aggregate), ids

    def checked(self, stream: str) -> list[Loaded[Any]]:
        """A stream that may be erased, and those beside it that let it, as they are now.

        Raises `Refused` naming the stream that is not finished, or who needs this one.
        """
        erasable, ids = self.erasable(stream)
        own = self._load(erasable, ids)
        beside = [self._load(other, ids[: _arity(other)]) for other in erasable.beside]
        for each, loaded in ((erasable, own), *zip(erasable.beside, beside, strict=True)):
            if why := each.why_not(loaded):
                what = stream if loaded is own else f"{stream} is not erased: {loaded.stream}"
                raise Refused(f"{what} is not finished: {why}", rule=UNFINISHED)
        if erasable.mentioned:
            self._unmentioned(stream, ids)
        return [own, *beside]

    def _load(self, erasable: Erasable[Any], ids: Ids) -> Loaded[Any]:
        return self.journal.load(erasable.aggregate, ids[0] if len(ids) == 1 else ids)

    def _unmentioned(self, stream: str, ids: Ids) -> None:
        named = self.journal.mentions(f'"{ids[-1]}"', stream, Erased.stored_name)
        if named is not None:
            raise Refused(f"{stream} is needed: {named} refers to it", rule=NEEDED)


def _arity(erasable: Erasable[Any]) -> int:
    return erasable.aggregate.stream.count("{}") or 1
