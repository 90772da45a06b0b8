"""What somebody who may write the file can do to one event, and what should be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from random import Random
from typing import Any

from statelog.infrastructure.store.row import Row, hash_of

HEADER = ("version", "schema", "time", "stream", "name", "actor", "command")
OPTIONAL = ("correlation", "cause", "meta")
LOWEST = -(2**63)


@dataclass
class Case:
    """A log of which the first `size` events are sealed, and chance."""

    rows: list[Row]
    size: int
    random: Random

    @property
    def head(self) -> int:
        return len(self.rows)

    def place(self, last: int | None = None) -> int:
        """A position below the checkpoint, or up to `last`."""
        return self.random.randint(1, self.size if last is None else last)

    def with_row(self, at: int, **fields: Any) -> list[Row]:
        """The rows with one of them changed."""
        row = self.rows[at - 1]._replace(**fields)
        return [*self.rows[: at - 1], row, *self.rows[at:]]


Said = tuple[list[Row], str, int | None]
"""The rows afterwards, the kind of the finding and its position."""


def rehashed(rows: list[Row], by: int = 0) -> list[Row]:
    """Rows moved `by` positions, with leaf hashes that fit."""
    moved = [row._replace(position=row.position + by) for row in rows]
    return [row._replace(hash=hash_of(row)) for row in moved]


def shifted(rows: list[Row], by: int) -> list[Row]:
    """Rows moved `by` positions, with the leaf hashes they had."""
    return [row._replace(position=row.position + by) for row in rows]


def other(random: Random, data: bytes | None) -> bytes:
    """Another payload."""
    if not data:
        return b'{"by":%d}' % random.randint(10**6, 10**9)
    changed = bytearray(data)
    changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return bytes(changed)


def foreign(case: Case, position: int) -> Row:
    """An event that never was, with hashes that fit."""
    row = case.random.choice(case.rows)
    data = other(case.random, row.data)
    made = row._replace(
        position=position, stream="forged", data=data, data_hash=sha256(data).digest()
    )
    return made._replace(hash=hash_of(made))


def header_of(case: Case, position: int) -> dict[str, Any]:
    """Another value for one column of a header."""
    column = case.random.choice((*HEADER, *OPTIONAL))
    old = getattr(case.rows[position - 1], column)
    if isinstance(old, int):
        return {column: old + case.random.choice((10**6, 10**6 + 1))}
    if column in OPTIONAL and case.random.random() < 0.5:
        return {column: "" if old is None else None}
    return {column: f"{old or ''}x"}


def payload(case: Case) -> Said | None:
    at = case.place()
    return case.with_row(at, data=other(case.random, case.rows[at - 1].data)), "changed data", at


def payload_of_another_type(case: Case) -> Said | None:
    at = case.place()
    data = case.rows[at - 1].data
    return data and (case.with_row(at, data=data.decode()), "changed data", at)


def payloads_exchanged(case: Case) -> Said | None:
    one, two = sorted(case.random.choices(range(1, case.size + 1), k=2))
    first, second = case.rows[one - 1], case.rows[two - 1]
    if None in (first.data, second.data) or first.data == second.data:
        return None
    case.rows = case.with_row(one, data=second.data)
    return case.with_row(two, data=first.data), "changed data", one


def payload_with_its_hash(case: Case) -> Said | None:
    at = case.place()
    data = other(case.random, case.rows[at - 1].data)
    rows = case.with_row(at, data=data, data_hash=sha256(data).digest())
    return rows, "changed header", at


def header(case: Case) -> Said | None:
    at = case.place()
    return case.with_row(at, **header_of(case, at)), "changed header", at


def data_hash(case: Case) -> Said | None:
    at = case.place()
    return case.with_row(at, data_hash=case.random.randbytes(32)), "changed header", at


def leaf_hash(case: Case) -> Said | None:
    at = case.place()
    return case.with_row(at, hash=case.random.randbytes(32)), "changed hash", at


def exchanged(case: Case) -> Said | None:
    if case.head < 2:
        return None
    at = case.place(min(case.size, case.head - 1))
    to = case.random.randint(at + 1, case.head)
    rows = {at: to, to: at}
    moved = [row._replace(position=rows.get(row.position, row.position)) for row in case.rows]
    return moved, "moved", at


def moved_to_the_end(case: Case) -> Said | None:
    at = case.place()
    far = case.head + case.random.randint(1, 9)
    return case.with_row(at, position=far), "moved", at


def removed(case: Case) -> Said | None:
    at = case.place()
    rows = case.rows[: at - 1] + case.rows[at:]
    return rows, "removed" if at < case.head else "cut off", at


def removed_without_a_gap(case: Case) -> Said | None:
    at = case.place()
    rows = case.rows[: at - 1] + shifted(case.rows[at:], -1)
    return rows, "removed" if at < case.head else "cut off", at


def inserted(case: Case) -> Said | None:
    at = case.place()
    rows = [*case.rows[: at - 1], foreign(case, at), *shifted(case.rows[at - 1 :], 1)]
    return rows, *(("inserted", at) if at < case.size else ("rewritten", None))


def inserted_with_a_wrong_hash(case: Case) -> Said | None:
    at = case.place()
    row = foreign(case, at)._replace(hash=case.random.randbytes(32))
    return [*case.rows[: at - 1], row, *shifted(case.rows[at - 1 :], 1)], "inserted", at


def inserted_where_nobody_looks(case: Case) -> Said | None:
    at = case.random.choice((0, -1, -case.place(), LOWEST, LOWEST + 1))
    return [foreign(case, at), *case.rows], "inserted", at


def cut_off(case: Case) -> Said | None:
    at = case.place()
    return case.rows[: at - 1], "cut off", at


def cut_off_and_gone_on(case: Case) -> Said | None:
    at = case.place()
    last = case.size + case.random.randint(0, 3)
    forged = [foreign(case, position) for position in range(at, last + 1)]
    rows = [row._replace(version=1000 + number) for number, row in enumerate(forged)]
    return case.rows[: at - 1] + rehashed(rows), "rewritten", None


def forged(case: Case) -> Said | None:
    at = case.place()
    data = other(case.random, case.rows[at - 1].data)
    fields = case.random.choice(
        ({"data": data, "data_hash": sha256(data).digest()}, header_of(case, at))
    )
    return rehashed(case.with_row(at, **fields)), "rewritten", None


def exchanged_and_rehashed(case: Case) -> Said | None:
    said = exchanged(case)
    return said and (rehashed(said[0]), "rewritten", None)


def removed_and_rehashed(case: Case) -> Said | None:
    at = case.place()
    rows = case.rows[: at - 1] + rehashed(case.rows[at:], -1)
    return rows, *(("rewritten", None) if case.head > case.size else ("cut off", case.size))


def inserted_and_rehashed(case: Case) -> Said | None:
    at = case.place()
    rows = [*case.rows[: at - 1], foreign(case, at), *rehashed(case.rows[at - 1 :], 1)]
    return rows, "rewritten", None


TAMPERINGS: dict[str, Callable[[Case], Said | None]] = {
    each.__name__: each
    for each in (
        *(payload, payload_of_another_type, payloads_exchanged, payload_with_its_hash),
        *(header, data_hash, leaf_hash, exchanged, moved_to_the_end),
        *(removed, removed_without_a_gap, inserted, inserted_with_a_wrong_hash),
        *(inserted_where_nobody_looks, cut_off, cut_off_and_gone_on),
        *(forged, exchanged_and_rehashed, removed_and_rehashed, inserted_and_rehashed),
    )
}
