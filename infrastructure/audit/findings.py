"""What is wrong with a log, by the first position where it is: looked for once something is."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain

from statelog.domain.errors import StoreError
from statelog.infrastructure.audit.checkpoint import Checkpoint
from statelog.infrastructure.journal import Journal
from statelog.infrastructure.store.row import Row, hash_of

DATA, HEADER, HASH = "changed data", "changed header", "changed hash"
MOVED, REMOVED, INSERTED, CUT_OFF = "moved", "removed", "inserted", "cut off"
UNREADABLE, REWRITTEN = "unreadable", "rewritten"


@dataclass(frozen=True)
class Finding:
    """The first thing that is wrong: a position (None when no single one is known), what, why."""

    position: int | None
    kind: str
    why: str

    def __str__(self) -> str:
        place = "" if self.position is None else f"event {self.position}: "
        return f"{place}{self.kind}: {self.why}"


def leaf_of(row: Row) -> bytes | None:
    """The leaf hash that a header gives, None when its values are of types that give none."""
    try:
        return hash_of(row)
    except (AttributeError, TypeError, UnicodeError, struct.error):
        return None


def data_fits(row: Row) -> bool:
    """Whether a payload has its hash; one that is gone does."""
    try:
        return row.data is None or sha256(row.data).digest() == row.data_hash
    except TypeError:
        return False


def data(row: Row) -> Finding:
    """Of a payload that has not its hash."""
    return Finding(row.position, DATA, "its payload does not have the hash that its header holds")


def header(journal: Journal, row: Row) -> Finding:
    """Of a row whose leaf hash is not that of its header."""
    here, home = row.position, _home(journal, row)
    following = next(journal.rows(after=here, upto=here + 1), None)
    next_home = None if following is None else _home(journal, following)
    if home == here - 1 or (home is None and next_home == here):
        place = here if home is None else home
        why = f"the event of this position is now at {place + 1}; this is another"
        return Finding(place, INSERTED, why)
    if home is None:
        return Finding(here, HEADER, "its header does not give the leaf hash that is stored")
    if home == here + 1 and (following is None or next_home == here + 2):
        return Finding(here, REMOVED, "the events after it have moved into its place")
    return Finding(here, MOVED, f"what is here has the leaf hash of position {home}")


def only_the_hash(found: Finding) -> Finding:
    """Of a row that is as it was sealed, except for the stored hash."""
    return Finding(found.position, HASH, "its header is as sealed, its stored leaf hash is not")


def gap(journal: Journal, position: int) -> Finding:
    """Of a position where there is no row."""
    head = journal.head()
    if head < position:
        return Finding(position, CUT_OFF, f"the log ends at {head}")
    for row in journal.rows(after=position):
        if _fits(row, position):
            return Finding(position, MOVED, f"the event of this position is now at {row.position}")
    return Finding(position, REMOVED, "there is no event, and there are later ones")


def strays(journal: Journal) -> Finding | None:
    """Of rows at positions where none can be."""
    found = journal.stray_positions()
    return Finding(found[0], INSERTED, "positions begin at 1") if found else None


def readable(journal: Journal, after: int) -> Sequence[Row | Finding]:
    """The row after a position, or what is wrong when it cannot be read."""
    try:
        return list(journal.rows(after=after, upto=after + 1))
    except StoreError as error:
        if error.kind not in ("damaged", "io"):
            raise
        return [Finding(after + 1, UNREADABLE, error.message)]


def rewritten(checkpoint: Checkpoint, root: bytes) -> Finding:
    """Of a log that fits its own hashes, and not the checkpoint."""
    return Finding(
        None,
        REWRITTEN,
        f"each of the first {checkpoint.size:,} events fits its hashes, but their root is "
        f"{root.hex()}, and the checkpoint has {checkpoint.root.hex()}: events were changed "
        "together with their hashes, or it is a checkpoint of another log",
    )


def _home(journal: Journal, row: Row) -> int | None:
    """The position that a row's leaf hash was made for: the next ones are tried first."""
    here = row.position
    places = chain((here, here + 1, here - 1), range(1, journal.head() + 2))
    return next((each for each in places if _fits(row, each)), None)


def _fits(row: Row, position: int) -> bool:
    leaf = leaf_of(row._replace(position=position))
    return leaf is not None and leaf == row.hash
